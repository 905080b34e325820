//! Messages between Plimsoll and a warden: JSON, one message a line, over a socket pair.
//!
//! The control channel also shows that the other side is alive: it ends when the other side does.

use crate::containers::Project;
use crate::exit::Exit;
use plimsoll_model::system::{CommandLine, StopPolicy};
use plimsoll_model::units::Processors;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The first message to a warden: what to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LaunchOrder {
    /// The arguments by which this program calls [`crate::warden::main`].
    pub(crate) launcher: Vec<String>,
    /// The program's file.
    pub(crate) program: PathBuf,
    /// The command as the study writes it.
    pub(crate) command: CommandLine,
    /// Its working folder.
    pub(crate) dir: PathBuf,
    /// The variables of the warden's own environment that it gets; all when there is none.
    pub(crate) inherit: Option<Vec<String>>,
    /// Variables to add to them.
    pub(crate) env: BTreeMap<String, String>,
    /// Processors it may use; all when there is none.
    pub(crate) cpus: Option<Processors>,
    /// Its soft limit of open files, as far as the hard limit allows; none for no other limit than that.
    pub(crate) open_files: Option<u64>,
    /// The containers that it asks an engine for.
    pub(crate) project: Option<Project>,
}

/// A later message to a warden: stop the command. The end of the control channel says the same, at once
/// and without grace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StopRequest(pub(crate) StopPolicy);

/// A message from a warden.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum WardenReport {
    /// The command runs.
    Started,
    /// It could not be started, and why.
    Refused(String),
    /// It ended by itself; what it started may still run.
    Ended(Exit),
    /// Everything has ended. The last message.
    Cleanup(Cleanup),
}

/// How the command ended, and what was cleaned up after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cleanup {
    /// How the command itself ended; `None` if even SIGKILL did not end it.
    pub(crate) exit: Option<Exit>,
    /// The number of processes that had to be killed.
    pub(crate) killed: usize,
    /// Processes that could not be killed.
    pub(crate) left: Vec<i32>,
    /// The reason why containers could not be removed, if some could not.
    pub(crate) containers_left: Option<String>,
}

/// The outcome of waiting for a message.
#[derive(Debug)]
pub(crate) enum Received<T> {
    /// A message.
    Message(T),
    /// No message in time.
    Timeout,
    /// The other side closed the channel, or died.
    Closed,
}

/// One end of the socket pair.
#[derive(Debug)]
pub(crate) struct ControlChannel {
    stream: UnixStream,
    pending: Vec<u8>,
}

impl ControlChannel {
    pub(crate) fn new(stream: UnixStream) -> ControlChannel {
        ControlChannel { stream, pending: Vec::new() }
    }

    /// The end that this process was started with, as its standard input. The copy is closed on
    /// `exec`, so nothing that this process starts can keep the control channel open.
    pub(crate) fn of_standard_input() -> io::Result<ControlChannel> {
        let socket = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(ControlChannel::new(UnixStream::from(socket)))
    }

    /// Sends a message. If the other side is gone, the message is lost, which is no error here: the next
    /// [`ControlChannel::receive`] reports it.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        match self.stream.write_all(&line) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    /// Waits for the next message, without a limit if `within` is `None`.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self, within: Option<Duration>) -> io::Result<Received<T>> {
        let deadline = within.map(|within| Instant::now() + within);
        loop {
            if let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') {
                let message = serde_json::from_slice(&self.pending[..end])?;
                self.pending.drain(..=end);
                return Ok(Received::Message(message));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if !wait_readable(&[self.stream.as_fd()], left)? {
                return Ok(Received::Timeout);
            }
            if !self.read_some()? {
                return Ok(Received::Closed);
            }
        }
    }

    /// Returns false if no more bytes can follow.
    fn read_some(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer) {
            Ok(count) => {
                self.pending.extend_from_slice(&buffer[..count]);
                Ok(count > 0)
            }
            // The other side died with messages unread.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for ControlChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Waits until one of `sources` has bytes to read or has ended. Returns false if `within` passes before.
pub(crate) fn wait_readable(sources: &[BorrowedFd<'_>], within: Option<Duration>) -> io::Result<bool> {
    let deadline = within.map(|within| Instant::now() + within);
    let mut watched: Vec<PollFd<'_>> =
        sources.iter().map(|source| PollFd::from_borrowed_fd(*source, PollFlags::IN)).collect();
    loop {
        let left = deadline.map(|deadline| timespec(deadline.saturating_duration_since(Instant::now())));
        match poll(&mut watched, left.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn timespec(span: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(span.subsec_nanos()) }
}
