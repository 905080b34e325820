//! One call: its message, its reply, its status.

use super::count::{Count, Mode};
use super::wire::{Value, fields, frame, put_bytes, take_message};
use super::{Answer, Habits, reflection, talk};
use crate::pause;
use crate::record::{Record, Request as Seen};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Instant;

const INCREMENT: &str = "/counter.incrementCounter/increment";

pub(super) const INVALID_ARGUMENT: u16 = 3;
pub(super) const UNIMPLEMENTED: u16 = 12;
const INTERNAL: u16 = 13;

/// What all connections of a counter share.
pub(super) struct Service {
    count: Count,
    pub(super) habits: Habits,
    pub(super) record: Arc<Record>,
}

/// A status other than OK.
pub(super) struct Status {
    pub(super) code: u16,
    pub(super) message: String,
}

impl Status {
    pub(super) fn new(code: u16, message: impl Into<String>) -> Status {
        Status { code, message: message.into() }
    }

    /// The message, as a header says it.
    fn header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.message).unwrap_or(HeaderValue::from_static("unprintable"))
    }
}

impl Service {
    pub(super) fn new(mode: Mode, habits: Habits, record: Arc<Record>) -> Service {
        Service { count: Count::new(mode), habits, record }
    }
}

/// Answers a call. A client that goes away in the middle ends it, and that is all.
pub(super) async fn answer(
    service: Arc<Service>,
    connection: u64,
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
) {
    let (head, body) = request.into_parts();
    let _ended = match head.uri.path() {
        INCREMENT => increment(&service, connection, &head, body, respond).await,
        reflection::PATH => {
            service.record.requested(|| seen(connection, &head, Vec::new()));
            reflection::serve(body, respond).await
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

async fn increment(
    service: &Service,
    connection: u64,
    head: &Parts,
    body: RecvStream,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let body = read_to_end(body).await?;
    let arrived = Instant::now();
    service.record.requested(|| seen(connection, head, body.clone()));
    if let Answer::Refuse { code, message } = &service.habits.answer {
        return refuse(respond, &Status::new(*code, message));
    }
    let value = match increment_by(body) {
        Ok(value) if value >= 0 => value,
        Ok(_) => return refuse(respond, &Status::new(INVALID_ARGUMENT, "Value cannot be negative")),
        Err(status) => return refuse(respond, &status),
    };
    let sum = service.count.add(i64::from(value)).await;
    match service.habits.answer {
        Answer::After(delay) => pause::until(arrived + delay).await.map_err(|_| Reason::INTERNAL_ERROR)?,
        Answer::Never => return poll_fn(|context| respond.poll_reset(context)).await.map(drop),
        Answer::Reset(error) => {
            respond.send_reset(error.into());
            return Ok(());
        }
        Answer::AtOnce | Answer::Refuse { .. } => {}
    }
    let mut reply = Vec::new();
    put_bytes(&mut reply, 1, format!("Incremented value is {sum}").as_bytes());
    let mut stream = begin(&mut respond, None)?;
    stream.send_data(frame(&reply), false)?;
    succeed(stream, None)
}

/// The `value` of an `incrementBy`; the last one counts, and none is zero.
fn increment_by(mut body: Vec<u8>) -> Result<i32, Status> {
    let message = take_message(&mut body).map_err(|fault| Status::new(UNIMPLEMENTED, fault))?;
    let message = message.ok_or_else(|| Status::new(INTERNAL, "expected a message, found the end of the stream"))?;
    let fields = fields(&message).ok_or_else(|| Status::new(INTERNAL, "expected an incrementBy, found other bytes"))?;
    let value = fields.iter().rev().find_map(|field| match field {
        // protobuf sends a negative int32 as ten bytes: its low 32 bits are the number.
        (1, Value::Varint(number)) => Some(*number as i32),
        _ => None,
    });
    Ok(value.unwrap_or(0))
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

async fn read_to_end(mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut bytes = Vec::new();
    while let Some(part) = body.data().await {
        let part = part?;
        body.flow_control().release_capacity(part.len())?;
        bytes.extend(part);
    }
    Ok(bytes)
}

/// Sends the headers that come before messages, with `x-own` if there is any.
pub(super) fn begin(
    respond: &mut SendResponse<Bytes>,
    own: Option<HeaderValue>,
) -> Result<SendStream<Bytes>, h2::Error> {
    let mut response = headers();
    response.headers_mut().extend(own.map(|own| (OWN, own)));
    respond.send_response(response, false)
}

/// Ends a reply well.
pub(super) fn succeed(mut stream: SendStream<Bytes>, own: Option<HeaderValue>) -> Result<(), h2::Error> {
    let own = own.map(|own| (OWN, own));
    stream.send_trailers(HeaderMap::from_iter(own.into_iter().chain([(GRPC_STATUS, HeaderValue::from(0_u16))])))
}

/// Ends a reply with another status, whatever messages it had.
pub(super) fn fail(mut stream: SendStream<Bytes>, status: &Status) -> Result<(), h2::Error> {
    let status = [(GRPC_STATUS, status.code.into()), (GRPC_MESSAGE, status.header())];
    stream.send_trailers(HeaderMap::from_iter(status))
}

const OWN: http::HeaderName = http::HeaderName::from_static("x-own");
const GRPC_STATUS: http::HeaderName = http::HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: http::HeaderName = http::HeaderName::from_static("grpc-message");

/// Ends a call before any message: headers and trailers in one.
pub(super) fn refuse(mut respond: SendResponse<Bytes>, status: &Status) -> Result<(), h2::Error> {
    let mut response = headers();
    response.headers_mut().insert(GRPC_STATUS, status.code.into());
    response.headers_mut().insert(GRPC_MESSAGE, status.header());
    respond.send_response(response, true).map(drop)
}

fn headers() -> Response<()> {
    let mut response = Response::new(());
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}
