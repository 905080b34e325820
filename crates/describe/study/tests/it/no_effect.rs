//! What would have no effect, or another one than a reader of the study expects, is told.

use crate::{GRPC, faults_of, study};
use plimsoll_model::start::Design;

const STEADY: &str = "users    = \"{users}\"\nwarmup   = \"2s\"\nduration = \"20s\"\n";

fn with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(GRPC.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "`{old}` is not in the study");
        text.replacen(old, new, 1)
    })
}

/// What is told of the study with these changes holds this.
fn tells(changes: &[(&str, &str)], says: &str) {
    let told = faults_of(&with(changes));
    assert!(told.contains(says), "{changes:?}: {told}");
}

const HTTP: [(&str, &str); 2] =
    [("protocol = \"grpc\"", "protocol = \"http\""), ("proto    = [\"counter.proto\"]\n", "")];
const CALL: &str = "        call    = \"counter.incrementCounter/increment\",\n        message = { value = 1 },\n        expect  = { status = \"OK\", sequence = { field = \"message\", after = \"Incremented value is \" } },\n";

/// The changes that make requests of the calls, and these.
fn http<'a>(changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    HTTP.into_iter().chain([(CALL, "        get = \"/\",\n")]).chain(changes.iter().copied()).collect()
}

#[test]
fn builds_that_would_overwrite_one_another() {
    let built = |build: &str, start: &str| {
        let build = format!("build = \"{build}\"");
        let start = format!("start = \"{start} -listen 127.0.0.1:{{port}}\"");
        faults_of(&with(&[
            ("build = \"go build -o counter .\"", &build),
            ("start = \"./counter -mode {mode} -listen 127.0.0.1:{port}\"", &start),
        ]))
    };
    let told = built("go build -tags {mode} -o counter .", "./counter");
    assert!(told.contains("whichever is built last would run as all"), "{told}");
    for (build, start) in [
        ("go build -tags {mode} -o counter-{mode} .", "./counter-{mode}"),
        ("go build -o counter .", "./counter -mode {mode}"),
        // What an argument tells the program, nobody knows.
        ("make {mode}", "./run {mode}"),
    ] {
        assert_eq!(built(build, start), "", "{build}");
    }
}

#[test]
fn a_port_that_only_the_command_names_leaves_trials() {
    let fixed = [
        ("-listen 127.0.0.1:{port}", "-listen 127.0.0.1:8080"),
        ("ready = { tcp = \"{address}\" }", "ready = \"127.0.0.1:8080\""),
        ("target   = \"{counter.address}\"", "target   = \"127.0.0.1:8080\""),
    ];
    let by_default = study(&with(&fixed));
    assert_eq!(by_default.design(), Design::Trials);
    assert!(by_default.reason_of_design().contains("`counter` listens on port 8080 in all of them"));
    let named = [&fixed[..], &[("[factors]", "design = \"turns\"\n\n[factors]")]].concat();
    tells(&named, "variants cannot take turns: `counter` listens on port 8080");
    // A number that is no port of anything that is asked.
    let other = study(&with(&[("-mode {mode}", "-mode {mode} 8080")]));
    assert!(other.design().turns().is_some());
}

#[test]
fn keys_that_would_do_nothing() {
    let staged = "users    = 1\nnew_users = 2\nwarmup   = \"0s\"\nstages   = [{ ramp = \"10s\", to = 100 }]\n";
    let one = ("users = [10, 100, 200, 300, 1000]\n", "");
    tells(&[one, (STEADY, staged)], "with 2 new users a second, 22 have begun by the end of a stage that asks for 100");
    let slow = "users    = 1\nnew_users = 20\nwarmup   = \"0s\"\nstages   = [{ ramp = \"10s\", to = 100 }]\n";
    assert_eq!(faults_of(&with(&[one, (STEADY, slow)])), "");
    let search = "profile = \"capacity\"\nusers    = \"{users}\"\n\n[objective]\nlimits = { \"request_duration.p95\" = \"1s\" }\n";
    tells(
        &[
            (STEADY, search),
            ("[decide]", "[turns]\ncount = 20\n\n[decide]"),
            ("iteration_duration.p95", "capacity.count"),
        ],
        "`[turns]` has no effect in a search for the capacity",
    );
    tells(&[("[decide]", "[report]\naxis = \"mode\"\n\n[decide]")], "`mode` is compared");
    assert_eq!(faults_of(&with(&[("[decide]", "[report]\naxis = \"users\"\n\n[decide]")])), "");
    tells(&[("iteration_duration.p95", "connect_duration.p95")], "has values only where the server closes connections");
    tells(
        &[("[decide]", "[generator]\ncpus = \"own\"\n\n[decide]")],
        "cannot be \"own\", which is for systems and databases",
    );
    let drawn = "target   = \"{counter.address}\"\ndraw     = { page = \"1 to 50\" }";
    let target = "target   = \"{counter.address}\"";
    tells(&http(&[(target, drawn)]), "value `page` is used nowhere");
    tells(
        &http(&[("iteration_duration.p95", "counter:messages sent.rate")]),
        "is of sockets, and the users of this workload hold none",
    );
}

#[test]
fn a_key_of_another_protocol_is_told_with_it() {
    let storage = "protocol = \"storage\"\nconnect = \"shared 2\"";
    let told = faults_of(&GRPC.replace("protocol = \"grpc\"", storage));
    assert!(told.contains("`connect` belongs in [workload] with `protocol = \"http\"`"), "{told}");
}

#[test]
fn an_instance_is_named_by_its_number() {
    let several = [("ready = { tcp", "instances = 2\nready = { tcp")];
    tells(&several, "the system has several instances: say which, as in `{counter-1.address}`");
}
