//! `[workload]` with `script`: users that run a script for k6.

use crate::document::{Faults, Span, table};
use crate::value::{
    Bytes, Pairs, PositiveTimeSpan, Problem, Scalar, Scope, Templated, Text, resolve_all, resolve_optional, written_or,
};
use plimsoll_model::factor::{Assignment, Level};
use plimsoll_model::script::{Script, ScriptLimits};
use plimsoll_model::workload::{Connect, Steps, Workload};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

table! {
    /// A script for k6 that each user runs, again and again.
    struct ScriptTable {
        /// The script, .js or .ts, relative to the study's folder.
        script: Templated<ScriptFile>,
        /// The function that is an iteration: "default", or another one that the script exports. Default: "default".
        exec: Option<Templated<Text>>,
        /// What the script sees as `__ENV`; of Plimsoll's own environment it sees nothing.
        env: Option<Pairs>,
        /// Folders besides the script's project from which it may read, relative to the study's folder.
        files: Option<Vec<Templated<Text>>>,
        /// What a user may use up before it is stopped.
        limits: Option<LimitsTable>,
        /// Tags of everything that the script measures.
        tags: Option<Pairs>,
        /// The longest that one request may take where the script does not say. Default: "60s".
        timeout: Option<Templated<PositiveTimeSpan>>,
    }
}

table! {
    /// What one user of a script may use up before it is stopped for good.
    struct LimitsTable {
        /// Memory of the script. Default: "64MiB".
        memory: Option<Templated<Memory>>,
        /// Stack of the script: how deep calls may go. Default: "1MiB".
        stack: Option<Templated<Stack>>,
        /// How long it may run without waiting for anything. Default: "1s".
        busy: Option<Templated<PositiveTimeSpan>>,
        /// How long an iteration may take. Default: as long as it takes.
        iteration: Option<Templated<PositiveTimeSpan>>,
    }
}

type Memory = Bytes<{ 1 << 20 }, { 64 << 30 }>;
type Stack = Bytes<{ 64 << 10 }, { 64 << 20 }>;

/// What k6 waits for a reply.
const TIMEOUT: Duration = Duration::from_secs(60);

impl ScriptTable {
    /// The workload of the trial that `scope` stands for; `allowed` are hosts besides this machine.
    pub(crate) fn resolve(&self, scope: &Scope<'_>, allowed: &[String], faults: &mut Faults) -> Option<Workload> {
        let entry = self.script.resolve(scope, faults);
        let exec = resolve_optional(self.exec.as_ref(), |exec| exec.resolve(scope, faults));
        let env = resolve_optional(self.env.as_ref(), |env| env.resolve(scope, faults));
        let tags = resolve_optional(self.tags.as_ref(), |tags| tags.resolve(scope, faults));
        let files = resolve_optional(self.files.as_ref(), |folders| {
            resolve_all(folders, |folder| Some(scope.dir.join(folder.resolve(scope, faults)?.0)))
        });
        let limits = resolve_optional(self.limits.as_ref(), |limits| limits.resolve(scope, faults));
        let timeout = resolve_optional(self.timeout.as_ref(), |timeout| timeout.resolve(scope, faults));
        let script = Script {
            entry: scope.dir.join(entry?.0),
            exec: exec?.map_or_else(|| "default".to_owned(), |exec| exec.0),
            env: in_order(env?),
            files: files?.unwrap_or_default(),
            limits: limits?.unwrap_or_default(),
            tags: in_order(tags?),
            allowed: allowed.to_vec(),
            systems: by_address(&scope.bindings.ports, |name| scope.address_of(name)),
            sources: Vec::new(),
            own_load: None,
        };
        Some(Workload {
            target: None,
            connect: Connect::PerUser,
            timeout: timeout?.map_or(TIMEOUT, |timeout| timeout.0),
            steps: Steps::Script(Box::new(script)),
        })
    }

    /// Where the function that is an iteration is named, or else the script.
    pub(crate) fn place_of_function(&self) -> Span {
        self.exec.as_ref().map_or(&self.script.span, |exec| &exec.span).clone()
    }

    /// The script and what it is told, as reports say it.
    pub(crate) fn in_words(&self) -> String {
        let mut words = format!("the script {}", self.script.as_written());
        if let Some(exec) = &self.exec {
            words += &format!(", function {}", exec.as_written());
        }
        for (what, pairs) in [("with", &self.env), ("tagged", &self.tags)] {
            if let Some(pairs) = pairs {
                let pairs: Vec<String> = pairs.shown(&Assignment(Vec::new())).collect();
                words += &format!(", {what} {}", pairs.join(", "));
            }
        }
        format!("{words}; time-out {} where it says nothing else", written_or(self.timeout.as_ref(), "60s"))
    }
}

/// The names of systems by address.
fn by_address(ports: &BTreeMap<String, u16>, host_of: impl Fn(&str) -> IpAddr) -> BTreeMap<SocketAddr, String> {
    ports.iter().map(|(name, port)| (SocketAddr::new(host_of(name), *port), name.clone())).collect()
}

fn in_order(pairs: Option<Vec<(String, String)>>) -> BTreeMap<String, String> {
    pairs.unwrap_or_default().into_iter().collect()
}

impl LimitsTable {
    fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<ScriptLimits> {
        let memory = resolve_optional(self.memory.as_ref(), |memory| memory.resolve(scope, faults));
        let stack = resolve_optional(self.stack.as_ref(), |stack| stack.resolve(scope, faults));
        let busy = resolve_optional(self.busy.as_ref(), |busy| busy.resolve(scope, faults));
        let iteration = resolve_optional(self.iteration.as_ref(), |iteration| iteration.resolve(scope, faults));
        let default = ScriptLimits::default();
        Some(ScriptLimits {
            memory: memory?.map_or(default.memory, |memory| memory.0),
            stack: stack?.map_or(default.stack, |stack| stack.0),
            busy: busy?.map_or(default.busy, |busy| busy.0),
            iteration: iteration?.map(|iteration| iteration.0),
        })
    }
}

/// The file of a script.
#[derive(Clone, Debug)]
pub(crate) struct ScriptFile(String);

impl Scalar for ScriptFile {
    const EXPECTED: &'static str = "a script such as \"script.js\" or \"script.ts\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text) if text.contains("://") => {
                Err(Problem::new("must be a file: scripts are not fetched").help("download it into the study's folder"))
            }
            Level::Text(text) if [".js", ".mjs", ".ts"].iter().any(|end| text.ends_with(end)) => {
                Ok(ScriptFile(text.clone()))
            }
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_on_different_hosts_with_the_same_port_are_not_taken_for_one() {
        let named = |(name, port): (&str, u16)| (name.to_owned(), port);
        let ports = BTreeMap::from([("api", 8080), ("cart", 8080), ("web", 8081)].map(named));
        let host_of = |name: &str| IpAddr::from(if name == "cart" { [10, 0, 0, 7] } else { [127, 0, 0, 1] });
        let found = by_address(&ports, host_of);
        let found: Vec<(String, &str)> = found.iter().map(|(at, name)| (at.to_string(), name.as_str())).collect();
        let expected = [("10.0.0.7:8080", "cart"), ("127.0.0.1:8080", "api"), ("127.0.0.1:8081", "web")];
        assert_eq!(found, expected.map(|(at, name)| (at.to_owned(), name)));
    }
}
