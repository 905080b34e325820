//! A proxy for TCP that delays, holds back or cuts what passes: a network with faults, where the kernel offers none.

use crate::running::{Running, accept};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// A connection looks for a change of the faults after this time.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A running proxy. Dropping it closes its port and connections.
#[derive(Debug)]
pub struct Proxy {
    running: Running,
    faults: Arc<Faults>,
}

#[derive(Debug, Default)]
struct Faults {
    /// Nanoseconds by which each byte is late, in either direction.
    delay: AtomicU64,
    /// True while nothing passes, and connections stay open: as where packets are lost.
    held: AtomicBool,
    /// Grows by one whenever all connections are cut.
    cuts: AtomicU64,
    /// True while new connections are closed at once.
    refuses: AtomicBool,
}

impl Proxy {
    /// Passes connections on to `target`.
    ///
    /// # Errors
    /// No port or thread is to be had.
    pub fn start(target: SocketAddr) -> io::Result<Proxy> {
        let faults = Arc::new(Faults::default());
        let shared = Arc::clone(&faults);
        let running = Running::start("proxy", 2, move |listener| serve(listener, target, shared))?;
        Ok(Proxy { running, faults })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// From now on each byte comes so much later, in either direction.
    pub fn delay(&self, delay: Duration) {
        self.faults.delay.store(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Lets nothing pass, or lets it pass again. What was held back passes then.
    pub fn hold(&self, held: bool) {
        self.faults.held.store(held, Ordering::Relaxed);
    }

    /// Closes all connections, with what is on its way in them.
    pub fn cut(&self) {
        self.faults.cuts.fetch_add(1, Ordering::Relaxed);
    }

    /// Closes new connections at once, or takes them again.
    pub fn refuse(&self, refuses: bool) {
        self.faults.refuses.store(refuses, Ordering::Relaxed);
    }
}

async fn serve(listener: TcpListener, target: SocketAddr, faults: Arc<Faults>) {
    loop {
        let Ok(client) = accept(&listener).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let faults = Arc::clone(&faults);
        if faults.refuses.load(Ordering::Relaxed) {
            continue;
        }
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(target).await else { return };
            let _ = server.set_nodelay(true);
            let ((client_reads, client_writes), (server_reads, server_writes)) =
                (client.into_split(), server.into_split());
            // Either direction ends both.
            tokio::select! {
                () = pass(client_reads, server_writes, &faults) => {}
                () = pass(server_reads, client_writes, &faults) => {}
            }
        });
    }
}

/// Passes bytes on in one direction, each when it is due.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, faults: &Faults) {
    let cuts = faults.cuts.load(Ordering::Relaxed);
    let mut waiting: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut buffer = vec![0; 64 << 10];
    while faults.cuts.load(Ordering::Relaxed) == cuts {
        let now = Instant::now();
        if !faults.held.load(Ordering::Relaxed)
            && let Some((due, _)) = waiting.front()
            && *due <= now
        {
            let (_, bytes) = waiting.pop_front().expect("it was looked at");
            if to.write_all(&bytes).await.is_err() {
                return;
            }
            continue;
        }
        let next = waiting.front().map_or(LOOK_EVERY, |(due, _)| due.saturating_duration_since(now).min(LOOK_EVERY));
        tokio::select! {
            read = from.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return,
                Ok(length) => {
                    let delay = Duration::from_nanos(faults.delay.load(Ordering::Relaxed));
                    waiting.push_back((Instant::now() + delay, buffer[..length].to_vec()));
                }
            },
            () = tokio::time::sleep(next.max(Duration::from_millis(1))) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    /// A connection through a proxy to a server that sends back what it gets.
    fn echo() -> (Proxy, TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let target = listener.local_addr().expect("bound");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut byte = [0];
            while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
        });
        let proxy = Proxy::start(target).expect("a port");
        let stream = TcpStream::connect(proxy.address()).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        (proxy, stream)
    }

    fn there_and_back(stream: &mut TcpStream) -> io::Result<Duration> {
        let begun = Instant::now();
        stream.write_all(b"x")?;
        stream.read_exact(&mut [0])?;
        Ok(begun.elapsed())
    }

    #[test]
    fn bytes_come_late_and_wait_while_they_are_held() {
        let (proxy, mut stream) = echo();
        there_and_back(&mut stream).expect("it passes");
        proxy.delay(Duration::from_millis(30));
        assert!(there_and_back(&mut stream).expect("it passes") >= Duration::from_millis(60));
        proxy.delay(Duration::ZERO);
        proxy.hold(true);
        std::thread::scope(|scope| {
            let held = scope.spawn(|| there_and_back(&mut stream));
            std::thread::sleep(Duration::from_millis(50));
            proxy.hold(false);
            let took = held.join().expect("no panic").expect("it passes again");
            assert!(took >= Duration::from_millis(40), "{took:?}");
        });
    }

    #[test]
    fn a_cut_ends_connections_and_later_ones_are_refused_or_taken() {
        let (proxy, mut stream) = echo();
        there_and_back(&mut stream).expect("it passes");
        proxy.refuse(true);
        proxy.cut();
        assert!(there_and_back(&mut stream).is_err());
        let mut refused = TcpStream::connect(proxy.address()).expect("it listens");
        assert!(there_and_back(&mut refused).is_err());
    }
}
