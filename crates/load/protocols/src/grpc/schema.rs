//! Message types at run time. Compiles `.proto` files without `protoc`, finds calls, and encodes request
//! messages from JSON.

use super::number::NumberField;
use super::prefixed;
use plimsoll_model::workload::GrpcStep;
use prost::Message;
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
};
use protox::file::{ChainFileResolver, GoogleFileResolver, IncludeFileResolver};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The service in `package.Service/Method`.
pub(super) fn service_of(call: &str) -> &str {
    call.rsplit_once('/').map_or(call, |(service, _)| service)
}

/// Compiles the files; imports are looked up in `include` and in the files' own folders.
pub(super) fn compile(files: &[PathBuf], include: &[PathBuf]) -> Result<DescriptorPool, String> {
    if let Some(missing) = files.iter().find(|file| !file.is_file()) {
        return Err(format!("no .proto file at {}", missing.display()));
    }
    let own = files
        .iter()
        .filter_map(|file| file.parent())
        .map(|folder| if folder.as_os_str().is_empty() { Path::new(".").to_owned() } else { folder.to_owned() });
    let mut resolver = ChainFileResolver::new();
    include.iter().cloned().chain(own).for_each(|folder| resolver.add(IncludeFileResolver::new(folder)));
    resolver.add(GoogleFileResolver::new());
    plimsoll_grpc::proto_files::compile(resolver, files).map_err(|error| {
        let place = error.file().map_or(String::new(), |file| format!(" in {file}"));
        format!("failed to compile the .proto files{place}: {error:?}")
    })
}

/// Encodes the request of a call, and finds the field of a sequence check in its reply.
pub(super) fn encode(pool: &DescriptorPool, step: &GrpcStep) -> Result<(Vec<u8>, Option<NumberField>), Vec<String>> {
    let method = method(pool, &step.call).map_err(|fault| vec![fault])?;
    let message = read(&method.input(), &step.message).map_err(|error| {
        let fault = wrong_field(&method.input(), &step.message).unwrap_or_else(|| {
            let known = listed(method.input().fields().map(|field| field.name().to_owned()));
            format!("{error} (its fields: {known})")
        });
        format!("the message of `{}` is no `{}`: {fault}", step.call, method.input().full_name())
    });
    let number = step.sequence.as_ref().map(|sequence| NumberField::new(sequence, &method.output())).transpose();
    match (message, number) {
        (Ok(message), Ok(number)) => Ok((prefixed(&message.encode_to_vec()), number)),
        (message, number) => Err([message.err(), number.err()].into_iter().flatten().collect()),
    }
}

fn read(kind: &MessageDescriptor, json: &Value) -> Result<DynamicMessage, serde_json::Error> {
    DynamicMessage::deserialize_with_options(kind.clone(), json, &DeserializeOptions::new().deny_unknown_fields(true))
}

/// Describes the first field of the message with an unfit value. The library's own error names neither the
/// field nor its type, so each field is read alone.
fn wrong_field(kind: &MessageDescriptor, json: &Value) -> Option<String> {
    json.as_object()?.iter().find_map(|(name, value)| {
        let field = kind.get_field_by_json_name(name).or_else(|| kind.get_field_by_name(name))?;
        let alone = Value::Object([(name.clone(), value.clone())].into_iter().collect());
        read(kind, &alone).err()?;
        match field.kind() {
            // The fault is in a field of the inner message.
            Kind::Message(inner) if value.is_object() && !field.is_map() => wrong_field(&inner, value),
            _ => Some(format!("field `{}` must be {}, not {value}", field.full_name(), type_of(&field))),
        }
    })
}

/// The type of a field, to follow "must be".
fn type_of(field: &FieldDescriptor) -> String {
    let kind = field.kind();
    if field.is_map() {
        "a map".to_owned()
    } else if field.is_list() {
        format!("a list of {kind:?}")
    } else {
        format!("of type {kind:?}")
    }
}

fn method(pool: &DescriptorPool, call: &str) -> Result<MethodDescriptor, String> {
    let Some((service_name, method_name)) = call.rsplit_once('/') else {
        return Err(format!("expected a call as `package.Service/Method`, found `{call}`"));
    };
    let Some(service) = pool.get_service_by_name(service_name) else {
        let known = listed(pool.services().map(|service| service.full_name().to_owned()));
        return Err(format!("no service `{service_name}` for the call `{call}`; the services are {known}"));
    };
    let Some(method) = service.methods().find(|method| method.name() == method_name) else {
        let known = listed(service.methods().map(|method| method.name().to_owned()));
        return Err(format!("no method `{method_name}` in service `{service_name}`; its methods are {known}"));
    };
    if method.is_client_streaming() || method.is_server_streaming() {
        return Err(format!("`{call}` is a streaming call; only unary calls can be made"));
    }
    Ok(method)
}

/// Lists names as `` `a`, `b` ``, or `none`.
pub(super) fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_of_the_wrong_type_is_named_with_its_field() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("m.proto");
        let text = "syntax = \"proto3\"; package m; message In { bool on = 1; } \
            message Out { int64 value = 1; repeated uint32 many = 2; In inner = 3; map<string, int32> map = 4; }";
        std::fs::write(&file, text).expect("a file");
        let pool = compile(&[file], &[]).expect("a pool");
        let kind = pool.get_message_by_name("m.Out").expect("a message");
        for (json, fault) in [
            (json!({ "value": "one" }), Some("field `m.Out.value` must be of type int64, not \"one\"")),
            (json!({ "value": 1, "many": [-1] }), Some("field `m.Out.many` must be a list of uint32, not [-1]")),
            (json!({ "inner": { "on": 1 } }), Some("field `m.In.on` must be of type bool, not 1")),
            (json!({ "inner": true }), Some("field `m.Out.inner` must be of type m.In, not true")),
            (json!({ "map": 1 }), Some("field `m.Out.map` must be a map, not 1")),
            (json!({ "value": 1, "many": [1], "inner": { "on": true } }), None),
            (json!({ "valeu": 1 }), None),
            (json!(1), None),
        ] {
            assert_eq!(wrong_field(&kind, &json).as_deref(), fault, "{json}");
        }
    }
}
