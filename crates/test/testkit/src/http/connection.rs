//! One connection: reads requests, waits as the behaviour says, sends the reply.

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

/// What all connections of a server share.
#[derive(Debug)]
pub(super) struct Site {
    started: Instant,
    pub(super) record: Record,
    otherwise: Page,
    paths: BTreeMap<String, Page>,
    sojourns: Mutex<Vec<Sojourn>>,
}

#[derive(Debug)]
struct Page {
    queue: Mutex<Queue>,
    reply: Rendered,
}

impl Site {
    pub(super) fn new(otherwise: Behaviour, paths: BTreeMap<String, Behaviour>) -> Site {
        Site {
            started: Instant::now(),
            record: Record::keeping(Record::KEPT),
            otherwise: Page::from(otherwise),
            paths: paths.into_iter().map(|(path, behaviour)| (path, Page::from(behaviour))).collect(),
            sojourns: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn sojourns(&self) -> Vec<Sojourn> {
        let mut sojourns = self.sojourns.lock().expect("no holder of this lock panics").clone();
        sojourns.sort_by_key(|sojourn| sojourn.arrived);
        sojourns
    }

    fn page(&self, target: &str) -> &Page {
        let path = target.split('?').next().unwrap_or(target);
        self.paths.get(path).unwrap_or(&self.otherwise)
    }

    fn answered(&self, arrived: Instant, due: Due) {
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

impl From<Behaviour> for Page {
    fn from(behaviour: Behaviour) -> Page {
        Page { queue: Mutex::new(Queue::new(behaviour.timing)), reply: behaviour.reply.render() }
    }
}

/// Serves the requests of a connection until it ends.
pub(super) async fn serve<S>(mut stream: S, number: u64, site: &Site) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut input = Vec::with_capacity(4096);
    loop {
        let request = match read_request(&mut stream, &mut input, number).await {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return refuse(&mut stream, site).await,
            Err(error) => return Err(error),
        };
        let arrived = Instant::now();
        let page = site.page(&request.path);
        let due = page.queue.lock().expect("no holder of this lock panics").enter(arrived);
        let bytes = if request.method == "HEAD" { &page.reply.head } else { &page.reply.whole };
        site.record.requested(|| request);

        let Some(due) = due else { return outlast(&mut stream).await };
        pause::until(due.at).await?;
        // Noted before it is sent, so that whoever has the reply finds it in the account.
        site.answered(arrived, due);
        send(&mut stream, bytes, page.reply.trickle).await?;
        if page.reply.closing {
            return stream.shutdown().await;
        }
    }
}

/// The next request of the connection; none when it has ended between requests.
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

/// The request line and headers at the start of `input` with their length, once they are whole.
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

/// Says that what came is no request, and ends the connection.
async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, site: &Site) -> io::Result<()> {
    site.record.refuse();
    stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await?;
    stream.shutdown().await
}

/// Keeps the connection open, silent, for as long as the client does.
async fn outlast<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<()> {
    let mut ignored = [0; 1024];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}
