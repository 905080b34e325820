//! `[workload]` with `protocol = "grpc"`: unary calls.

use crate::document::{Fault, Faults, did_you_mean, table};
use crate::table::target::{Address, TlsTable};
use crate::table::workload::{Common, Protocol};
use crate::value::{
    Json, Literal, Pairs, PositiveTimeSpan, Problem, Scalar, Scope, Templated, Text, Word, resolve_optional,
};
use plimsoll_model::factor::Level;
use plimsoll_model::workload::{Connect, GRPC_STATUSES, GrpcSchema, GrpcStep, Sequence, Steps};
use serde_json::{Value, json};
use std::path::PathBuf;

table! {
    /// gRPC calls, one after the other, make an iteration.
    struct GrpcTable {
        /// What is spoken with the target.
        #[allow(dead_code)] // read before, to choose this table
        protocol: Literal<Protocol>,
        /// Where calls go: HOST:PORT, http://HOST:PORT or https://HOST:PORT; "{NAME.address}" for a system.
        target: Templated<Address>,
        /// Encryption and how the server is checked. Default: none, unless the target is https://.
        tls: Option<TlsTable>,
        /// When connections are made: "per user", "every iteration" or "shared N". Default: "per user".
        connect: Option<Templated<Connect>>,
        /// The longest that one call, or connecting, may take. Default: "10s".
        timeout: Option<Templated<PositiveTimeSpan>>,
        /// The .proto files that define the calls, relative to the study's folder.
        proto: Option<Vec<Templated<Text>>>,
        /// Folders in which imports of the .proto files are looked up. Default: the folder of each file.
        include: Option<Vec<Templated<Text>>>,
        /// Ask the server for its definitions instead of reading .proto files. Default: false.
        reflection: Option<Literal<bool>>,
        /// The calls of an iteration.
        steps: Vec<GrpcStepTable>,
    }
}

table! {
    /// One unary call and what must come back.
    struct GrpcStepTable {
        /// Name in the results. Default: the method.
        name: Option<Templated<Text>>,
        /// The method: package.Service/Method.
        call: Templated<Call>,
        /// The request message, in protobuf's JSON form. Default: an empty message.
        message: Option<Json>,
        /// Metadata sent with the call.
        metadata: Option<Pairs>,
        /// Deadline sent to the server. Default: none is sent.
        deadline: Option<Templated<PositiveTimeSpan>>,
        /// What must come back. Default: status OK.
        expect: Option<GrpcExpectTable>,
    }
}

table! {
    /// What must come back from a call.
    struct GrpcExpectTable {
        /// The status, by name or number. Default: "OK".
        status: Option<Templated<Status>>,
        /// Demands that the numbers in the replies of a trial are 1, 2, … N, each once.
        sequence: Option<SequenceTable>,
    }
}

table! {
    /// Where the number of a reply stands.
    struct SequenceTable {
        /// Name of the reply's field: a string or an integer.
        field: Templated<Text>,
        /// The text before the number, where the field is a string. Default: none.
        after: Option<Templated<Word>>,
    }
}

impl GrpcTable {
    pub(crate) fn common(&self) -> Common<'_> {
        Common {
            target: &self.target,
            tls: self.tls.as_ref(),
            connect: self.connect.as_ref(),
            timeout: self.timeout.as_ref(),
        }
    }

    pub(crate) fn steps(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Steps> {
        let schema = self.schema(scope, faults);
        let calls: Vec<Option<GrpcStep>> = self.steps.iter().map(|step| step.resolve(scope, faults)).collect();
        Some(Steps::Grpc { schema: schema?, calls: calls.into_iter().collect::<Option<_>>()? })
    }

    fn schema(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<GrpcSchema> {
        let reflection = self.reflection.as_ref().is_some_and(|reflection| reflection.value);
        let files = match (&self.proto, reflection) {
            (None, true) => return Some(GrpcSchema::Reflection),
            (Some(files), false) if !files.is_empty() => files,
            (Some(_), true) => {
                let fault = Fault::error(&self.place, "`workload` has both `proto` and `reflection`");
                faults.add(fault.help("keep the one that the messages are to come from"));
                return None;
            }
            (None | Some(_), false) => {
                let fault = Fault::error(&self.place, "`workload` does not say where its messages are defined");
                faults.add(fault.help("add `proto = [\"file.proto\"]`, or `reflection = true` to ask the server"));
                return None;
            }
        };
        let files = paths(files, scope, faults)?;
        let include = match &self.include {
            Some(folders) => paths(folders, scope, faults)?,
            None => folders_of(&files),
        };
        Some(GrpcSchema::Files { files, include })
    }
}

fn paths(templated: &[Templated<Text>], scope: &Scope<'_>, faults: &mut Faults) -> Option<Vec<PathBuf>> {
    templated.iter().map(|templated| Some(scope.dir.join(templated.resolve(scope, faults)?.0))).collect()
}

/// The folder of each file, once.
fn folders_of(files: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in files.iter().filter_map(|file| file.parent()) {
        if !folders.iter().any(|known| known == folder) {
            folders.push(folder.to_owned());
        }
    }
    folders
}

impl GrpcStepTable {
    /// The name as the study has it, placeholders and all.
    pub(crate) fn name(&self) -> String {
        match &self.name {
            Some(name) => name.as_written().to_owned(),
            None => method_of(self.call.as_written()).to_owned(),
        }
    }

    fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<GrpcStep> {
        let call = self.call.resolve(scope, faults);
        let message = resolve_optional(self.message.as_ref(), |message| message.resolve(scope, faults));
        let metadata = resolve_optional(self.metadata.as_ref(), |metadata| checked_metadata(metadata, scope, faults));
        let deadline = resolve_optional(self.deadline.as_ref(), |deadline| deadline.resolve(scope, faults));
        let status = self.expect.as_ref().and_then(|expect| expect.status.as_ref());
        let status = resolve_optional(status, |status| status.resolve(scope, faults));
        let sequence = self.expect.as_ref().and_then(|expect| expect.sequence.as_ref());
        let sequence = resolve_optional(sequence, |sequence| sequence.resolve(scope, faults));
        Some(GrpcStep {
            name: self.name(),
            call: call?.0,
            message: message?.unwrap_or_else(|| serde_json::json!({})),
            metadata: metadata?.unwrap_or_default(),
            deadline: deadline?.map(|deadline| deadline.0),
            status: status?.map_or(0, |status| status.0),
            sequence: sequence?,
        })
    }
}

impl SequenceTable {
    fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Sequence> {
        let field = self.field.resolve(scope, faults);
        let after = resolve_optional(self.after.as_ref(), |after| after.resolve(scope, faults));
        Some(Sequence { field: field?.0, after: after?.map(|after| after.0).unwrap_or_default() })
    }
}

/// Metadata with names that HTTP/2 can carry and gRPC does not keep for itself.
fn checked_metadata(pairs: &Pairs, scope: &Scope<'_>, faults: &mut Faults) -> Option<Vec<(String, String)>> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    for (name, place) in pairs.names() {
        if name.is_empty() || !name.chars().all(allowed) || name.starts_with("grpc-") {
            let help = "names are lower-case letters, digits, `-`, `_` and `.`, and do not start with `grpc-`";
            faults.add(Fault::error(place, format!("`{name}` cannot be a name of metadata")).help(help));
        }
    }
    let resolved = pairs.resolve(scope, faults)?;
    for (name, value) in &resolved {
        if !value.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
            let place = pairs.place_of(name).unwrap_or(&(0..0)).clone();
            faults.add(Fault::error(&place, format!("the value of `{name}` must be printable ASCII")));
        }
    }
    Some(resolved)
}

/// `package.Service/Method`.
#[derive(Clone, Debug)]
pub(crate) struct Call(String);

fn method_of(call: &str) -> &str {
    call.rsplit_once('/').map_or(call, |(_, method)| method)
}

impl Scalar for Call {
    const EXPECTED: &'static str = "a method such as \"package.Service/Method\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let Level::Text(text) = level else { return Err(Problem::wrong::<Self>(level)) };
        let text = text.strip_prefix('/').unwrap_or(text);
        let identifier = |part: &str| {
            part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        match text.split_once('/') {
            Some((service, method)) if service.split('.').all(identifier) && identifier(method) => {
                Ok(Call(text.to_owned()))
            }
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^/?[A-Za-z_][A-Za-z0-9_.]*/[A-Za-z_][A-Za-z0-9_]*$" })
    }
}

/// A gRPC status code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status(u16);

impl Scalar for Status {
    const EXPECTED: &'static str = "a gRPC status such as \"OK\" or \"NOT_FOUND\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let code = match level {
            Level::Text(text) => GRPC_STATUSES.iter().position(|status| status == text),
            Level::Integer(number) => usize::try_from(*number).ok().filter(|code| *code < GRPC_STATUSES.len()),
            Level::Bool(_) | Level::Number(_) => None,
        };
        let code = code.and_then(|code| u16::try_from(code).ok());
        let wrong = || Problem::wrong::<Self>(level).maybe_help(did_you_mean(&level.to_string(), GRPC_STATUSES));
        code.map(Status).ok_or_else(wrong)
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "enum": GRPC_STATUSES }, { "type": "integer", "minimum": 0, "maximum": 16 }] })
    }
}

#[cfg(test)]
mod tests {
    use crate::table::testing::{faults_of, read_table};
    use crate::table::workload::WorkloadTable;

    const START: &str = "protocol = 'grpc'\ntarget = 'a:1'\nreflection = true\n";

    #[test]
    fn steps_are_named_after_their_methods() {
        let text = format!("{START}steps = [{{ call = 'p.S/One' }}, {{ call = '/S/Two', name = 'second' }}]");
        let workload: WorkloadTable = read_table(&text);
        assert_eq!(workload.in_words(), "gRPC to a:1: One, then second; one connection per user; time-out 10s");
    }

    #[test]
    fn wrong_steps_are_named() {
        for (step, what) in [
            ("{ }", "`call` is missing"),
            ("{ call = 'increment' }", "package.Service/Method"),
            ("{ call = 'S/M', deadline = '0s' }", "above zero"),
            ("{ call = 'S/M', expect = { status = 'NOTFOUND' } }", "did you mean `NOT_FOUND`"),
            ("{ call = 'S/M', expect = { sequence = { } } }", "`field` is missing"),
            ("{ call = 'S/M', mesage = { } }", "did you mean `message`"),
            ("{ call = 'S/M', message = { at = 2020-01-01 } }", "a date or time"),
            ("{ call = 'S/M' }, { call = 'T/M' }", "two steps are named `M`"),
        ] {
            let faults = faults_of::<WorkloadTable>(&format!("{START}steps = [{step}]"));
            assert!(matches!(faults.as_slice(), [fault] if fault.contains(what)), "{step}: {faults:?}");
        }
    }
}
