//! Describes a bundle as a list of named texts, so that two bundles can be compared name by name.

use super::named_value::{NamedValue, named};
use super::{ResolvedCell, flow, sql};
use plimsoll_model::feedback::FeedbackRules;
use plimsoll_model::host::Host;
use plimsoll_model::load::{Arrivals, LoadModel, LoadProfile, Overflow, Profile, Shape, Stop};
use plimsoll_model::objective::Limit;
use plimsoll_model::plan::Plan;
use plimsoll_model::start::{Design, Turns};
use plimsoll_model::storage::{Action, BucketStyle, Credentials, Payload, S3, Storage, Store, Upload};
use plimsoll_model::study::{Origin, StudyFacts};
use plimsoll_model::system::{CommandLine, Probe, SystemSpec};
use plimsoll_model::workload::{Connect, GrpcSchema, GrpcStep, HttpStep, Steps, Target, Tls, Workload};

use crate::input::Input;
use crate::quantity::{grouped, percent, show};
use crate::words::counted;
use plimsoll_model::measure::{Effect, Unit};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

fn or_none<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

/// The load and the workload, which decide whether the numbers of two cells mean the same.
pub(super) fn load_and_workload(cell: &ResolvedCell) -> Vec<NamedValue> {
    let data = cell.databases.iter().flat_map(sql::data).collect();
    [load(&cell.load), workload(&cell.workload), data].concat()
}

/// The start of the systems and the target of the load, which a comparison may be about.
pub(super) fn settings(cell: &ResolvedCell) -> Vec<NamedValue> {
    let mut all = Vec::new();
    // The port of a system that Plimsoll starts stands in for a free one.
    let has_own_port = cell.systems.iter().any(|system| system.port.is_some());
    if let Some(Target { host, port, .. }) = cell.workload.target.as_ref().filter(|_| !has_own_port) {
        all.push(named("target", format!("{host}:{port}")));
    }
    if let Steps::Storage(storage) = &cell.workload.steps {
        all.extend(store(&storage.store));
    }
    all.extend(cell.systems.iter().flat_map(system));
    all.extend(cell.databases.iter().flat_map(sql::database));
    all
}

fn load(load: &LoadProfile) -> Vec<NamedValue> {
    let mut all = vec![
        named("warm-up", format!("{:?}", load.warmup)),
        named("end of the measure phase", stop(load.stop)),
        named("drain", format!("{:?}", load.drain)),
    ];
    match &load.model {
        LoadModel::Closed { users, think } => {
            all.push(named("load", "closed loop"));
            all.push(named("users", profile(users)));
            all.push(named("think time", super::named_value::think(think)));
        }
        LoadModel::Open { rate, arrivals, max_users, overflow } => {
            all.push(named("load", "open"));
            all.push(named("rate of arrivals", format!("{} /s", profile(rate))));
            let arrivals = match arrivals {
                Arrivals::Constant => "evenly spaced",
                Arrivals::Poisson => "Poisson",
            };
            all.push(named("arrivals", arrivals));
            all.push(named("max_users", grouped(f64::from(*max_users))));
            if *overflow == Overflow::Drop {
                all.push(named("arrivals that nobody is free for", "dropped"));
            }
        }
    }
    all
}

fn stop(stop: Stop) -> String {
    match stop {
        Stop::After(span) | Stop::Soak(span) => format!("after {span:?}"),
        Stop::IterationsPerUser { count, limit } => {
            format!("after {} iterations of each user, at most {limit:?}", grouped(count as f64))
        }
        Stop::Iterations { count, limit } => {
            format!("after {} iterations, at most {limit:?}", grouped(count as f64))
        }
        Stop::Feedback { rules, limit } => {
            let FeedbackRules { step, most, rest, over, window, flat } = rules;
            format!(
                "by a control loop: {step} users at once, at most {most}, {rest:?} apart, limits over {over:?}, flat below {flat} \
                 users a second for {window:?}; at most {limit:?}"
            )
        }
    }
}

fn profile(profile: &Profile) -> String {
    let stages = profile.stages.iter().map(|stage| {
        let shape = match stage.shape {
            Shape::Ramp => "to",
            Shape::Hold => "hold",
        };
        format!(", {shape} {} in {:?}", stage.target, stage.length)
    });
    format!("{}{}", profile.start, stages.collect::<String>())
}

fn workload(workload: &Workload) -> Vec<NamedValue> {
    let mut all = match &workload.steps {
        Steps::Http(_) | Steps::Grpc { .. } | Steps::Flow(_) => connections(workload),
        Steps::Storage(_) | Steps::Sql(_) | Steps::Script(_) => Vec::new(),
    };
    all.push(named("time-out of an exchange", format!("{:?}", workload.timeout)));
    all.push(named("steps", workload.steps.names().join(", ")));
    match &workload.steps {
        Steps::Http(steps) => all.extend(steps.iter().flat_map(http_step)),
        Steps::Grpc { schema, calls } => {
            all.push(named("message types", message_types(schema)));
            all.extend(calls.iter().flat_map(grpc_step));
        }
        Steps::Storage(storage) => all.extend(self::storage(storage)),
        Steps::Sql(work) => all.extend(sql::work(work)),
        Steps::Flow(flow) => all.extend(flow::flow(flow)),
        Steps::Script(script) => all.extend(flow::script(script)),
    }
    all
}

fn connections(workload: &Workload) -> Vec<NamedValue> {
    let connect = match workload.connect {
        Connect::PerUser => "one for each user".to_owned(),
        Connect::PerIteration => "one for each iteration".to_owned(),
        Connect::Shared(count) => format!("{count} for all users"),
    };
    let tls = workload.target.as_ref().and_then(|target| target.tls.as_ref());
    vec![named("connections", connect), named("encryption", encryption(tls))]
}

fn encryption(tls: Option<&Tls>) -> String {
    match tls {
        None => "none".to_owned(),
        Some(tls) if tls.insecure => "TLS, any certificate".to_owned(),
        Some(tls) => format!(
            "TLS, authorities of {}, name {}",
            tls.ca.as_ref().map_or("the system".into(), |file| file.display().to_string()),
            tls.server_name.as_deref().unwrap_or("of the host")
        ),
    }
}

fn message_types(schema: &GrpcSchema) -> String {
    match schema {
        GrpcSchema::Reflection => "the server's reflection".to_owned(),
        GrpcSchema::Files { files, .. } => {
            files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
        }
    }
}

fn storage(storage: &Storage) -> Vec<NamedValue> {
    let payload = match storage.payload {
        Payload::Zeros => "zeros".to_owned(),
        Payload::Random => "random".to_owned(),
        Payload::Compressible(ratio) => format!("compressible to 1/{ratio}"),
    };
    let operations = |action: &Action| {
        let operations: Vec<&str> =
            storage.steps[action.steps.clone()].iter().map(|step| step.operation.name()).collect();
        format!("{} with weight {}", operations.join(", then "), action.weight)
    };
    vec![
        named("operations", storage.actions.iter().map(operations).collect::<Vec<_>>().join("; ")),
        named("size of objects", bytes(storage.size)),
        named("content of objects", payload),
        named("block size", bytes(storage.block)),
        named("objects of each user", storage.objects.to_string()),
        named("overwriting", yes_or_no(storage.overwrite)),
        named("verification", yes_or_no(storage.verify)),
        named("mode", storage.mode_in_words()),
    ]
}

/// The place where objects are kept, which a comparison may be about. Ports are described with the
/// target.
fn store(store: &Store) -> Vec<NamedValue> {
    match store {
        Store::Directory(path) => vec![named("store", format!("the directory {}", path.display()))],
        Store::Nfs(nfs) => vec![named("store", format!("the export {} of {} over NFS", nfs.export, nfs.host))],
        Store::S3(s3) => bucket(s3),
    }
}

fn bucket(s3: &S3) -> Vec<NamedValue> {
    let style = match s3.style {
        BucketStyle::Path => "in the path",
        BucketStyle::VirtualHost => "in the host",
    };
    let credentials = match &s3.credentials {
        Credentials::Anonymous => "none",
        Credentials::Environment => "from the environment",
        Credentials::Generated(_) => "generated",
    };
    let upload = match s3.upload {
        Upload::Single => "in one request".to_owned(),
        Upload::Multipart(1) => format!("in parts of {}, one after the other", bytes(s3.part_size)),
        Upload::Multipart(count) => format!("in parts of {}, {count} at once", bytes(s3.part_size)),
    };
    vec![
        named("store", format!("the bucket {} of {} over S3", s3.bucket, s3.endpoint.host)),
        named("region", &s3.region),
        named("name of the bucket", style),
        named("encryption", encryption(s3.endpoint.tls.as_ref())),
        named("credentials", credentials),
        named("upload", upload),
        named("download", s3.range.map_or("whole objects".to_owned(), |range| format!("ranges of {}", bytes(range)))),
        named("signed payload", yes_or_no(s3.signed_payload)),
        named("retries", s3.retries.to_string()),
    ]
}

fn bytes(bytes: u64) -> String {
    format!("{} bytes", grouped(bytes as f64))
}

fn yes_or_no(yes_or_no: bool) -> &'static str {
    if yes_or_no { "yes" } else { "no" }
}

fn http_step(step: &HttpStep) -> Vec<NamedValue> {
    let of = |what: &str| format!("{what} of step `{}`", step.name);
    let pairs: Vec<String> = step.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    vec![
        named(of("request"), format!("{} {}", step.method, step.path)),
        named(of("headers"), pairs.join("; ")),
        named(of("body"), String::from_utf8_lossy(&step.body)),
        named(of("expected status"), step.status.map_or("below 400".to_owned(), |status| status.to_string())),
    ]
}

fn grpc_step(step: &GrpcStep) -> Vec<NamedValue> {
    let of = |what: &str| format!("{what} of step `{}`", step.name);
    let pairs: Vec<String> = step.metadata.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    vec![
        named(of("call"), &step.call),
        named(of("message"), step.message.to_string()),
        named(of("metadata"), pairs.join("; ")),
        named(of("deadline"), step.deadline.map_or("none".to_owned(), |deadline| format!("{deadline:?}"))),
        named(of("expected status"), step.status.to_string()),
    ]
}

fn system(system: &SystemSpec) -> Vec<NamedValue> {
    let of = |what: &str| format!("{what} of {}", system.name);
    let command = |command: &Option<CommandLine>| or_none(command.as_ref());
    let ready = match &system.ready.probe {
        Probe::Tcp(address) => format!("TCP {address}"),
        Probe::Http(url) => url.clone(),
        Probe::Log(text) => format!("the line `{text}`"),
        Probe::Command(command) => format!("the command {command}"),
        Probe::Started => "as soon as it runs".to_owned(),
    };
    let mut all = vec![
        named(of("host"), system.on.as_deref().unwrap_or(THIS_MACHINE)),
        named(of("start command"), system.start.to_string()),
        named(of("build command"), command(&system.build)),
        named(of("folder"), system.dir.display().to_string()),
        named(of("readiness"), ready),
        named(of("stop signal"), format!("{:?}", system.stop.signal).to_uppercase()),
        named(of("processors"), system.cpus.as_ref().map_or("all".to_owned(), ToString::to_string)),
    ];
    all.extend(system.inherit.as_ref().map(|names| named(of("inherited variables"), names.join(", "))));
    all.extend(system.env.iter().map(|(name, value)| named(of(&format!("variable {name}")), value)));
    let files = system.files.iter().flat_map(|files| &files.texts);
    all.extend(files.map(|(name, text)| named(of(&format!("file {name}")), text_in_short(text))));
    all
}

/// Where a system or a database runs that no agent's host has.
pub(super) const THIS_MACHINE: &str = "this machine";

/// A text that is too long to show, so that two that differ have different words.
fn text_in_short(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{} with the hash {:08x}", counted(text.lines().count(), "line"), hasher.finish() as u32)
}

/// The name under which the machine's memory is described.
pub(super) const MEMORY: &str = "memory";

/// The machine. Its load before the start is left out: two such numbers never agree.
pub(super) fn host(host: &Host) -> Vec<NamedValue> {
    let unknown = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let bytes = |value: Option<u64>, none: &str| value.map_or(none.to_owned(), |bytes| show(bytes as f64, Unit::Bytes));
    vec![
        named("processor model", unknown(&host.cpu_model)),
        named("processors", host.processors.to_string()),
        named(MEMORY, bytes(host.memory, "unknown")),
        named("kernel", unknown(&host.kernel)),
        named("distribution", unknown(&host.distribution)),
        named("frequency governor", unknown(&host.governor)),
        named("clock source", unknown(&host.clock_source)),
        named("CPU limit", host.cpu_limit.map_or("none".to_owned(), |cores| show(cores, Unit::Cores))),
        named("memory limit", bytes(host.memory_limit, "none")),
        named("hypervisor or container", unknown(&host.virtualization)),
    ]
}

/// The settings of Plimsoll's own generator, or the name of another one.
pub(super) fn generator(input: &Input) -> Vec<NamedValue> {
    if let Origin::Imported { tool, version } = &input.origin {
        let version = version.as_deref().unwrap_or("unknown");
        return vec![named("generator", tool), named("version of the generator", version)];
    }
    let generator = &input.facts.generator;
    vec![
        named("threads of the generator", generator.threads.to_string()),
        named("processors of the generator", generator.cpus.as_ref().map_or("all".to_owned(), ToString::to_string)),
        named("max_cpu of the generator", percent(generator.max_cpu)),
        named("max_lateness of the generator", format!("{:?}", generator.max_lateness)),
    ]
}

/// The measures, the design and the objective of a study: where they differ, numbers do not mean the same.
pub(super) fn measured(input: &Input) -> Vec<NamedValue> {
    let facts = &input.facts;
    let margins = facts.decide.iter().map(|decision| {
        let margin = match (decision.measure.effect(), decision.measure.unit()) {
            (Effect::Difference, Unit::Count) => grouped(decision.margin),
            _ => percent(decision.margin),
        };
        named(format!("margin of {}", decision.measure), margin)
    });
    let mut measures: Vec<String> = facts.decide.iter().map(|decision| decision.measure.to_string()).collect();
    measures.sort();
    let mut all = vec![
        named("protocol", facts.protocol.name()),
        named("kind of load", if facts.open_load { "open" } else { "closed" }),
        named("deciding measures", measures.join(", ")),
        named("design", design(input.plan.design)),
    ];
    // A margin that is in one study only is told by the list of measures.
    all.extend(margins);
    all.extend(objective(facts));
    all
}

/// The name of a design as a study file has it. A trial has its systems to itself, a slice has others alive or loaded
/// beside it, so that their values are not those of one quantity.
fn design(design: Design) -> &'static str {
    match design {
        Design::Trials => "trials",
        Design::Turns(_) => "turns",
        Design::SideBySide(_) => "side by side",
    }
}

/// The objective by which loads are judged: a capacity, or what a control loop reaches, is that within these limits.
fn objective(facts: &StudyFacts) -> Vec<NamedValue> {
    const LIMITS: &str = "limits of the objective";
    let Some(objective) = &facts.objective else { return vec![named(LIMITS, "none")] };
    let mut limits: Vec<String> = objective.limits.iter().map(limit).collect();
    limits.sort();
    let mut all = vec![
        named(LIMITS, limits.join(", ")),
        named("errors that the objective allows", exact_percent(objective.errors)),
    ];
    // In closed load there are no arrivals to finish.
    if facts.open_load {
        all.push(named("arrivals that the objective asks to be finished", exact_percent(objective.achieved)));
    }
    all
}

fn limit(limit: &Limit) -> String {
    let Limit { measure, at_most } = limit;
    match Duration::try_from_secs_f64(*at_most) {
        Ok(at_most) => format!("{measure} at most {at_most:?}"),
        Err(_) => format!("{measure} at most {at_most} s"),
    }
}

/// A share as a percentage that is not rounded as for readers: 98.6 % and 99.4 % of the arrivals are two objectives.
fn exact_percent(share: f64) -> String {
    format!("{} %", (share * 1e8).round() / 1e6)
}

/// The lengths of the slices of a study in turns. A slice holds what is left of the load before it, so that its values may
/// depend on them.
pub(super) fn slices(plan: &Plan) -> Vec<NamedValue> {
    match plan.design.turns() {
        // The loads of a search have lengths of their own.
        Some(Turns { settle, slice, .. }) if !plan.searches() => vec![
            named("length of a slice", format!("{slice:?}")),
            named("settling before a slice", format!("{settle:?}")),
        ],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cross_run::named_value::LONGEST;
    use plimsoll_model::load::{Stage, Think};
    use plimsoll_model::storage::{KeyPair, Mode, Nfs, NfsPorts, Operation, Secret, StorageStep};

    #[test]
    fn a_load_is_told_in_words() {
        let seconds = Duration::from_secs;
        let stages = vec![Stage { length: seconds(5), target: 20.0, shape: Shape::Ramp }];
        let ramp = LoadProfile {
            model: LoadModel::Closed {
                users: Profile { start: 1.0, stages, joining: None },
                think: Think::Uniform { from: Duration::from_millis(5), to: seconds(1) },
            },
            warmup: seconds(2),
            stop: Stop::After(seconds(10)),
            drain: seconds(3),
        };
        assert_eq!(
            lines(load(&ramp)),
            [
                "warm-up: 2s",
                "end of the measure phase: after 10s",
                "drain: 3s",
                "load: closed loop",
                "users: 1, to 20 in 5s",
                "think time: uniform, 5ms to 1s",
            ]
        );
    }

    fn lines(named: Vec<NamedValue>) -> Vec<String> {
        named.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    #[test]
    fn storage_is_told_in_words() {
        let step = |name: &str, operation| StorageStep { name: name.to_owned(), operation };
        let durable = Storage {
            name: "s3".to_owned(),
            store: Store::Directory("data".into()),
            mode: Mode::Durable,
            sync_directory: true,
            payload: Payload::Compressible(2.5),
            size: 1_048_576,
            block: 4096,
            objects: 3,
            overwrite: true,
            verify: false,
            actions: vec![Action { weight: 70, steps: 0..1 }, Action { weight: 30, steps: 1..3 }],
            steps: vec![step("get", Operation::Read), step("put", Operation::Write), step("ls", Operation::List)],
        };
        let file_alone = lines(storage(&Storage { sync_directory: false, ..durable.clone() }));
        assert_eq!(file_alone.last().map(String::as_str), Some("mode: durable, directory not synced"));
        assert_eq!(
            lines(storage(&durable)),
            [
                "operations: read with weight 70; write, then list with weight 30",
                "size of objects: 1,048,576 bytes",
                "content of objects: compressible to 1/2.5",
                "block size: 4,096 bytes",
                "objects of each user: 3",
                "overwriting: yes",
                "verification: no",
                "mode: durable",
            ]
        );
    }

    #[test]
    fn a_store_is_told_in_words_and_without_its_keys() {
        assert_eq!(lines(store(&Store::Directory("data".into()))), ["store: the directory data"]);
        let ports = NfsPorts { nfs: Some(5), mount: Some(5) };
        let nfs = Store::Nfs(Nfs { host: "files".to_owned(), ports, export: "/a".to_owned() });
        assert_eq!(lines(store(&nfs)), ["store: the export /a of files over NFS"]);
        let pair = KeyPair { access_key: "AK".to_owned(), secret: Secret("hush".to_owned()) };
        let s3 = Store::S3(Box::new(S3 {
            endpoint: Target { host: "localhost".to_owned(), port: 5, tls: None },
            bucket: "box".to_owned(),
            region: "eu".to_owned(),
            style: BucketStyle::Path,
            credentials: Credentials::Generated(pair),
            upload: Upload::Multipart(4),
            part_size: 8_388_608,
            range: None,
            signed_payload: true,
            retries: 2,
        }));
        assert_eq!(
            lines(store(&s3)),
            [
                "store: the bucket box of localhost over S3",
                "region: eu",
                "name of the bucket: in the path",
                "encryption: none",
                "credentials: generated",
                "upload: in parts of 8,388,608 bytes, 4 at once",
                "download: whole objects",
                "signed payload: yes",
                "retries: 2",
            ]
        );
    }

    #[test]
    fn long_values_are_cut() {
        let (_, value) = named("body", "é".repeat(300));
        assert!(value.starts_with(&format!("{} … (600 bytes, sum ", "é".repeat(LONGEST))), "{value}");
        let (_, other) = named("body", "é".repeat(299) + "è");
        assert_ne!(value, other, "what differs behind the cut differs");
    }
}
