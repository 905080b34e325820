//! Message types at run time: `.proto` files compiled without `protoc`, calls looked up, request
//! messages encoded from their JSON form.

use super::number::NumberIn;
use super::prefixed;
use plimsoll_model::workload::GrpcStep;
use prost::Message;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, MethodDescriptor};
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
    let folders: Vec<PathBuf> = include.iter().cloned().chain(own).collect();
    let compiled = protox::Compiler::new(folders).and_then(|mut compiler| {
        compiler.include_imports(true);
        compiler.open_files(files)?;
        Ok(compiler.descriptor_pool())
    });
    compiled.map_err(|error| {
        // The plain text says what, the debug text also where.
        let place = error.file().map_or(String::new(), |file| format!(" in {file}"));
        format!("failed to compile the .proto files{place}: {error:?}")
    })
}

/// The encoded request of a call, and where in its reply to look for a number.
pub(super) fn encode(pool: &DescriptorPool, step: &GrpcStep) -> Result<(Vec<u8>, Option<NumberIn>), Vec<String>> {
    let method = method(pool, &step.call).map_err(|fault| vec![fault])?;
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let message = DynamicMessage::deserialize_with_options(method.input(), &step.message, &options).map_err(|error| {
        let known: Vec<String> = method.input().fields().map(|field| format!("`{}`", field.name())).collect();
        format!(
            "the message of `{}` is no `{}`: {error} (its fields: {})",
            step.call,
            method.input().full_name(),
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        )
    });
    let number = step.sequence.as_ref().map(|sequence| NumberIn::new(sequence, &method.output())).transpose();
    match (message, number) {
        (Ok(message), Ok(number)) => Ok((prefixed(&message.encode_to_vec()), number)),
        (message, number) => Err([message.err(), number.err()].into_iter().flatten().collect()),
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

fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
