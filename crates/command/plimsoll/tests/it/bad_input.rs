//! Bad input: said with what was expected, what was found and where, before anything is started
//! and any load is sent.

use crate::common::{Ended, Place, Started, edited};
use plimsoll_testkit::http::{Behaviour, Reply, Server};
use std::net::TcpListener;

/// A study that is in order. Its system would leave a file behind, and its target, which takes the
/// place of `TARGET`, counts what it gets.
const SOUND: &str = r#"title    = "sound"
question = "Is nothing started?"
repeats  = 3

[factors]
mode  = { levels = ["a", "b"], compare = true, baseline = "a" }
users = [1]

[system.telltale]
start = "sh -c 'touch started-{mode}; sleep 1000'"
ready = { command = "test -e started-{mode}" }

[workload]
protocol = "http"
target   = "TARGET"
steps    = [{ get = "/" }]

[load]
users    = "{users}"
think    = "5ms"
warmup   = "0s"
duration = "100ms"

[generator]
max_cpu      = "100%"
max_lateness = "10s"
"#;

/// A place with a study and the server that it would load.
struct Case {
    place: Place,
    target: Server,
}

impl Case {
    fn new(study: &str) -> Case {
        let target = Server::start(Behaviour::at_once(Reply::of_size(2))).unwrap();
        let place = Place::with_study(&study.replace("TARGET", &target.address().to_string()));
        Case { place, target }
    }

    /// Runs the study into `out`, and expects that this is refused.
    #[track_caller]
    fn is_refused(&self, out: &str, says: &[&str]) -> Ended {
        let ended = self.place.plimsoll(&["run", "study.toml", "--out", out]).with(2).says(says);
        self.is_untouched();
        ended
    }

    #[track_caller]
    fn is_untouched(&self) {
        assert!(!self.place.has("started-a") && !self.place.has("started-b"), "the system was started");
        assert_eq!(self.target.record().connections(), 0, "load was sent");
        assert!(!self.place.has("bundle"), "a bundle was begun");
    }

    /// A message without what differs between runs.
    fn redacted(&self, message: &str) -> String {
        let folder = self.place.path("");
        let message = message.replace(folder.to_str().unwrap(), "FOLDER/");
        message.replace(&self.target.address().to_string(), "TARGET")
    }
}

/// One fault in the sound study: what is written instead of what, and what is said of it.
type Fault = (&'static str, &'static str, &'static [&'static str]);

#[track_caller]
fn are_refused(study: &str, faults: &[Fault]) {
    for (from, to, says) in faults {
        let case = Case::new(&edited(study, from, to));
        let ended = case.is_refused("bundle", says).says(&["study.toml:", "nothing was started"]);
        let checked = case.place.plimsoll(&["check", "study.toml"]).with(2);
        assert_eq!(checked.stderr, ended.stderr, "`check` says what `run` says");
        case.is_untouched();
    }
}

#[test]
fn the_sound_study_runs() {
    let case = Case::new(&edited(SOUND, "repeats  = 3", "repeats  = 3\ndesign   = \"trials\""));
    case.place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with_any_verdict();
    assert!(case.place.has("started-a") && case.place.has("started-b"));
    assert!(case.target.record().requests() > 0);
}

#[test]
fn faults_of_the_file_are_named() {
    are_refused(
        SOUND,
        &[
            ("repeats  = 3", "repeats  = \"three\"", &["`repeats` must be", "the text \"three\"", "study.toml:3:12"]),
            ("question = \"Is nothing started?\"\n", "", &["question"]),
            ("users    = \"{users}\"", "user     = \"{users}\"", &["user", "did you mean `users`?", "study.toml:19:1"]),
            ("think    = \"5ms\"", "think    = 5", &["`load.think`", "study.toml:20:12"]),
            ("[1]", "[1]\ndisks = [1, 2]", &["factor `disks` is used nowhere", "study.toml:8:1", "{disks}"]),
            ("\"{users}\"", "\"{threads}\"", &["no factor is named `threads`", "study.toml:19:13"]),
            (", baseline = \"a\"", "", &["`factors.mode` is compared but has no baseline", "`a` or `b`"]),
            ("baseline = \"a\"", "baseline = \"c\"", &["baseline", "`a`", "`b`"]),
            ("users = [1]", "users = [0]", &["`load.users` must be at least 1, not 0"]),
            ("\"100ms\"", "\"0s\"", &["`load.duration` must be above zero", "study.toml:22:12"]),
            ("\"100ms\"", "\"-1s\"", &["`load.duration` must not be negative", "study.toml:22:12"]),
            ("\"100ms\"", "\"100\"", &["`load.duration`", "the text \"100\""]),
            ("\"TARGET\"", "\"198.51.100.7:80\"", &["load may not go to 198.51.100.7", "allow = [\"198.51.100.7\"]"]),
            (
                "\"TARGET\"",
                "\"host.invalid:80\"",
                &[
                    "load may not go to host.invalid",
                    "study.toml:15:12",
                    "`[targets]` with `allow = [\"host.invalid\"]`",
                ],
            ),
            ("[generator]", "[generator]\ncpus = \"9999\"", &["names processor 9999", "it may use"]),
        ],
    );
}

#[test]
fn faults_of_the_surroundings_are_named() {
    are_refused(
        SOUND,
        &[
            (
                "\"sh -c 'touch",
                "\"no-such-shell -c 'touch",
                &["the program `no-such-shell` of the system `telltale` was not found", "PATH"],
            ),
            ("\"sh -c 'touch", "\"./study.toml -c 'touch", &["cannot be executed", "chmod +x"]),
            ("start =", "build = \"no-such-compiler\"\nstart =", &["`no-such-compiler`", "was not found"]),
            (
                "start =",
                "dir = \"nowhere\"\nstart =",
                &["the folder of the system `telltale` was not found", "nowhere"],
            ),
        ],
    );
}

/// The same study over gRPC, with files.
fn over_grpc() -> String {
    let workload = r#"protocol = "grpc"
target   = "TARGET"
proto    = ["counter.proto"]
steps    = [{ call = "counter.incrementCounter/increment", message = { value = 1 } }]"#;
    edited(SOUND, "protocol = \"http\"\ntarget   = \"TARGET\"\nsteps    = [{ get = \"/\" }]", workload)
}

#[test]
fn faults_of_calls_are_named() {
    const PROTO: &str = plimsoll_demo::PROTO.1;
    let refused = |study: &str, proto: &str, says: &[&str]| {
        let case = Case::new(study);
        case.place.write("counter.proto", proto);
        case.is_refused("bundle", says);
    };
    let study = over_grpc();
    let misspelt = PROTO.replace("message status", "mesage status");
    refused(&study, &misspelt, &["failed to compile the .proto files", "counter.proto:10:1", "found 'mesage'"]);
    let method = edited(&study, "/increment\"", "/decrement\"");
    refused(&method, PROTO, &["no method `decrement` in service `counter.incrementCounter`", "`increment`"]);
    let service = edited(&study, "\"counter.incrementCounter", "\"counter.counter");
    refused(&service, PROTO, &["counter.counter", "counter.incrementCounter"]);
    let field = edited(&study, "{ value = 1 }", "{ vlaue = 1 }");
    refused(&field, PROTO, &["the message of `counter.incrementCounter/increment`", "'vlaue'", "`value`"]);
    let kind = edited(&study, "{ value = 1 }", "{ value = \"one\" }");
    refused(&kind, PROTO, &["the message of `counter.incrementCounter/increment`"]);
    let file = edited(&study, "\"counter.proto\"", "\"conuter.proto\"");
    refused(&file, PROTO, &["no .proto file at", "conuter.proto"]);
}

#[test]
fn a_port_in_use_is_named_with_its_holder() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let case = Case::new(&edited(SOUND, "start =", &format!("port = {port}\nstart =")));
    case.is_refused("bundle", &[&format!("port {port} is in use by"), &format!("process {}", std::process::id())]);
}

#[test]
fn every_fault_is_named_at_once() {
    let study = edited(SOUND, "repeats  = 3", "repeat   = 3");
    let study = edited(&study, "\"{users}\"", "\"{user}\"");
    let case = Case::new(&edited(&study, "\"100ms\"", "\"-1s\""));
    let ended = case.is_refused("bundle", &["3 errors"]);
    insta::assert_snapshot!("three_faults", case.redacted(&ended.stderr));
}

#[test]
fn the_missing_programs_of_all_systems_are_named_at_once() {
    let systems = "start = \"./no-such-server-{mode}\"\n\n[system.proxy]\nstart = \"no-such-proxy\"";
    let start = "start = \"sh -c 'touch started-{mode}; sleep 1000'\"";
    let case = Case::new(&edited(SOUND, start, systems));
    let mut command = case.place.command(&["run", "study.toml", "--out", "bundle"]);
    command.env("PATH", "/nowhere");
    let ended = Started::new(command).end().with(2);
    case.is_untouched();
    insta::assert_snapshot!("missing_programs", case.redacted(&ended.stderr));
}

#[test]
fn what_is_no_study_file_is_named() {
    let place = Place::empty();
    place.write("latin.toml", b"title = \"caf\xe9\"");
    place.write("cut.toml", "title = \"cut");
    std::fs::create_dir(place.path("folder")).unwrap();
    for command in ["check", "plan", "run"] {
        for (file, says) in [
            ("missing.toml", "failed to read the study missing.toml: No such file or directory"),
            ("folder", "expected a study file, found the folder folder; give folder/study.toml"),
            ("latin.toml", "expected latin.toml to be UTF-8 text; byte 12 is none"),
            ("cut.toml", "cut.toml:1:"),
        ] {
            place.plimsoll(&[command, file]).with(2).says(&[says]);
        }
    }
    assert!(!place.has("plimsoll-runs"));
}

#[test]
fn a_place_that_takes_no_bundle_is_named() {
    let case = Case::new(SOUND);
    std::fs::create_dir(case.place.path("full")).unwrap();
    case.place.write("full/diary.txt", "mine");
    case.is_refused("full", &["expected a new or empty folder for the bundle, found files in full"]);
    assert_eq!(case.place.read("full/diary.txt"), "mine");
    // Below a file no folder can be made, not even by root.
    case.is_refused("study.toml/bundle", &["failed to make the folder study.toml/bundle", "Not a directory"]);
    case.is_refused("study.toml", &["study.toml", "ot a directory"]);
    let resumed = case.place.plimsoll(&["run", "study.toml", "--resume", "--out", "nowhere"]);
    resumed.with(2).says(&["expected a bundle, found no manifest.jsonl in nowhere"]);
    case.is_untouched();
}
