//! Runs a server on threads of its own, which listens before it is returned and stops when dropped.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// A running server.
#[derive(Debug)]
pub(crate) struct Running {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Runs `serve` on a free port of the loopback interface until the value is dropped.
    pub(crate) fn start<S, F>(name: &str, workers: usize, serve: S) -> io::Result<Running>
    where
        S: FnOnce(TcpListener) -> F + Send + 'static,
        F: Future<Output = ()>,
    {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = runtime(workers)?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).expect("the runtime has a reactor to register with");
                tokio::select! {
                    () = serve(listener) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Running { address, stop: Some(stop), thread: Some(thread) })
    }

    /// The address that it listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server has been printed by then, and must not become an abort here.
            let _ = thread.join();
        }
    }
}

/// A runtime of `workers` threads, without timers. With one worker, the thread that blocks on it does all the
/// work.
pub(crate) fn runtime(workers: usize) -> io::Result<Runtime> {
    match workers {
        0 | 1 => Builder::new_current_thread().enable_io().build(),
        _ => Builder::new_multi_thread().worker_threads(workers).enable_io().enable_time().build(),
    }
}

/// Accepts the next connection, and disables Nagle's algorithm for small replies.
pub(crate) async fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
