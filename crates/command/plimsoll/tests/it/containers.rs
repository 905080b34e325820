//! A whole study whose systems are containers of a real engine.

use crate::common::{Place, START, TINY, edited, wait_until};
use plimsoll_testkit::docker::{Docker, IMAGE, MOUNTS, compose};
use plimsoll_testkit::skipped;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;

const RUN: [&str; 4] = ["run", "study.toml", "--out", "bundle"];

/// The study with its server in a container, which has the programs of this machine.
fn study(docker: &Docker) -> String {
    let mounts = MOUNTS.map(|mount| format!("-v {mount}")).join(" ");
    let (name, host) = docker.host();
    let start = format!(
        "start = {{ image = \"{IMAGE}\", options = \"--network host {mounts} -v '{{plimsoll}}':/bin-of-test/plimsoll:ro\", \
         arguments = \"/bin-of-test/plimsoll demo-server --mode {{mode}} --listen {{address}}\" }}\nenv = {{ {name} = \"{host}\" }}\n\
         ready = {{ tcp = \"{{address}}\", within = \"60s\" }}\nstop = {{ grace = \"1s\" }}"
    );
    edited(TINY, START, &start)
}

/// The cells of a column of a table.
fn column<'a>(table: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let place = table.lines().next().and_then(|head| head.split(',').position(|one| one == name)).unwrap();
    table.lines().skip(1).filter_map(move |line| line.split(',').nth(place))
}

#[test]
fn containers_are_measured_and_removed_however_a_run_ends() {
    let docker = match Docker::start() {
        Ok(docker) => docker,
        Err(reason) => return skipped(reason),
    };
    let place = Place::with_study(&edited(&study(&docker), "\"300ms\"", "\"2500ms\""));
    let again = [&RUN[..], &["--resume"]].concat();
    let under_load = |arguments| {
        let mut run = place.start(arguments);
        run.wait_until("a container", |_| !docker.containers().is_empty());
        run
    };

    let run = under_load(&RUN);
    run.signal(Signal::KILL);
    run.end();
    wait_until("the end of the containers", || docker.containers().is_empty());

    let run = under_load(&again);
    run.signal(Signal::STOP); // it cannot see that its wardens are gone
    for warden in place.processes().iter().filter(|process| process.name == "warden") {
        kill_process(Pid::from_raw(warden.pid).unwrap(), Signal::KILL).unwrap();
    }
    run.signal(Signal::KILL);
    run.end();
    assert_eq!(docker.containers().len(), 1, "nobody is left to remove it");
    let ended = place.plimsoll(&again).with_any_verdict();
    ended.says(&["removed the containers that the interrupted run had left"]);
    assert!(docker.containers().is_empty());

    let versions = place.read("bundle/versions.json");
    let id = docker.ask(&["image", "inspect", "--format", "{{.Id}}", IMAGE]);
    let id = id.trim().trim_start_matches("sha256:");
    assert!(versions.contains(id), "{versions}");
    // What serves is not below the warden: its work is that of the container.
    let processes = place.read("bundle/starts/0001/processes.csv");
    let used: f64 = column(&processes, "cpu_cores").filter_map(|cell| cell.parse::<f64>().ok()).sum();
    assert!(used > 0.05, "{processes}");
}

#[test]
fn services_of_a_compose_file_are_measured_one_by_one() {
    let (docker, words) = match Docker::start().and_then(|docker| Ok((docker, compose()?))) {
        Ok(there) => there,
        Err(reason) => return skipped(reason),
    };
    let (name, host) = docker.host();
    let start = format!(
        "start = {{ compose = \"compose.yaml\", with = \"{}\" }}\n\
         env = {{ {name} = \"{host}\", PLIMSOLL = \"{{plimsoll}}\", MODE = \"{{mode}}\", ADDRESS = \"{{address}}\" }}\n\
         ready = {{ tcp = \"{{address}}\", within = \"60s\" }}\nstop = {{ grace = \"1s\" }}",
        words.join(" ")
    );
    let measures = r#"measures = ["iteration_duration.p50", "cpu:counter/busy.avg"]"#;
    let study = edited(&edited(TINY, START, &start), r#"measure = "iteration_duration.p50""#, measures);
    let place = Place::with_study(&edited(&study, "\"300ms\"", "\"2500ms\""));
    let mounts: String = MOUNTS.iter().map(|mount| format!("\"{mount}\", ")).collect();
    let service =
        format!("{{ image: \"{IMAGE}\", network_mode: host, volumes: [{mounts}\"$PLIMSOLL:/plimsoll:ro\"], command: ");
    let file = format!(
        "version: \"3.8\"\nservices:\n  \
         served: {service}[/plimsoll, demo-server, --mode, $MODE, --listen, $ADDRESS] }}\n  \
         busy: {service}[sh, -c, 'while :; do sleep 0.002; done'] }}\n"
    );
    place.write("compose.yaml", &file);
    place.plimsoll(&RUN).with_any_verdict();

    let processes = place.read("bundle/starts/0001/processes.csv");
    let systems: BTreeSet<&str> = column(&processes, "system").collect();
    assert_eq!(systems, BTreeSet::from(["counter/busy", "counter/served"]), "{processes}");
    let report = place.read("bundle/report/report.md");
    assert!(report.contains("CPU of counter/busy, mean"), "{report}");
    let page = place.read("bundle/report/report.html");
    assert!(page.contains("memory of counter/served, mean and peak"));
    assert!(place.read("bundle/versions.json").contains("engine "));
}
