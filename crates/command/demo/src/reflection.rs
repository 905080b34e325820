//! Server reflection v1: describes the services and their messages to clients.

use crate::message::{Value, fields, frame, put_bytes, put_number, take_message};
use crate::reply::{INVALID_ARGUMENT, UNIMPLEMENTED, begin, succeed};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::HeaderMap;
use prost::Message;
use protox::file::{File, FileResolver};

const NOT_FOUND: u16 = 5;

/// The files that clients may ask for.
#[derive(Debug)]
pub struct Reflection {
    files: Vec<ProtoFile>,
}

#[derive(Debug)]
struct ProtoFile {
    name: &'static str,
    /// Its `FileDescriptorProto`.
    descriptor: Vec<u8>,
    /// Full names of its services.
    services: Vec<String>,
    /// Full names of its messages.
    messages: Vec<String>,
}

impl Reflection {
    /// The path of the method.
    pub const PATH: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

    /// Offers these files, each a name and a text that imports no other.
    ///
    /// # Panics
    /// When a file does not compile.
    #[must_use]
    pub fn new(files: &[(&'static str, &'static str)]) -> Reflection {
        Reflection { files: files.iter().map(|(name, source)| ProtoFile::compile(name, source)).collect() }
    }

    /// Answers the questions of a call one by one, until the client has no more.
    ///
    /// # Errors
    /// When the stream breaks, or carries something else.
    pub async fn serve(&self, mut questions: RecvStream, mut respond: SendResponse<Bytes>) -> Result<(), h2::Error> {
        let mut answers = begin(&mut respond, HeaderMap::new())?;
        let mut buffer = Vec::new();
        while let Some(part) = questions.data().await {
            let part = part?;
            questions.flow_control().release_capacity(part.len())?;
            buffer.extend(part);
            while let Some(question) = take_message(&mut buffer).map_err(|_| Reason::PROTOCOL_ERROR)? {
                answers.send_data(frame(&self.response(&question)), false)?;
            }
        }
        succeed(answers, HeaderMap::new())
    }

    /// The `ServerReflectionResponse` to a `ServerReflectionRequest`.
    fn response(&self, question: &[u8]) -> Vec<u8> {
        let (field, body) = self.answer(question);
        let mut response = Vec::new();
        put_bytes(&mut response, 2, question);
        put_bytes(&mut response, field, &body);
        response
    }

    /// The field of the response, with its content.
    fn answer(&self, question: &[u8]) -> (u64, Vec<u8>) {
        for (field, value) in fields(question).unwrap_or_default() {
            let Value::Bytes(value) = value else { continue };
            let name = String::from_utf8_lossy(value);
            match field {
                3 => return self.descriptor(&name, |file| file.name == name),
                4 => return self.descriptor(&name, |file| file.defines(&name)),
                5 | 6 => return error(UNIMPLEMENTED, "there are no extensions"),
                7 => return self.services(),
                _ => {}
            }
        }
        error(INVALID_ARGUMENT, "expected a question")
    }

    fn descriptor(&self, name: &str, wanted: impl Fn(&ProtoFile) -> bool) -> (u64, Vec<u8>) {
        let Some(file) = self.files.iter().find(|file| wanted(file)) else {
            return error(NOT_FOUND, &format!("nothing is known of {name}"));
        };
        let mut body = Vec::new();
        put_bytes(&mut body, 1, &file.descriptor);
        (4, body)
    }

    fn services(&self) -> (u64, Vec<u8>) {
        let mut body = Vec::new();
        for name in self.files.iter().flat_map(|file| &file.services) {
            let mut service = Vec::new();
            put_bytes(&mut service, 1, name.as_bytes());
            put_bytes(&mut body, 1, &service);
        }
        (6, body)
    }
}

impl ProtoFile {
    fn compile(name: &'static str, source: &'static str) -> ProtoFile {
        let mut compiler = protox::Compiler::with_file_resolver(Embedded { name, source });
        let set = compiler.open_file(name).expect("what is embedded compiles").file_descriptor_set();
        let file = &set.file[0];
        let full = |name: &str| format!("{}.{name}", file.package());
        ProtoFile {
            name,
            descriptor: file.encode_to_vec(),
            services: file.service.iter().map(|service| full(service.name())).collect(),
            messages: file.message_type.iter().map(|message| full(message.name())).collect(),
        }
    }

    /// True if `symbol` is a message, a service, or a method of a service in this file.
    fn defines(&self, symbol: &str) -> bool {
        let inside = |service: &String| symbol.strip_prefix(service.as_str()).is_some_and(|rest| rest.starts_with('.'));
        let symbols = || self.messages.iter().chain(&self.services);
        symbols().any(|known| known == symbol) || self.services.iter().any(inside)
    }
}

/// Finds a file that is part of the program.
struct Embedded {
    name: &'static str,
    source: &'static str,
}

impl FileResolver for Embedded {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        if name == self.name { File::from_source(name, self.source) } else { Err(protox::Error::file_not_found(name)) }
    }
}

fn error(code: u16, message: &str) -> (u64, Vec<u8>) {
    let mut body = Vec::new();
    put_number(&mut body, 1, code.into());
    put_bytes(&mut body, 2, message.as_bytes());
    (7, body)
}
