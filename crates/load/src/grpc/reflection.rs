//! Asks a server for its message types by the gRPC server reflection protocol, version 1 or its
//! older alpha, which differ in name only. One connection, closed before any load is sent.

use super::hpack::Field;
use super::session::{Event, Response, Session};
use super::{OK, prefixed, status_name, unary_message};
use crate::transport::{Broken, Chunk, Dialer, Transport};
use prost::Message;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const VERSIONS: [&str; 2] = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];
const UNIMPLEMENTED: u16 = 12;
const NOT_FOUND: i32 = 5;

/// The parts of `ServerReflectionRequest` that are used here; field numbers are the protocol's.
#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(string, optional, tag = "3")]
    file_by_filename: Option<String>,
    #[prost(string, optional, tag = "4")]
    file_containing_symbol: Option<String>,
}

/// The same of `ServerReflectionResponse`.
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(message, optional, tag = "4")]
    files: Option<Files>,
    #[prost(message, optional, tag = "7")]
    error: Option<Refusal>,
}

#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    encoded: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Refusal {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// The types that the services of `symbols` need.
pub(super) fn ask(
    dialer: &Dialer,
    authority: &str,
    symbols: &[&str],
    timeout: Duration,
) -> Result<DescriptorPool, String> {
    let mut server = Server::connect(dialer, authority, timeout)?;
    let mut known: Vec<FileDescriptorProto> = Vec::new();
    for symbol in symbols {
        let request = Request { file_containing_symbol: Some((*symbol).to_owned()), ..Request::default() };
        server.add_files(&request, &format!("service `{symbol}`"), &mut known)?;
    }
    while let Some(missing) = missing_import(&known) {
        let request = Request { file_by_filename: Some(missing.clone()), ..Request::default() };
        server.add_files(&request, &format!("file `{missing}`"), &mut known)?;
        if missing_import(&known).as_ref() == Some(&missing) {
            return Err(format!("the server's reflection names a file `{missing}` but does not give it"));
        }
    }
    DescriptorPool::from_file_descriptor_set(FileDescriptorSet { file: known })
        .map_err(|error| format!("the message types from the server's reflection do not fit together: {error}"))
}

fn missing_import(known: &[FileDescriptorProto]) -> Option<String> {
    let have: BTreeSet<&str> = known.iter().map(FileDescriptorProto::name).collect();
    known.iter().flat_map(|file| &file.dependency).find(|import| !have.contains(import.as_str())).cloned()
}

/// A connection on which one request is made at a time.
struct Server {
    transport: Transport,
    session: Session,
    out: Vec<u8>,
    events: Vec<Event>,
    /// The header fields that every request has, then the paths of the versions.
    fields: Vec<Field>,
    version: usize,
    until: Instant,
}

/// Where in the fields the paths begin.
const PATHS: usize = 5;

impl Server {
    fn connect(dialer: &Dialer, authority: &str, timeout: Duration) -> Result<Server, String> {
        let transport = dialer.dial().map_err(|broken| broken.detail)?;
        let mut out = Vec::new();
        let session = Session::open(&mut out);
        let mut server = Server {
            transport,
            session,
            out,
            events: Vec::new(),
            fields: fields(authority, if dialer.tls.is_some() { "https" } else { "http" }),
            version: 0,
            until: Instant::now() + timeout,
        };
        server.wait_for(PollFlags::OUT)?;
        server.transport.connected().map_err(in_words)?;
        while server.session.capacity() == 0 {
            server.move_bytes()?;
        }
        Ok(server)
    }

    fn add_files(&mut self, request: &Request, what: &str, known: &mut Vec<FileDescriptorProto>) -> Result<(), String> {
        let answer = self.call(request)?;
        if let Some(refusal) = answer.error {
            let why = if refusal.code == NOT_FOUND { "does not know it" } else { "refused" };
            return Err(format!(
                "failed to get the types of {what} by reflection: the server {why} ({})",
                refusal.message
            ));
        }
        for encoded in answer.files.unwrap_or_default().encoded {
            let file = FileDescriptorProto::decode(encoded.as_slice())
                .map_err(|error| format!("expected a file descriptor for {what}, found something else: {error}"))?;
            if known.iter().all(|other| other.name() != file.name()) {
                known.push(file);
            }
        }
        Ok(())
    }

    fn call(&mut self, request: &Request) -> Result<Answer, String> {
        loop {
            let response = self.exchange(&prefixed(&request.encode_to_vec()))?;
            match response.grpc_status {
                Some(UNIMPLEMENTED) if self.version + 1 < VERSIONS.len() => self.version += 1,
                Some(UNIMPLEMENTED) => {
                    return Err("the server has no reflection; name its .proto files as `proto` instead".to_owned());
                }
                Some(OK) => {
                    let message = unary_message(&response.body)?;
                    return Answer::decode(message)
                        .map_err(|error| format!("unreadable answer to reflection: {error}"));
                }
                status => {
                    let found = status.map_or("none".to_owned(), status_name);
                    return Err(format!("expected gRPC status OK from the server's reflection, found {found}"));
                }
            }
        }
    }

    fn exchange(&mut self, message: &[u8]) -> Result<Response, String> {
        let ticket = 0;
        // Names that begin with a colon must come before the others.
        let numbers = [PATHS + self.version, 0, 1, 2, 3, 4];
        self.session.request(&self.fields, &numbers, message, ticket, &mut self.out);
        loop {
            for event in std::mem::take(&mut self.events) {
                match event {
                    Event::Begun(_) | Event::More(_) => {}
                    Event::Ended(_, response) => return Ok(response),
                    Event::Dropped(_, text) => return Err(text),
                }
            }
            self.move_bytes()?;
        }
    }

    /// Sends what is to be sent, waits for something to come, and takes it.
    fn move_bytes(&mut self) -> Result<(), String> {
        self.transport.send(&mut self.out).map_err(in_words)?;
        self.wait_for(PollFlags::IN)?;
        let (mut raw, mut plain) = (vec![0; 64 * 1024], Vec::new());
        match self.transport.receive(&mut raw, &mut plain).map_err(in_words)? {
            Chunk::Empty => {}
            Chunk::End => return Err("the server closed the connection while asked for reflection".to_owned()),
            Chunk::Bytes(bytes, _) => {
                self.session
                    .receive(bytes, &mut self.out, &mut self.events)
                    .map_err(|violation| violation.to_string())?;
            }
        }
        self.transport.send(&mut self.out).map_err(in_words)
    }

    fn wait_for(&self, what: PollFlags) -> Result<(), String> {
        let left = self.until.saturating_duration_since(Instant::now());
        let wait = Timespec::try_from(left).map_err(|error| error.to_string())?;
        match poll(&mut [PollFd::new(&self.transport, what)], Some(&wait)) {
            Ok(0) => Err("the server did not answer the request for reflection in time".to_owned()),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn fields(authority: &str, scheme: &str) -> Vec<Field> {
    let common: [(&str, &str); PATHS] = [
        (":method", "POST"),
        (":scheme", scheme),
        (":authority", authority),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let common = common.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let paths = VERSIONS.iter().map(|service| (":path".to_owned(), format!("/{service}/ServerReflectionInfo")));
    common.chain(paths).collect()
}

fn in_words(broken: Broken) -> String {
    broken.detail
}
