//! Serves one connection: reads requests, waits as the behaviour says, and sends replies.

use super::behaviour::Behaviour;
use super::queue::{Due, Queue, Sojourn};
use super::reply::{Rendered, Trickle};
use crate::pause;
use crate::record::{Record, Request};
use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const MOST_HEADERS: usize = 100;
const MOST_SOJOURNS: usize = 1_000_000;

/// The state that all connections of a server share.
#[derive(Debug)]
pub(super) struct SharedState {
    started: Instant,
    pub(super) record: Record,
    otherwise: PathState,
    paths: BTreeMap<String, PathState>,
    sojourns: Mutex<Vec<Sojourn>>,
}

#[derive(Debug)]
struct PathState {
    queue: Mutex<Queue>,
    reply: Rendered,
}

impl SharedState {
    pub(super) fn new(otherwise: Behaviour, paths: BTreeMap<String, Behaviour>) -> SharedState {
        SharedState {
            started: Instant::now(),
            record: Record::keeping(Record::KEPT),
            otherwise: PathState::from(otherwise),
            paths: paths.into_iter().map(|(path, behaviour)| (path, PathState::from(behaviour))).collect(),
            sojourns: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn sojourns(&self) -> Vec<Sojourn> {
        let mut sojourns = self.sojourns.lock().expect("no holder of this lock panics").clone();
        sojourns.sort_by_key(|sojourn| sojourn.arrived);
        sojourns
    }

    fn path_state(&self, target: &str) -> &PathState {
        let path = target.split('?').next().unwrap_or(target);
        self.paths.get(path).unwrap_or(&self.otherwise)
    }

    fn record_sojourn(&self, arrived: Instant, due: Due) {
        let sojourn = Sojourn {
            arrived: arrived - self.started,
            service: due.service,
            due: due.at - self.started,
            answered: self.started.elapsed(),
        };
        let mut sojourns = self.sojourns.lock().expect("no holder of this lock panics");
        if sojourns.len() < MOST_SOJOURNS {
            sojourns.push(sojourn);
        }
    }
}

impl From<Behaviour> for PathState {
    fn from(behaviour: Behaviour) -> PathState {
        PathState { queue: Mutex::new(Queue::new(behaviour.timing)), reply: behaviour.reply.render() }
    }
}

/// Serves the requests of a connection until it ends.
pub(super) async fn serve<S>(mut stream: S, number: u64, shared: &SharedState) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut input = Vec::with_capacity(4096);
    loop {
        let request = match read_request(&mut stream, &mut input, number).await {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return refuse(&mut stream, shared).await,
            Err(error) => return Err(error),
        };
        let arrived = Instant::now();
        let page = shared.path_state(&request.path);
        let due = page.queue.lock().expect("no holder of this lock panics").enter(arrived);
        let bytes = if request.method == "HEAD" { &page.reply.head } else { &page.reply.whole };
        shared.record.requested(|| request);

        let Some(due) = due else { return wait_for_close(&mut stream).await };
        pause::until(due.at).await?;
        // Recorded before it is sent, so that a client with the reply finds it in the record.
        shared.record_sojourn(arrived, due);
        send(&mut stream, bytes, page.reply.trickle).await?;
        if page.reply.closing {
            return stream.shutdown().await;
        }
    }
}

/// Reads the next request of the connection; `None` at its end.
pub(super) async fn read_request<S>(stream: &mut S, input: &mut Vec<u8>, connection: u64) -> io::Result<Option<Request>>
where
    S: AsyncRead + Unpin,
{
    loop {
        if let Some((mut request, head)) = parse_head(input, connection)? {
            let end = head + content_length(&request)?;
            while input.len() < end {
                if stream.read_buf(input).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            request.body = input[head..end].to_vec();
            input.drain(..end);
            return Ok(Some(request));
        }
        if stream.read_buf(input).await? == 0 {
            return Ok(None);
        }
    }
}

/// Parses the request line and headers at the start of `input`, and returns their length too. `None` if they are
/// incomplete.
fn parse_head(input: &[u8], connection: u64) -> io::Result<Option<(Request, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let httparse::Status::Complete(length) = parsed.parse(input).map_err(invalid)? else { return Ok(None) };
    let headers = parsed.headers.iter();
    let request = Request {
        connection,
        method: parsed.method.unwrap_or_default().to_owned(),
        path: parsed.path.unwrap_or_default().to_owned(),
        headers: headers.map(|h| (h.name.to_owned(), String::from_utf8_lossy(h.value).into_owned())).collect(),
        body: Vec::new(),
    };
    Ok(Some((request, length)))
}

fn content_length(request: &Request) -> io::Result<usize> {
    let Some(length) = request.header("content-length") else { return Ok(0) };
    length.trim().parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8], trickle: Option<Trickle>) -> io::Result<()> {
    let Some(trickle) = trickle else {
        stream.write_all(bytes).await?;
        return stream.flush().await;
    };
    for (index, piece) in bytes.chunks(trickle.piece).enumerate() {
        if index > 0 {
            pause::until(Instant::now() + trickle.every).await?;
        }
        stream.write_all(piece).await?;
        stream.flush().await?;
    }
    Ok(())
}

/// Replies that the request is invalid, and ends the connection.
async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, shared: &SharedState) -> io::Result<()> {
    shared.record.refuse();
    stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await?;
    stream.shutdown().await
}

/// Keeps the connection open until the client closes it.
async fn wait_for_close<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<()> {
    let mut ignored = [0; 1024];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}
