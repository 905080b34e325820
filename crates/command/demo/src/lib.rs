//! The server that `plimsoll demo` measures: a gRPC service that counts, in two correct ways and an
//! incorrect one.
//!
//! The service is that of `proto/counter.proto`: `counter.incrementCounter/increment` adds `value`
//! and replies `Incremented value is N`. A negative value is `INVALID_ARGUMENT`, a method that is
//! not there `UNIMPLEMENTED`. With `value = 1`, the replies of a correct counter are exactly 1..N.
//!
//! The parts are public: the test kit builds a server from them that can also misbehave.

mod count;
pub mod increment;
pub mod message;
mod reflection;
pub mod reply;

pub use count::{Count, Mode};
pub use reflection::Reflection;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, Request};
use reply::{Status, UNIMPLEMENTED};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};

/// Name and text of the service's `.proto` file.
pub const PROTO: (&str, &str) = ("counter.proto", include_str!("../proto/counter.proto"));

/// Memory in bytes for small frames of a connection that h2 has read and that are not processed yet. With h2's own
/// limit, a connection ends when about a hundred small calls arrive together; the clients of this server are trusted.
pub const SMALL_FRAMES: usize = 64 << 20;

/// The state that all connections share.
struct Service {
    count: Count,
    reflection: Reflection,
}

/// Serves a counter at `listen` with `workers` threads, until the process ends.
///
/// # Errors
/// When nothing can listen there.
pub fn serve(listen: SocketAddr, mode: Mode, workers: usize) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?;
        let service = Arc::new(Service { count: Count::new(mode), reflection: Reflection::new(&[PROTO]) });
        // Accept on a worker: the thread that blocks here is not one of them.
        tokio::spawn(accept_all(listener, service)).await.map_err(io::Error::other)
    })
}

async fn accept_all(listener: TcpListener, service: Arc<Service>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(converse(stream, Arc::clone(&service)))),
            // The peer is gone already, or no descriptor is left: the next accept may succeed.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Serves a connection to its end. A broken connection is no error.
async fn converse(stream: TcpStream, service: Arc<Service>) {
    let mut builder = h2::server::Builder::new();
    builder.data_frame_budget(SMALL_FRAMES);
    let Ok(()) = stream.set_nodelay(true) else { return };
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(answer(Arc::clone(&service), request, respond));
    }
}

/// Answers a call. A client that disconnects in the middle ends it without an error.
async fn answer(service: Arc<Service>, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
    let (head, body) = request.into_parts();
    let _ended = match head.uri.path() {
        increment::PATH => increment(&service.count, body, respond).await,
        Reflection::PATH => service.reflection.serve(body, respond).await,
        other => reply::refuse(respond, &Status::new(UNIMPLEMENTED, format!("unknown method {other}"))),
    };
}

async fn increment(count: &Count, body: RecvStream, mut respond: SendResponse<Bytes>) -> Result<(), h2::Error> {
    let value = match increment::decode(reply::read_to_end(body).await?) {
        Ok(value) => value,
        Err(status) => return reply::refuse(respond, &status),
    };
    let sum = count.add(value).await;
    let mut stream = reply::begin(&mut respond, HeaderMap::new())?;
    stream.send_data(increment::encode(sum), false)?;
    reply::succeed(stream, HeaderMap::new())
}
