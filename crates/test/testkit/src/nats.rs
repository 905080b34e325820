//! A real `nats-server` with JetStream, on a port of the loopback that stays the same when it restarts.

use crate::port::ReservedPort;
use std::fs;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time in which the server answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub struct Server {
    port: ReservedPort,
    configuration: PathBuf,
    child: Option<Child>,
}

/// The program; none where it is not installed.
#[must_use]
pub fn program() -> Option<PathBuf> {
    // Debian puts it where servers are, which the PATH of users does not name.
    let folders = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
    let places = folders.into_iter().chain([PathBuf::from("/usr/sbin")]);
    places.map(|folder| folder.join("nats-server")).find(|file| file.is_file())
}

impl Server {
    /// Starts a server whose files lie in `folder`; `more` is added to its configuration. None where it is not installed.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(folder: &Path, more: &str) -> io::Result<Option<Server>> {
        if program().is_none() {
            return Ok(None);
        }
        let port = ReservedPort::new()?;
        let configuration = folder.join("nats.conf");
        let store = folder.join("jetstream");
        let text = format!("listen: \"{}\"\njetstream {{ store_dir: {store:?} }}\n{more}\n", port.address());
        fs::write(&configuration, text)?;
        let mut server = Server { port, configuration, child: None };
        server.restart()?;
        Ok(Some(server))
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// That address as a URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://{}", self.address())
    }

    /// Ends the server at once.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Ends it if it runs, and starts it again.
    ///
    /// # Errors
    /// It does not answer in time.
    pub fn restart(&mut self) -> io::Result<()> {
        self.kill();
        let program = program().ok_or_else(|| io::Error::other("nats-server is not there"))?;
        let mut command = Command::new(program);
        command.arg("-c").arg(&self.configuration).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn()?);
        let begun = Instant::now();
        while !self.greets() {
            if begun.elapsed() > PATIENCE {
                return Err(io::Error::other("nats-server does not answer"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// True if a connection is greeted.
    fn greets(&self) -> bool {
        let greeting = || {
            let mut stream = TcpStream::connect_timeout(&self.address(), Duration::from_secs(1)).ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
            let mut word = [0; 4];
            stream.read_exact(&mut word).ok()?;
            Some(word)
        };
        greeting() == Some(*b"INFO")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
