//! Serves one call: its message, its reply, its status.

use super::{Mode, ReplyMode, Settings, talk};
use crate::pause;
use crate::record::{Record, Request as Seen};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request};
use plimsoll_demo::reply::{Status, UNIMPLEMENTED, begin, read_to_end, refuse, succeed};
use plimsoll_demo::{Count, PROTO, Reflection, increment};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Instant;

/// The method of a receiver of OpenTelemetry that takes metrics.
const EXPORT: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

/// The state that all connections of a counter share.
pub(super) struct Service {
    count: Count,
    reflection: Reflection,
    pub(super) settings: Settings,
    pub(super) record: Arc<Record>,
}

impl Service {
    pub(super) fn new(mode: Mode, settings: Settings, record: Arc<Record>) -> Service {
        Service { count: Count::new(mode), reflection: Reflection::new(&[PROTO, talk::PROTO]), settings, record }
    }
}

/// Serves a call. A client that leaves in the middle of it ends it without an error.
pub(super) async fn answer(
    service: Arc<Service>,
    connection: u64,
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
) {
    let (head, body) = request.into_parts();
    let _ended = match head.uri.path() {
        increment::PATH => count(&service, connection, &head, body, respond).await,
        EXPORT => export(&service, connection, &head, body, respond).await,
        Reflection::PATH => {
            service.record.requested(|| seen(connection, &head, Vec::new()));
            service.reflection.serve(body, respond).await
        }
        path if path == talk::HEALTH || path.starts_with(talk::SERVICE) => {
            service.record.requested(|| seen(connection, &head, Vec::new()));
            if path == talk::HEALTH {
                talk::health(body, respond).await
            } else {
                talk::answer(&head, body, respond).await
            }
        }
        other => {
            service.record.requested(|| seen(connection, &head, Vec::new()));
            refuse(respond, &Status::new(UNIMPLEMENTED, format!("unknown method {other}")))
        }
    };
}

async fn count(
    service: &Service,
    connection: u64,
    head: &Parts,
    body: RecvStream,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let body = read_to_end(body).await?;
    let arrived = Instant::now();
    service.record.requested(|| seen(connection, head, body.clone()));
    if let ReplyMode::Refuse { code, message } = &service.settings.reply_mode {
        return refuse(respond, &Status::new(*code, message));
    }
    let value = match increment::decode(body) {
        Ok(value) => value,
        Err(status) => return refuse(respond, &status),
    };
    let sum = service.count.add(value).await;
    match service.settings.reply_mode {
        ReplyMode::After(delay) => pause::until(arrived + delay).await.map_err(|_| Reason::INTERNAL_ERROR)?,
        ReplyMode::Never => return poll_fn(|context| respond.poll_reset(context)).await.map(drop),
        ReplyMode::Reset(error) => {
            respond.send_reset(error.into());
            return Ok(());
        }
        ReplyMode::AtOnce | ReplyMode::Refuse { .. } => {}
    }
    let mut stream = begin(&mut respond, HeaderMap::new())?;
    stream.send_data(increment::encode(sum), false)?;
    succeed(stream, HeaderMap::new())
}

/// Takes metrics of OpenTelemetry.
async fn export(
    service: &Service,
    connection: u64,
    head: &Parts,
    body: RecvStream,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let body = read_to_end(body).await?;
    service.record.requested(|| seen(connection, head, body));
    match &service.settings.reply_mode {
        ReplyMode::Refuse { code, message } => return refuse(respond, &Status::new(*code, message)),
        ReplyMode::Never => return poll_fn(|context| respond.poll_reset(context)).await.map(drop),
        _ => {}
    }
    let mut stream = begin(&mut respond, HeaderMap::new())?;
    // An empty message: all of them are taken.
    stream.send_data(Bytes::from_static(&[0; 5]), false)?;
    succeed(stream, HeaderMap::new())
}

fn seen(connection: u64, head: &Parts, body: Vec<u8>) -> Seen {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Seen {
        connection,
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        headers: head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        body,
    }
}
