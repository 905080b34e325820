//! The reflection protocol of gRPC, by which a server tells of its types: what it is asked, one question after the
//! other, and what comes of the answers. Version 1 and its older alpha differ in name only.

use crate::types;
use prost::Message;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::FileDescriptorProto;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;

/// The method that takes the questions, of each version; the newer one first.
pub const PATHS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

const NOT_FOUND: i32 = 5;

/// What is still to be asked, and what is known.
#[derive(Debug)]
pub struct Inquiry {
    open: VecDeque<Subject>,
    /// What the last question was about.
    asked: Subject,
    known: Vec<FileDescriptorProto>,
}

/// What a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    /// Which services there are.
    Services,
    /// The file that defines a service.
    Service(String),
    /// A file that another one imports.
    File(String),
}

impl Inquiry {
    /// One about all services that the server names.
    #[must_use]
    pub fn about_all() -> Inquiry {
        Inquiry { open: [Subject::Services].into(), asked: Subject::Services, known: Vec::new() }
    }

    /// One about these services.
    #[must_use]
    pub fn about<'a>(services: impl IntoIterator<Item = &'a str>) -> Inquiry {
        let open = services.into_iter().map(|name| Subject::Service(name.to_owned())).collect();
        Inquiry { open, asked: Subject::Services, known: Vec::new() }
    }

    /// The next question, as a message; None where all is known.
    pub fn question(&mut self) -> Option<Vec<u8>> {
        self.asked = match self.open.pop_front() {
            Some(subject) => subject,
            None => Subject::File(self.missing_import()?),
        };
        Some(self.asked.question().encode_to_vec())
    }

    /// Takes the message that answers the last question.
    ///
    /// # Errors
    /// It is none, or the server refuses.
    pub fn take(&mut self, message: &[u8]) -> Result<(), String> {
        let answer = Response::decode(message)
            .map_err(|error| format!("expected an answer to reflection, found other bytes: {error}"))?;
        if let Some(refusal) = answer.refusal {
            let why = if refusal.code == NOT_FOUND { "does not know it" } else { "refused" };
            let (asked, message) = (&self.asked, refusal.message);
            return Err(format!("failed to get the types of {asked} by reflection: the server {why} ({message})"));
        }
        // Nobody calls reflection itself by its types, and not every server knows those.
        let services = answer.services.unwrap_or_default().all.into_iter().map(|service| service.name);
        let services = services.filter(|name| !name.starts_with("grpc.reflection."));
        self.open.extend(services.map(Subject::Service));
        answer.files.unwrap_or_default().encoded.iter().try_for_each(|file| self.add(file))?;
        match &self.asked {
            Subject::File(name) if self.missing_import().as_ref() == Some(name) => {
                Err(format!("the server's reflection names a file `{name}` but does not give it"))
            }
            _ => Ok(()),
        }
    }

    /// The types, when nothing is left to be asked.
    ///
    /// # Errors
    /// They do not fit together.
    pub fn pool(self) -> Result<DescriptorPool, String> {
        types::of_files(self.known)
            .map_err(|error| format!("the message types from the server's reflection do not fit together: {error}"))
    }

    fn add(&mut self, file: &[u8]) -> Result<(), String> {
        let file = FileDescriptorProto::decode(file)
            .map_err(|error| format!("expected a file descriptor for {}, found something else: {error}", self.asked))?;
        if self.known.iter().all(|other| other.name() != file.name()) {
            self.known.push(file);
        }
        Ok(())
    }

    fn missing_import(&self) -> Option<String> {
        let have: BTreeSet<&str> = self.known.iter().map(FileDescriptorProto::name).collect();
        self.known.iter().flat_map(|file| &file.dependency).find(|import| !have.contains(import.as_str())).cloned()
    }
}

impl Subject {
    fn question(&self) -> Question {
        match self {
            Subject::Services => Question { list_services: Some("*".to_owned()), ..Question::default() },
            Subject::Service(name) => Question { file_containing_symbol: Some(name.clone()), ..Question::default() },
            Subject::File(name) => Question { file_by_filename: Some(name.clone()), ..Question::default() },
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Services => f.write_str("its services"),
            Subject::Service(name) => write!(f, "service `{name}`"),
            Subject::File(name) => write!(f, "file `{name}`"),
        }
    }
}

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
struct Response {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, imports: &[&str]) -> Vec<u8> {
        let dependency = imports.iter().map(|import| (*import).to_owned()).collect();
        FileDescriptorProto { name: Some(name.to_owned()), dependency, ..FileDescriptorProto::default() }
            .encode_to_vec()
    }

    fn files(encoded: Vec<Vec<u8>>) -> Vec<u8> {
        Response { files: Some(Files { encoded }), ..Response::default() }.encode_to_vec()
    }

    fn asked(inquiry: &mut Inquiry) -> Option<Question> {
        inquiry.question().map(|message| Question::decode(message.as_slice()).expect("a question"))
    }

    #[test]
    fn services_are_asked_for_and_then_what_they_import() {
        let mut inquiry = Inquiry::about_all();
        assert_eq!(asked(&mut inquiry), Some(Subject::Services.question()));
        let all = ["a.A", "grpc.reflection.v1.ServerReflection", "b.B"].map(|name| Service { name: name.to_owned() });
        let services = Response { services: Some(Services { all: all.to_vec() }), ..Response::default() };
        inquiry.take(&services.encode_to_vec()).expect("services");
        assert_eq!(asked(&mut inquiry), Some(Subject::Service("a.A".to_owned()).question()));
        inquiry.take(&files(vec![named("a.proto", &["c.proto"])])).expect("a file");
        assert_eq!(asked(&mut inquiry), Some(Subject::Service("b.B".to_owned()).question()));
        inquiry.take(&files(vec![named("b.proto", &["a.proto"]), named("a.proto", &[])])).expect("files");
        assert_eq!(asked(&mut inquiry), Some(Subject::File("c.proto".to_owned()).question()));
        inquiry.take(&files(vec![named("c.proto", &[])])).expect("a file");
        assert_eq!(asked(&mut inquiry), None);
        assert_eq!(inquiry.pool().expect("types").files().count(), 3);
    }

    #[test]
    fn what_a_server_does_not_tell_is_named() {
        let refused = |code| {
            let refusal = Some(Refusal { code, message: "no".to_owned() });
            Response { refusal, ..Response::default() }.encode_to_vec()
        };
        let cases = [
            (refused(NOT_FOUND), "service `a.A` by reflection: the server does not know it (no)"),
            (refused(7), "the server refused (no)"),
            (vec![0xff], "found other bytes"),
            (files(vec![vec![0xff]]), "a file descriptor for service `a.A`"),
        ];
        for (answer, words) in cases {
            let mut inquiry = Inquiry::about(["a.A"]);
            asked(&mut inquiry).expect("a question");
            let fault = inquiry.take(&answer).expect_err(words);
            assert!(fault.contains(words), "{fault}");
        }
    }

    #[test]
    fn a_file_that_is_never_given_is_not_asked_for_again() {
        let mut inquiry = Inquiry::about(["a.A"]);
        asked(&mut inquiry).expect("a question");
        inquiry.take(&files(vec![named("a.proto", &["gone.proto"])])).expect("a file");
        asked(&mut inquiry).expect("a question");
        let fault = inquiry.take(&files(Vec::new())).expect_err("it is not there");
        assert!(fault.contains("names a file `gone.proto` but does not give it"), "{fault}");
    }
}
