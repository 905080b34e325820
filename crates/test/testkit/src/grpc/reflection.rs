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

/// The files that are part of the program, by name.
const FILES: [(&str, &str); 2] =
    [("counter.proto", include_str!("../../proto/counter.proto")), ("talk.proto", super::TALK)];
/// Those that can be asked for: whoever is told of reflection itself wants its file too.
const SERVICES: [&str; 2] = ["counter.incrementCounter", "talk.Talk"];
const NOT_FOUND: u16 = 5;

/// Each file as a `FileDescriptorProto`.
static DESCRIPTORS: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    FILES.map(|(name, _)| {
        let mut compiler = protox::Compiler::with_file_resolver(Embedded);
        let set = compiler.open_file(name).expect("what is embedded compiles").file_descriptor_set();
        set.file[0].encode_to_vec()
    })
});

/// Finds the files that are part of the program.
struct Embedded;

impl FileResolver for Embedded {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let found = FILES.into_iter().find(|(known, _)| *known == name);
        found.map_or_else(|| Err(protox::Error::file_not_found(name)), |(name, text)| File::from_source(name, text))
    }
}

/// The file that defines a symbol.
fn defining(symbol: &str) -> Option<usize> {
    let package = symbol.split('.').next()?;
    let known = ["counter.incrementBy", "counter.status", "talk.Word"].contains(&symbol)
        || SERVICES.iter().any(|service| {
            symbol == *service || symbol.strip_prefix(service).is_some_and(|rest| rest.starts_with('.'))
        });
    FILES.iter().position(|(name, _)| known && name.strip_suffix(".proto") == Some(package))
}

/// Answers questions one by one until the client has no more.
pub(super) async fn serve(mut questions: RecvStream, mut respond: SendResponse<Bytes>) -> Result<(), h2::Error> {
    let mut answers = begin(&mut respond, None)?;
    let mut buffer = Vec::new();
    while let Some(part) = questions.data().await {
        let part = part?;
        questions.flow_control().release_capacity(part.len())?;
        buffer.extend(part);
        while let Some(question) = take_message(&mut buffer).map_err(|_| Reason::PROTOCOL_ERROR)? {
            answers.send_data(frame(&response(&question)), false)?;
        }
    }
    succeed(answers, None)
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
            3 | 4 => {
                let by_name = FILES.iter().position(|(known, _)| field == 3 && *known == name);
                if let Some(file) = by_name.or_else(|| defining(&name).filter(|_| field == 4)) {
                    return descriptor(file);
                }
                return error(NOT_FOUND, &format!("nothing is known of {name}"));
            }
            5 | 6 => return error(UNIMPLEMENTED, "there are no extensions"),
            7 => return services(),
            _ => {}
        }
    }
    error(INVALID_ARGUMENT, "expected a question")
}

fn descriptor(file: usize) -> (u64, Vec<u8>) {
    let mut body = Vec::new();
    put_bytes(&mut body, 1, &DESCRIPTORS[file]);
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
