//! Asks a server for its message types, by the reflection protocol of gRPC, version 1 or its older alpha, which differ
//! in name only.

use super::schema::Methods;
use super::status;
use crate::operations::{Event, GrpcCall, GrpcEnd, GrpcEvent, K6, Metadata, Op};
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_script::{Event as Told, EventLoop, OpId};
use prost::Message;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};
use rquickjs::{Ctx, Result};
use std::collections::BTreeSet;

const VERSIONS: [&str; 2] = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/// The parts of `ServerReflectionRequest` that are used here; field numbers are the protocol's.
#[derive(Clone, PartialEq, Message)]
struct Question {
    #[prost(string, optional, tag = "3")]
    file_by_filename: Option<String>,
    #[prost(string, optional, tag = "4")]
    file_containing_symbol: Option<String>,
    #[prost(string, optional, tag = "7")]
    list_services: Option<String>,
}

/// The same of `ServerReflectionResponse`.
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(message, optional, tag = "4")]
    files: Option<Files>,
    #[prost(message, optional, tag = "6")]
    services: Option<Services>,
    #[prost(message, optional, tag = "7")]
    refusal: Option<Refusal>,
}

#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    encoded: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    all: Vec<Service>,
}

#[derive(Clone, PartialEq, Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Refusal {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// All methods of the server, or why they are not known.
pub(super) fn ask(
    ctx: &Ctx<'_>,
    connection: OpId,
    metadata: &Metadata,
    timeout: Nanos,
) -> Result<std::result::Result<Methods, String>> {
    let until = EventLoop::<K6>::of(ctx)?.now().after(timeout);
    let mut why = String::new();
    for version in VERSIONS {
        let mut talk = Talk::begin(ctx, connection, version, metadata, until)?;
        let asked = talk.all_files(ctx)?;
        talk.end(ctx)?;
        match asked {
            Ok(file) => return Ok(methods(file)),
            Err(end) if end.status == status::UNIMPLEMENTED => why = "the server has no reflection".to_owned(),
            Err(end) => return Ok(Err(format!("failed to ask for reflection: {}", end.message))),
        }
    }
    Ok(Err(why))
}

fn methods(file: Vec<FileDescriptorProto>) -> std::result::Result<Methods, String> {
    let pool = DescriptorPool::from_file_descriptor_set(FileDescriptorSet { file });
    let pool =
        pool.map_err(|error| format!("the message types from the server's reflection do not fit together: {error}"))?;
    Ok(Methods::of(&pool))
}

/// One stream of questions and answers.
struct Talk {
    id: OpId,
    timer: OpId,
}

type Asked<T> = Result<std::result::Result<T, GrpcEnd>>;

impl Talk {
    fn begin(ctx: &Ctx<'_>, connection: OpId, version: &str, metadata: &Metadata, until: Instant) -> Result<Talk> {
        let events = EventLoop::<K6>::of(ctx)?;
        let path = format!("/{version}/ServerReflectionInfo");
        let name = path.as_str().into();
        let call = GrpcCall { connection, path, metadata: metadata.clone(), timeout: None, message: None, name };
        Ok(Talk { id: events.start(Op::GrpcCall(Box::new(call))), timer: events.start_timer(until) })
    }

    /// The files of all services, with what they import.
    fn all_files(&mut self, ctx: &Ctx<'_>) -> Asked<Vec<FileDescriptorProto>> {
        let list = Question { list_services: Some("*".to_owned()), ..Question::default() };
        let services = match self.answer(ctx, &list)? {
            Ok(answer) => answer.services.unwrap_or_default().all,
            Err(end) => return Ok(Err(end)),
        };
        let mut known = Vec::new();
        // Nobody calls reflection itself by its types, and not every server knows those.
        for service in services.into_iter().filter(|service| !service.name.starts_with("grpc.reflection.")) {
            let question = Question { file_containing_symbol: Some(service.name), ..Question::default() };
            if let Err(end) = self.add_files(ctx, &question, &mut known)? {
                return Ok(Err(end));
            }
        }
        while let Some(missing) = missing_import(&known) {
            let question = Question { file_by_filename: Some(missing.clone()), ..Question::default() };
            if let Err(end) = self.add_files(ctx, &question, &mut known)? {
                return Ok(Err(end));
            }
            if missing_import(&known).as_ref() == Some(&missing) {
                return Ok(Err(failed(format!("it names a file `{missing}` but does not give it"))));
            }
        }
        Ok(Ok(known))
    }

    fn add_files(&mut self, ctx: &Ctx<'_>, question: &Question, known: &mut Vec<FileDescriptorProto>) -> Asked<()> {
        let answer = match self.answer(ctx, question)? {
            Ok(answer) => answer,
            Err(end) => return Ok(Err(end)),
        };
        for encoded in answer.files.unwrap_or_default().encoded {
            match FileDescriptorProto::decode(encoded.as_slice()) {
                Ok(file) if known.iter().all(|other| other.name() != file.name()) => known.push(file),
                Ok(_) => {}
                Err(error) => return Ok(Err(failed(format!("expected a file descriptor: {error}")))),
            }
        }
        Ok(Ok(()))
    }

    fn answer(&mut self, ctx: &Ctx<'_>, question: &Question) -> Asked<Answer> {
        let events = EventLoop::<K6>::of(ctx)?;
        events.tell(Op::GrpcSend(self.id, question.encode_to_vec()));
        loop {
            let (_, Told::Answer(Event::Grpc(event))) = events.next(ctx, &[self.id, self.timer])? else {
                return Ok(Err(failed("the server did not answer in time".to_owned())));
            };
            match *event {
                GrpcEvent::Message(message) => return Ok(read(&message)),
                GrpcEvent::Ended(end) => return Ok(Err(end)),
                _ => {}
            }
        }
    }

    fn end(self, ctx: &Ctx<'_>) -> Result<()> {
        let events = EventLoop::<K6>::of(ctx)?;
        events.tell(Op::GrpcEnd(self.id));
        events.cancel(self.id);
        events.cancel(self.timer);
        Ok(())
    }
}

fn read(message: &[u8]) -> std::result::Result<Answer, GrpcEnd> {
    let answer = Answer::decode(message).map_err(|error| failed(format!("unreadable answer: {error}")))?;
    match answer.refusal {
        Some(refusal) => Err(failed(format!("{} (code {})", refusal.message, refusal.code))),
        None => Ok(answer),
    }
}

fn failed(message: String) -> GrpcEnd {
    GrpcEnd { status: status::INTERNAL, message, ..GrpcEnd::default() }
}

fn missing_import(known: &[FileDescriptorProto]) -> Option<String> {
    let have: BTreeSet<&str> = known.iter().map(FileDescriptorProto::name).collect();
    known.iter().flat_map(|file| &file.dependency).find(|import| !have.contains(import.as_str())).cloned()
}
