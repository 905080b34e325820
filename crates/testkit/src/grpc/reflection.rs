//! Server reflection v1: tells clients which services there are and what their messages hold.

use super::call::{INVALID_ARGUMENT, UNIMPLEMENTED, begin, succeed};
use super::wire::{Value, fields, frame, put_bytes, put_number, take_message};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use prost::Message;
use protox::file::{File, FileResolver};
use std::sync::LazyLock;

pub(super) const PATH: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

const FILE: &str = "counter.proto";
const SOURCE: &str = include_str!("../../proto/counter.proto");
const SERVICES: [&str; 2] = ["counter.incrementCounter", "grpc.reflection.v1.ServerReflection"];
const SYMBOLS: [&str; 4] =
    ["counter.incrementCounter", "counter.incrementCounter.increment", "counter.incrementBy", "counter.status"];
const NOT_FOUND: u16 = 5;

/// `counter.proto` as a `FileDescriptorProto`.
static DESCRIPTOR: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut compiler = protox::Compiler::with_file_resolver(Embedded);
    let set = compiler.open_file(FILE).expect("counter.proto compiles").file_descriptor_set();
    set.file[0].encode_to_vec()
});

/// Finds the one file that is part of the program.
struct Embedded;

impl FileResolver for Embedded {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        if name == FILE { File::from_source(FILE, SOURCE) } else { Err(protox::Error::file_not_found(name)) }
    }
}

/// Answers questions one by one until the client has no more.
pub(super) async fn serve(mut questions: RecvStream, mut respond: SendResponse<Bytes>) -> Result<(), h2::Error> {
    let mut answers = begin(&mut respond)?;
    let mut buffer = Vec::new();
    while let Some(part) = questions.data().await {
        let part = part?;
        questions.flow_control().release_capacity(part.len())?;
        buffer.extend(part);
        while let Some(question) = take_message(&mut buffer).map_err(|_| Reason::PROTOCOL_ERROR)? {
            answers.send_data(frame(&response(&question)), false)?;
        }
    }
    succeed(answers)
}

/// The `ServerReflectionResponse` to a `ServerReflectionRequest`.
fn response(question: &[u8]) -> Vec<u8> {
    let (field, body) = answer(question);
    let mut response = Vec::new();
    put_bytes(&mut response, 2, question);
    put_bytes(&mut response, field, &body);
    response
}

/// The field of the response, and what it holds.
fn answer(question: &[u8]) -> (u64, Vec<u8>) {
    for (field, value) in fields(question).unwrap_or_default() {
        let Value::Bytes(value) = value else { continue };
        let name = String::from_utf8_lossy(value);
        match field {
            3 if name == FILE => return descriptor(),
            4 if SYMBOLS.contains(&name.as_ref()) => return descriptor(),
            3 | 4 => return error(NOT_FOUND, &format!("nothing is known of {name}")),
            5 | 6 => return error(UNIMPLEMENTED, "there are no extensions"),
            7 => return services(),
            _ => {}
        }
    }
    error(INVALID_ARGUMENT, "expected a question")
}

fn descriptor() -> (u64, Vec<u8>) {
    let mut body = Vec::new();
    put_bytes(&mut body, 1, &DESCRIPTOR);
    (4, body)
}

fn services() -> (u64, Vec<u8>) {
    let mut body = Vec::new();
    for name in SERVICES {
        let mut service = Vec::new();
        put_bytes(&mut service, 1, name.as_bytes());
        put_bytes(&mut body, 1, &service);
    }
    (6, body)
}

fn error(code: u16, message: &str) -> (u64, Vec<u8>) {
    let mut body = Vec::new();
    put_number(&mut body, 1, code.into());
    put_bytes(&mut body, 2, message.as_bytes());
    (7, body)
}
