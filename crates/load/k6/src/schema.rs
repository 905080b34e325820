//! Definitions of gRPC services: `.proto` files compiled at run time, and the conversion of messages between JSON and
//! bytes.

use plimsoll_javascript::{FileError, Program};
use prost::Message;
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, Kind, MessageDescriptor, MethodDescriptor, ReflectMessage,
    SerializeOptions,
};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The definitions that the users of a run have loaded. Each set of files is compiled once.
#[derive(Clone, Debug, Default)]
pub struct Schemas(Arc<Mutex<HashMap<Sources, Arc<Methods>>>>);

/// The source of definitions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sources {
    /// `.proto` files, and the folders that are searched for them and their imports.
    Files { folders: Vec<PathBuf>, files: Vec<String> },
    /// A file with a `FileDescriptorSet`.
    Set(PathBuf),
}

/// The methods that a script can call, by `/package.Service/Method`.
#[derive(Debug)]
pub(crate) struct Methods(HashMap<String, MethodDescriptor>);

impl Schemas {
    /// The methods that these sources define.
    pub(crate) fn load(&self, program: &Arc<Program>, sources: Sources) -> Result<Arc<Methods>, String> {
        // Held during the compilation: other users wait for its result.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(methods) = known.get(&sources) {
            return Ok(Arc::clone(methods));
        }
        let methods = Arc::new(Methods::of(&compile(program, &sources)?));
        known.insert(sources, Arc::clone(&methods));
        Ok(methods)
    }
}

impl Methods {
    pub(crate) fn of(pool: &DescriptorPool) -> Methods {
        let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
        Methods(methods.map(|method| (path_of(&method), method)).collect())
    }

    pub(crate) fn get(&self, path: &str) -> Option<&MethodDescriptor> {
        self.0.get(path)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &MethodDescriptor> {
        let mut methods: Vec<_> = self.0.iter().collect();
        methods.sort_by_key(|(path, _)| *path);
        methods.into_iter().map(|(_, method)| method)
    }
}

/// `/package.Service/Method`
pub(crate) fn path_of(method: &MethodDescriptor) -> String {
    format!("/{}/{}", method.parent_service().full_name(), method.name())
}

fn compile(program: &Arc<Program>, sources: &Sources) -> Result<DescriptorPool, String> {
    match sources {
        Sources::Files { folders, files } => {
            let mut resolver = ChainFileResolver::new();
            resolver.add(Folders { program: Arc::clone(program), folders: folders.clone() });
            resolver.add(GoogleFileResolver::new());
            plimsoll_grpc::proto_files::compile(resolver, files)
                .map_err(|error| format!("failed to compile {}: {error:?}", files.join(", ")))
        }
        Sources::Set(path) => {
            let bytes = program.files().read(path).map_err(|error| format!("couldn't open protoset: {error}"))?;
            plimsoll_grpc::types::of_set(&bytes)
                .map_err(|error| format!("couldn't unmarshal protoset file {}: {error}", path.display()))
        }
    }
}

/// Resolves imports in folders, with the files that a script may read.
struct Folders {
    program: Arc<Program>,
    folders: Vec<PathBuf>,
}

/// Why a file cannot be read. The compiler shows it as a program would, in its debug form.
#[derive(thiserror::Error)]
#[error("{0}")]
struct Unreadable(FileError);

impl fmt::Debug for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FileResolver for Folders {
    /// A file may lie beside the folders too (`../shop.proto`): what may be read is decided by `Files`.
    fn resolve_path(&self, path: &Path) -> Option<String> {
        let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
        path.to_str().map(str::to_owned)
    }

    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        for folder in &self.folders {
            match self.program.files().read(&folder.join(name)) {
                Ok(text) => return File::from_source(name, &String::from_utf8_lossy(&text)),
                Err(FileError::Unreadable { source, .. }) if source.kind() == ErrorKind::NotFound => {}
                Err(other) => return Err(protox::Error::new(Unreadable(other))),
            }
        }
        Err(protox::Error::file_not_found(name))
    }
}

/// Encodes a message from its JSON.
pub(crate) fn encode(kind: &MessageDescriptor, json: &str) -> Result<Vec<u8>, String> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let message = DynamicMessage::deserialize_with_options(kind.clone(), &mut reader, &options);
    let message = message.map_err(|error| {
        format!("unable to serialise request object to protocol buffer: no {}: {error}", kind.full_name())
    })?;
    Ok(message.encode_to_vec())
}

/// Decodes a message as JSON, unset fields included: scripts read those too.
pub(crate) fn decode(kind: &MessageDescriptor, bytes: &[u8]) -> Result<String, String> {
    let message = DynamicMessage::decode(kind.clone(), bytes)
        .map_err(|error| format!("failed to read the server's message as {}: {error}", kind.full_name()))?;
    let options = SerializeOptions::new().skip_default_fields(false);
    let mut json = message
        .serialize_with_options(serde_json::value::Serializer, &options)
        .map_err(|error| format!("unable to convert response object to JSON: {error}"))?;
    add_unset(&message, &mut json);
    Ok(json.to_string())
}

/// Adds `null` for unset messages, at every depth.
fn add_unset(message: &DynamicMessage, json: &mut Value) {
    // Types such as `Timestamp` have a JSON form of their own.
    let Some(object) =
        json.as_object_mut().filter(|_| !message.descriptor().full_name().starts_with("google.protobuf."))
    else {
        return;
    };
    for field in message.descriptor().fields() {
        let Kind::Message(_) = field.kind() else { continue };
        if field.is_list() || field.is_map() {
            add_unset_inside(message.get_field(&field).as_ref(), object, field.json_name());
        } else if message.has_field(&field) {
            if let (Some(inner), Some(json)) =
                (message.get_field(&field).as_message(), object.get_mut(field.json_name()))
            {
                add_unset(inner, json);
            }
        } else if field.containing_oneof().is_none() {
            object.entry(field.json_name()).or_insert(Value::Null);
        }
    }
}

fn add_unset_inside(values: &prost_reflect::Value, object: &mut Map<String, Value>, name: &str) {
    match (values, object.get_mut(name)) {
        (prost_reflect::Value::List(values), Some(Value::Array(items))) => {
            for (value, json) in values.iter().zip(items) {
                value.as_message().into_iter().for_each(|inner| add_unset(inner, json));
            }
        }
        (prost_reflect::Value::Map(values), Some(Value::Object(items))) => {
            for (key, value) in values {
                let inner = value.as_message().zip(items.get_mut(&key_of(key)));
                inner.into_iter().for_each(|(inner, json)| add_unset(inner, json));
            }
        }
        _ => {}
    }
}

/// The key of a map, as its JSON has it.
fn key_of(key: &prost_reflect::MapKey) -> String {
    match key {
        prost_reflect::MapKey::Bool(key) => key.to_string(),
        prost_reflect::MapKey::I32(key) => key.to_string(),
        prost_reflect::MapKey::I64(key) => key.to_string(),
        prost_reflect::MapKey::U32(key) => key.to_string(),
        prost_reflect::MapKey::U64(key) => key.to_string(),
        prost_reflect::MapKey::String(key) => key.clone(),
    }
}

/// The folder of a script, to which its paths are relative.
pub(crate) fn script_folder(program: &Program) -> PathBuf {
    Path::new(program.entry()).parent().map(Path::to_owned).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "syntax = \"proto3\"; package t; enum Kind { NONE = 0; SOME = 1; }
        message In { bool on = 1; Deep deep = 2; } message Deep { string text = 1; }
        message Out { int64 big_number = 1; In in = 2; repeated In many = 3; map<string, In> map = 4; bytes raw = 5;
            double real = 6; Kind kind = 7; oneof one { In this = 8; string that = 9; } optional int32 maybe = 10; }";

    fn out() -> MessageDescriptor {
        let mut resolver = ChainFileResolver::new();
        resolver.add(OneFile);
        let mut compiler = protox::Compiler::with_file_resolver(resolver);
        compiler.open_files(["t.proto"]).expect("it compiles");
        compiler.descriptor_pool().get_message_by_name("t.Out").expect("it is there")
    }

    struct OneFile;

    impl FileResolver for OneFile {
        fn open_file(&self, name: &str) -> Result<File, protox::Error> {
            File::from_source(name, TEXT)
        }
    }

    fn there_and_back(json: &str) -> Value {
        let bytes = encode(&out(), json).expect("a message");
        serde_json::from_str(&decode(&out(), &bytes).expect("a message")).expect("JSON")
    }

    #[test]
    fn all_fields_are_there_on_the_way_back() {
        let empty = serde_json::json!({ "bigNumber": "0", "in": null, "many": [], "map": {}, "raw": "", "real": 0.0, "kind": "NONE" });
        assert_eq!(there_and_back("{}"), empty);
        let json = there_and_back(
            r#"{ "bigNumber": "9007199254740993", "in": { "on": true }, "many": [{ "deep": { "text": "a" } }, {}],
                "map": { "k": {} }, "raw": "AQI=", "real": "NaN", "kind": "SOME", "that": "x", "maybe": 0 }"#,
        );
        let inner = |on: bool| serde_json::json!({ "on": on, "deep": null });
        assert_eq!((&json["bigNumber"], &json["in"]), (&"9007199254740993".into(), &inner(true)));
        assert_eq!(json["many"], serde_json::json!([{ "on": false, "deep": { "text": "a" } }, inner(false)]));
        assert_eq!(json["map"], serde_json::json!({ "k": inner(false) }));
        assert_eq!([&json["raw"], &json["real"], &json["kind"], &json["that"]], ["AQI=", "NaN", "SOME", "x"]);
        assert_eq!((json.get("this"), json.get("maybe")), (None, Some(&0.into())));
    }

    #[test]
    fn messages_that_do_not_fit_are_refused_by_name() {
        for (json, words) in [(r#"{ "nope": 1 }"#, "nope"), (r#"{ "in": 1 }"#, "t.Out"), ("[]", "t.Out")] {
            let fault = encode(&out(), json).expect_err(json);
            assert!(fault.contains(words) && fault.contains("protocol buffer"), "{json}: {fault}");
        }
    }
}
