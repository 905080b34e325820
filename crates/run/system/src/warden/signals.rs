//! Turns signals to the warden into file descriptors to wait on.

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level::pipe;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// The signals to this process, as pipes.
#[derive(Debug)]
pub(super) struct Signals {
    child: UnixStream,
    end: UnixStream,
}

impl Signals {
    /// Catches signals from now on: they wake the warden instead of ending it.
    pub(super) fn catch() -> io::Result<Signals> {
        let (child, child_ended) = UnixStream::pair()?;
        let (end, end_asked) = UnixStream::pair()?;
        child.set_nonblocking(true)?;
        end.set_nonblocking(true)?;
        pipe::register(SIGCHLD, child_ended)?;
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            pipe::register(signal, end_asked.try_clone()?)?;
        }
        Ok(Signals { child, end })
    }

    /// The file descriptors to wait on: for the end of children, and for the request to end.
    pub(super) fn sources(&self) -> [BorrowedFd<'_>; 2] {
        [self.child.as_fd(), self.end.as_fd()]
    }

    /// Clears the signals of children that have ended.
    pub(super) fn clear_children(&mut self) -> io::Result<()> {
        drain(&mut self.child).map(|_| ())
    }

    /// True if a signal asked the warden to end.
    pub(super) fn end_asked(&mut self) -> io::Result<bool> {
        drain(&mut self.end)
    }
}

/// Empties a pipe. Returns true if it had bytes.
fn drain(pipe: &mut UnixStream) -> io::Result<bool> {
    let mut any = false;
    loop {
        match pipe.read(&mut [0; 64]) {
            Ok(0) => return Ok(any),
            Ok(_) => any = true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(any),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
