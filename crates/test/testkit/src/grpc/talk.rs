//! `talk.Talk`: streams in every direction, and the health check of gRPC. `proto/talk.proto` describes its behaviour.

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use plimsoll_demo::message::{Value, fields, frame, put_bytes, take_message};
use plimsoll_demo::reply::{INVALID_ARGUMENT, Status, UNIMPLEMENTED, begin, fail, refuse, succeed};

/// The name and text of the service's `.proto` file.
pub(super) const PROTO: (&str, &str) = ("talk.proto", super::TALK);

/// The prefix of the paths of its methods.
pub(super) const SERVICE: &str = "/talk.Talk/";

/// The path of the health check, which knows this service and the server as a whole.
pub(super) const HEALTH: &str = "/grpc.health.v1.Health/Check";

/// Metadata that the server returns in head and trailers.
const OWN: HeaderName = HeaderName::from_static("x-own");

const NOT_FOUND: u16 = 5;
const SERVING: u8 = 1;

/// Serves a call of one of the methods.
pub(super) async fn answer(head: &Parts, body: RecvStream, mut respond: SendResponse<Bytes>) -> Result<(), h2::Error> {
    let mut words = Words { body, buffer: Vec::new() };
    let own = HeaderMap::from_iter(head.headers.get(&OWN).map(|own| (OWN, own.clone())));
    let mut answers = match &head.uri.path()[SERVICE.len()..] {
        "Say" | "Repeat" | "Gather" | "Chat" => begin(&mut respond, own.clone())?,
        other => return refuse(respond, &Status::new(UNIMPLEMENTED, format!("there is no {other}"))),
    };
    let method = &head.uri.path()[SERVICE.len()..];
    let mut gathered = String::new();
    while let Some(word) = words.next().await? {
        match (method, word.text.as_str()) {
            (_, "fail") => return fail(answers, &Status::new(INVALID_ARGUMENT, "as told")),
            ("Gather", text) => gathered.push_str(text),
            ("Repeat", _) => (0..word.times).try_for_each(|_| word.send(&mut answers))?,
            _ => word.send(&mut answers)?,
        }
    }
    if method == "Gather" {
        Word { text: gathered, times: 0 }.send(&mut answers)?;
    }
    succeed(answers, own)
}

/// Serves a health check.
pub(super) async fn health(body: RecvStream, mut respond: SendResponse<Bytes>) -> Result<(), h2::Error> {
    let mut words = Words { body, buffer: Vec::new() };
    // The name of a service is the first field here too.
    let asked = words.next().await?.unwrap_or_default();
    if !matches!(asked.text.as_str(), "" | "talk.Talk") {
        return refuse(respond, &Status::new(NOT_FOUND, "unknown service"));
    }
    let mut answers = begin(&mut respond, HeaderMap::new())?;
    answers.send_data(frame(&[0x08, SERVING]), false)?;
    succeed(answers, HeaderMap::new())
}

#[derive(Debug, Default)]
struct Word {
    text: String,
    times: u64,
}

impl Word {
    fn read(message: &[u8]) -> Option<Word> {
        let mut word = Word::default();
        for field in fields(message)? {
            match field {
                (1, Value::Bytes(text)) => word.text = String::from_utf8_lossy(text).into_owned(),
                (2, Value::Varint(times)) => word.times = times,
                _ => {}
            }
        }
        Some(word)
    }

    fn send(&self, answers: &mut SendStream<Bytes>) -> Result<(), h2::Error> {
        let mut message = Vec::new();
        put_bytes(&mut message, 1, self.text.as_bytes());
        answers.send_data(frame(&message), false)
    }
}

/// The words of a client, one by one.
struct Words {
    body: RecvStream,
    buffer: Vec<u8>,
}

impl Words {
    async fn next(&mut self) -> Result<Option<Word>, h2::Error> {
        loop {
            if let Some(message) = take_message(&mut self.buffer).map_err(|_| Reason::PROTOCOL_ERROR)? {
                return Ok(Some(Word::read(&message).ok_or(Reason::PROTOCOL_ERROR)?));
            }
            let Some(part) = self.body.data().await else { return Ok(None) };
            let part = part?;
            self.body.flow_control().release_capacity(part.len())?;
            self.buffer.extend(part);
        }
    }
}
