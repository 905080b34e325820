//! Studies of storage: what their trials are, which systems run in them, and who is told keys.

use crate::{read_text, study};
use plimsoll_model::factor::{Assignment, Level};
use plimsoll_model::storage::{Credentials, KeyPair, Nfs, Secret, Store};
use plimsoll_model::workload::{Protocol, Steps, Target};
use plimsoll_study::{Bindings, PortChoice, TrialSpec};

/// Three back ends, two of which are systems of the study.
pub(crate) const STORAGE: &str = include_str!("storage.toml");

const SECRET: &str = "hush-hush";

fn levels(backend: &str) -> Assignment {
    let text = |text: &str| Level::Text(text.to_owned());
    Assignment(vec![("backend".to_owned(), text(backend)), ("size".to_owned(), text("100KB"))])
}

fn bindings(systems: &[(&str, u16)]) -> Bindings {
    let pair = KeyPair { access_key: "AK".to_owned(), secret: Secret(SECRET.to_owned()) };
    Bindings {
        ports: systems.iter().map(|(name, port)| ((*name).to_owned(), *port)).collect(),
        plimsoll: "p".into(),
        keys: [("s3".to_owned(), pair)].into(),
        ..Bindings::default()
    }
}

fn resolved(text: &str, backend: &str, systems: &[(&str, u16)]) -> TrialSpec {
    study(text).resolve(&levels(backend), &bindings(systems)).expect("a trial")
}

fn store(spec: &TrialSpec) -> &Store {
    let Steps::Storage(storage) = &spec.workload.steps else { panic!("storage") };
    &storage.store
}

/// What is said about `text` with `old` replaced, a line each.
fn said(old: &str, new: &str) -> Vec<String> {
    assert!(STORAGE.contains(old), "`{old}` is not in the study");
    read_text(&STORAGE.replacen(old, new, 1)).1.iter().map(ToString::to_string).collect()
}

#[test]
fn a_study_of_storage_says_what_it_is_about() {
    let facts = study(STORAGE).facts();
    assert_eq!((facts.protocol, facts.loopback), (Protocol::Storage, true));
    assert_eq!(
        facts.workload,
        "storage: write, then read objects of {size} in {backend}; mode app, random content, blocks of 1MiB; time-out 10m"
    );
}

#[test]
fn a_system_runs_only_where_the_study_says() {
    let study = study(STORAGE);
    let ports = |backend: &str| study.system_ports(&levels(backend));
    assert_eq!(ports("local"), []);
    assert_eq!(ports("nfs"), [("nfsd".to_owned(), PortChoice::Free)]);
    assert_eq!(ports("s3"), [("gateway".to_owned(), PortChoice::Free)]);
    let names = |backend: &str, systems: &[(&str, u16)]| -> Vec<String> {
        resolved(STORAGE, backend, systems).systems.into_iter().map(|system| system.name).collect()
    };
    assert_eq!(names("local", &[]), [""; 0]);
    assert_eq!(names("nfs", &[("nfsd", 5)]), ["nfsd"]);
    let commands = study.facts().commands;
    assert_eq!((commands[0].len(), commands[1].as_slice()), (0, &["nfsd: nfsd --port {port} data".to_owned()][..]));
}

#[test]
fn each_trial_has_the_store_that_it_names() {
    let local = resolved(STORAGE, "local", &[]);
    assert_eq!((store(&local), &local.workload.target), (&Store::Directory("/study/data".into()), &None));
    let nfs = resolved(STORAGE, "nfs", &[("nfsd", 5)]);
    let Store::Nfs(Nfs { ports, .. }) = store(&nfs) else { panic!("NFS") };
    assert_eq!((ports.nfs, ports.mount), (Some(5), Some(5)));
    let s3 = resolved(STORAGE, "s3", &[("gateway", 6)]);
    assert_eq!(s3.workload.target, Some(Target { host: "127.0.0.1".to_owned(), port: 6, tls: None }));
}

#[test]
fn a_generated_key_goes_to_its_server_and_into_no_report() {
    let s3 = resolved(STORAGE, "s3", &[("gateway", 6)]);
    let Store::S3(bucket) = store(&s3) else { panic!("S3") };
    let Credentials::Generated(pair) = &bucket.credentials else { panic!("generated") };
    assert_eq!((pair.access_key.as_str(), pair.secret.0.as_str()), ("AK", SECRET));
    let env = &s3.systems[0].env;
    assert_eq!((env["ACCESS_KEY"].as_str(), env["SECRET_KEY"].as_str()), ("AK", SECRET));
    assert!(s3.systems[0].start.to_string().contains(SECRET), "whoever starts it may want it as an argument");
    assert!(!format!("{:?}", s3.workload).contains(SECRET));
    assert!(!serde_json::to_string(&s3.workload).expect("JSON").contains(SECRET));
    // Facts are made without anybody's keys; they show the placeholders.
    let facts = study(STORAGE).facts();
    assert!(facts.commands[2][0].contains("{s3.secret_key}"), "{:?}", facts.commands);
    assert!(facts.commands[2].contains(&"gateway: with SECRET_KEY={s3.secret_key}".to_owned()));
    for pair in study(STORAGE).stand_ins().keys.values() {
        assert!(!serde_json::to_string(&facts).expect("JSON").contains(&pair.secret.0));
    }
}

#[test]
fn keys_are_those_of_stores_that_have_some() {
    let study = study(STORAGE);
    assert_eq!(study.stand_ins().keys.into_keys().collect::<Vec<_>>(), ["s3"]);
    let none = Bindings { keys: [].into(), ..bindings(&[("gateway", 6)]) };
    let diagnostics = study.resolve(&levels("s3"), &none).expect_err("no keys");
    assert!(diagnostics.iter().any(|one| one.message.contains("no keys were generated for store `s3`")));
}

#[test]
fn what_is_in_no_trial_is_a_warning() {
    let found = said("[store.local]", "[store.tape]\ndirectory = 'tape'\n[store.local]");
    assert!(
        matches!(found.as_slice(), [one] if one.contains("warning: store `tape` is used in no trial")),
        "{found:?}"
    );
    let found = said("size     = \"{size}\"", "size     = \"10GB\" # {size}");
    assert!(found[0].contains("`size` is used nowhere"), "{found:?}");
    let found = said("\"1MiB\"]", "\"10GB\"]");
    assert!(matches!(found.as_slice(), [one] if one.contains("warning: objects of 10GB are more than")), "{found:?}");
}

#[test]
fn a_factor_may_decide_alone_which_systems_run() {
    let text = STORAGE.replace("size    = [", "cache = ['on', 'off']\nsize    = [").replace(
        "[workload]",
        "[system.cache]\nstart = 'cache'\nonly = { cache = 'on', backend = ['local', 's3'] }\n[workload]",
    );
    let study = study(&text);
    let runs = |backend: &str, cache: &str| {
        let cache = Assignment(vec![("cache".to_owned(), Level::Text(cache.to_owned()))]);
        let bindings = bindings(&[("nfsd", 5), ("gateway", 6)]);
        let spec = study.resolve(&levels(backend).and(&cache), &bindings).expect("a trial");
        spec.systems.iter().any(|system| system.name == "cache")
    };
    assert!(runs("local", "on") && runs("s3", "on"));
    assert!(!runs("local", "off") && !runs("nfs", "on"));
    let commands = study.facts().commands;
    assert!(commands[0].contains(&"cache: cache".to_owned()), "it runs under a condition: {commands:?}");
}
