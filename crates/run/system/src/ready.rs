//! Probes whether a system is ready.

use crate::error::SystemError;
use crate::interrupt::Interrupt;
use crate::launcher::Launcher;
use crate::output::{LastOutput, LineSearch, Output};
use plimsoll_model::system::{CommandLine, Probe, SystemSpec};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// The timeout of one probe of a socket. Probes are repeated until the study's own limit.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a forwarder may take to find out that nobody listens behind it.
const FORWARDED_WITHIN: Duration = Duration::from_millis(100);
/// The pause between two probes.
const PAUSE: Duration = Duration::from_millis(5);
/// The pause between two probes that start a process.
const COMMAND_PAUSE: Duration = Duration::from_millis(100);
/// The longest status line that is read.
const STATUS_LINE_BYTES: u64 = 1024;

/// Probes one system, repeatedly.
pub(crate) struct Prober<'a> {
    launcher: &'a Launcher,
    spec: &'a SystemSpec,
    probe: PreparedProbe,
}

/// A probe with its state between two attempts.
enum PreparedProbe {
    /// `is_container`: what listens may be a forwarder, which accepts before anything listens in the container.
    Tcp {
        address: String,
        is_container: bool,
    },
    Http {
        address: String,
        request: String,
    },
    Log {
        text: String,
        search: LineSearch,
    },
    Command(CommandLine),
    Started,
}

impl<'a> Prober<'a> {
    pub(crate) fn new(
        launcher: &'a Launcher,
        spec: &'a SystemSpec,
        output: &Output,
    ) -> Result<Prober<'a>, SystemError> {
        let probe = match &spec.ready.probe {
            Probe::Tcp(address) => {
                PreparedProbe::Tcp { address: address.clone(), is_container: spec.containers.is_some() }
            }
            Probe::Http(url) => {
                let bad = |reason| SystemError::BadProbe { system: spec.name.clone(), reason };
                http(url).map_err(bad)?
            }
            Probe::Log(text) => {
                let search = output.search().map_err(SystemError::io(&spec.name, "read its output"))?;
                PreparedProbe::Log { text: text.clone(), search }
            }
            Probe::Command(command) => PreparedProbe::Command(command.clone()),
            Probe::Started => PreparedProbe::Started,
        };
        Ok(Prober { launcher, spec, probe })
    }

    /// The pause before the next probe.
    pub(crate) fn pause(&self) -> Duration {
        if matches!(self.probe, PreparedProbe::Command(_)) { COMMAND_PAUSE } else { PAUSE }
    }

    /// Probes once. Returns `None` if the system is ready, or else a description of what was found.
    pub(crate) fn probe(&mut self, within: Duration, interrupt: &Interrupt) -> Result<Option<String>, SystemError> {
        let socket_limit = within.clamp(Duration::from_millis(1), SOCKET_TIMEOUT);
        let outcome = match &mut self.probe {
            PreparedProbe::Tcp { address, is_container: false } => connect(address, socket_limit).map(|_| None),
            PreparedProbe::Tcp { address, is_container: true } => stays_connected(address, socket_limit),
            PreparedProbe::Http { address, request } => get(address, request, socket_limit),
            PreparedProbe::Log { text, search } => {
                search.found(text).map(|found| (!found).then(|| "no such line".to_owned()))
            }
            PreparedProbe::Command(command) => {
                return self.launcher.run_short(self.spec, command, within, interrupt).map(|answer| {
                    match answer.exit {
                        Some(exit) if exit.is_success() => None,
                        Some(exit) => Some(format!("{exit} ({})", LastOutput::of(&answer.output, None))),
                        None => Some("that it did not end in time".to_owned()),
                    }
                });
            }
            PreparedProbe::Started => Ok(None),
        };
        Ok(outcome.unwrap_or_else(|error| {
            let is_late = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
            Some(if is_late { "no answer in time".to_owned() } else { error.to_string() })
        }))
    }
}

/// Parses a URL, and renders the request for it.
fn http(url: &str) -> Result<PreparedProbe, String> {
    let Some(rest) = url.strip_prefix("http://") else {
        return Err(format!(
            "expected a URL that starts with `http://`, found `{url}`; probe with `tcp` or a command instead"
        ));
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.is_empty() {
        return Err(format!("expected `http://host:port/path`, found `{url}` without a host"));
    }
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port { authority.to_owned() } else { format!("{authority}:80") };
    let path = if path.is_empty() { "/" } else { path };
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: plimsoll\r\nConnection: close\r\n\r\n");
    Ok(PreparedProbe::Http { address, request })
}

fn connect(address: &str, within: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::other(format!("no address for {address}"));
    for candidate in address.to_socket_addrs()? {
        match connect_to(candidate, within) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn connect_to(address: SocketAddr, within: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, within)?;
    // Without a listener, a loopback connection may choose the same local port and connect to itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(stream)
}

/// Connects, and waits for a moment whether the connection is ended at once, as forwarders do that find nobody behind them.
fn stays_connected(address: &str, within: Duration) -> io::Result<Option<String>> {
    let mut stream = connect(address, within)?;
    stream.set_read_timeout(Some(FORWARDED_WITHIN))?;
    match stream.read(&mut [0]) {
        Ok(0) => Ok(Some("that the connection is ended at once".to_owned())),
        Err(error) if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Err(error),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Sends the request and reads the status: `None` when it is below 400.
fn get(address: &str, request: &str, within: Duration) -> io::Result<Option<String>> {
    let deadline = Instant::now() + within;
    let mut stream = connect(address, within)?;
    let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    stream.set_read_timeout(Some(left))?;
    stream.set_write_timeout(Some(left))?;
    stream.write_all(request.as_bytes())?;
    let mut line = Vec::new();
    BufReader::new(stream.take(STATUS_LINE_BYTES)).read_until(b'\n', &mut line)?;
    let line = String::from_utf8_lossy(&line);
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.trim().parse::<u16>().ok());
    Ok(match status {
        Some(status) if status < 400 => None,
        Some(status) => Some(format!("status {status}")),
        None => Some(format!("`{}`, which is no HTTP", line.trim_end())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gives_the_address_and_the_request() {
        let cases = [
            ("http://127.0.0.1:8080/health?deep=1", "127.0.0.1:8080", "GET /health?deep=1 "),
            ("http://localhost", "localhost:80", "GET / "),
            ("http://[::1]:9000", "[::1]:9000", "GET / "),
            ("http://[::1]/x", "[::1]:80", "GET /x "),
        ];
        for (url, expected_address, start) in cases {
            let Ok(PreparedProbe::Http { address, request }) = http(url) else { panic!("{url} is fine") };
            assert_eq!(address, expected_address);
            assert!(request.starts_with(start), "{request}");
        }
        for url in ["https://127.0.0.1/", "127.0.0.1:80", "http:///path"] {
            assert!(http(url).is_err(), "{url}");
        }
    }
}
