//! Containers of a real engine: started, watched, stopped, and nothing of them left.

use crate::common::{Place, command, launcher, wait_until};
use plimsoll_model::system::{CommandLine, Containers, ContainersOf, Probe, StopPolicy, SystemSpec};
use plimsoll_system::{Interrupt, Launcher, Running, SystemError, check_containers, free_port};
use plimsoll_testkit::docker::{self, Docker, IMAGE, MOUNTS};
use plimsoll_testkit::skipped;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// A service that says when it runs and when it is asked to end.
const SERVICE: &str = "trap 'echo asked; exit 0' TERM; echo runs; while :; do sleep 0.05; done";

/// An engine; none where none can run here.
fn docker() -> Option<Docker> {
    Docker::start().map_err(skipped).ok()
}

/// The words of Compose; none where it is not installed.
fn compose() -> Option<&'static [&'static str]> {
    docker::compose().map_err(skipped).ok()
}

fn of_run() -> Launcher {
    launcher().of_run("2026-11-27T03:30:33.5Z")
}

/// A system of the services of a Compose file: each a name and a shell script.
fn compose_system(place: &Place, docker: &Docker, words: &[&str], services: &[(&str, &str)]) -> SystemSpec {
    let mut file = String::from("version: \"3.8\"\nservices:\n");
    for (name, script) in services {
        let script = serde_json::to_string(&["sh", "-c", &script.replace('$', "$$")]).unwrap();
        file +=
            &format!("  {name}:\n    image: {IMAGE}\n    network_mode: host\n    command: {script}\n    volumes:\n");
        MOUNTS.iter().for_each(|mount| file += &format!("      - {mount}\n"));
        file += "      - data:/data\n";
    }
    file += "volumes:\n  data:\n";
    fs::write(place.folder.path().join("compose.yaml"), file).unwrap();
    let start = [words, &["--file", "compose.yaml", "up"]].concat();
    let origin = ContainersOf::Compose("compose.yaml".into());
    of_engine(place, docker, command(&start), origin)
}

/// A system of one container that runs a shell script.
fn image_system(place: &Place, docker: &Docker, script: &str) -> SystemSpec {
    let mounts = MOUNTS.iter().flat_map(|mount| ["-v", mount]);
    let start: Vec<&str> = ["docker", "run", "--env", "COLOUR", "--network", "host"]
        .into_iter()
        .chain(mounts)
        .chain([IMAGE, "sh", "-c", script])
        .collect();
    let mut system = of_engine(place, docker, command(&start), ContainersOf::Image(IMAGE.to_owned()));
    system.env.insert("COLOUR".to_owned(), "green".to_owned());
    system
}

fn of_engine(place: &Place, docker: &Docker, start: CommandLine, origin: ContainersOf) -> SystemSpec {
    let mut system = place.system("true");
    system.start = start;
    system.containers = Some(Containers { engine: "docker".to_owned(), origin });
    system.env.extend([docker.host()]);
    system
}

/// A system of one container whose engine is asked by a shell script.
fn with_client(place: &Place, script: &str) -> SystemSpec {
    let program = place.folder.path().join("docker");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut system = place.system("true");
    system.env.insert("PATH".to_owned(), format!("{}:{path}", place.folder.path().display()));
    system.start = command(&["docker", "run", "nginx"]);
    let origin = ContainersOf::Image("nginx".to_owned());
    system.containers = Some(Containers { engine: "docker".to_owned(), origin });
    system
}

/// The kernel tells starts of processes by hundredths of a second: what starts after this is younger than this process.
fn pass_a_tick() {
    std::thread::sleep(Duration::from_millis(20));
}

fn started(place: &Place, system: &SystemSpec) -> Running {
    let running = of_run().start(system, &place.output()).unwrap();
    running.wait_ready(&Interrupt::default()).unwrap();
    running
}

fn wrote(place: &Place, text: &str) -> bool {
    fs::read_to_string(place.output()).is_ok_and(|output| output.contains(text))
}

fn end(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// Containers, networks and volumes of an engine that Plimsoll made.
fn left(docker: &Docker) -> String {
    let volumes = docker.ask(&["volume", "ls", "--quiet"]);
    let networks = docker.ask(&["network", "ls", "--quiet", "--filter", "name=plimsoll"]);
    format!("{}{volumes}{networks}", docker.containers().join("\n"))
}

#[test]
fn the_services_of_a_compose_file_are_asked_to_end_and_nothing_of_them_is_left() {
    let (Some(docker), Some(words)) = (docker(), compose()) else { return };
    let place = Place::new();
    let services = [("app", SERVICE), ("db", SERVICE), ("once", "exit 0")];
    let mut system = compose_system(&place, &docker, words, &services);
    // Ready once the third has done its work.
    let once = "until test \"$(docker ps --all --quiet --filter status=exited | wc -l)\" = 1; do sleep 0.05; done";
    system.ready.probe = Probe::Command(command(&["sh", "-c", once]));
    assert!(check_containers(&system, &[]).is_none());
    let file = fs::read_to_string(place.folder.path().join("compose.yaml")).unwrap();
    fs::write(place.folder.path().join("unset.yaml"), file.replace(IMAGE, "${PLIMSOLL_UNSET}")).unwrap();
    let unset = SystemSpec {
        containers: Some(Containers {
            engine: "docker".to_owned(),
            origin: ContainersOf::Compose("unset.yaml".into()),
        }),
        ..system.clone()
    };
    let message = check_containers(&unset, &[]).expect("a variable without a value").to_string();
    assert!(message.contains("PLIMSOLL_UNSET"), "{message}");
    assert!(check_containers(&system, &["db", "app"]).is_none());
    let message = check_containers(&system, &["dbx"]).expect("a service that is not there").to_string();
    assert!(message.contains("no service `dbx`") && message.contains("app, db and once"), "{message}");
    let running = started(&place, &system);
    let services = running.services();
    let names: Vec<(&str, usize)> = services.iter().map(|one| (one.name.as_str(), one.first.len())).collect();
    assert_eq!(names, [("app", 1), ("db", 1), ("once", 0)], "and one that has done its work");
    wait_until("the output of a service", || wrote(&place, "runs"));
    let versions = running.versions_of_containers();
    let told: Vec<&str> = versions.iter().filter_map(|one| one.version.as_deref()).collect();
    let mut images = told[..2].to_vec();
    images.sort_unstable();
    assert_eq!(images, ["image of `app`", "image of `db`"]);
    assert!(told[2].starts_with("engine ") && told.len() == 3, "{told:?}");
    assert_eq!((versions[0].program.as_str(), versions[0].sha256.as_ref().map(String::len)), (IMAGE, Some(64)));
    running.check().unwrap();
    let stopped = running.stop().unwrap();
    assert_eq!(stopped.killed, 0, "{stopped:?}");
    assert!(wrote(&place, "asked"), "{:?}", fs::read_to_string(place.output()));
    assert_eq!(left(&docker), "");
}

#[test]
fn a_container_that_ends_is_the_end_of_its_system() {
    let (Some(docker), Some(words)) = (docker(), compose()) else { return };
    let place = Place::new();
    let running = started(&place, &compose_system(&place, &docker, words, &[("app", SERVICE), ("db", SERVICE)]));
    end(running.services()[0].first[0]);
    let mut ended = None;
    wait_until("its end", || {
        ended = running.check().err();
        ended.is_some()
    });
    let message = ended.expect("an error").to_string();
    let named =
        ["app", "db"].iter().any(|service| message.starts_with(&format!("the container `{service}` of the system")));
    assert!(named && message.contains("`counter` ended by itself, with exit code 137,"), "{message}");
    assert!(matches!(running.stop(), Err(SystemError::ContainerEnded { .. })));
    assert_eq!(left(&docker), "");

    let failing = compose_system(&place, &docker, words, &[("app", SERVICE), ("db", "echo no data; exit 3")]);
    let running = of_run().start(&failing, &place.output()).unwrap();
    let ready = running.wait_ready(&Interrupt::default());
    wait_until("the failure of a service", || wrote(&place, "exited with code 3"));
    let stopped = running.stop().map(|_| ());
    let message = ready.map(|_| ()).and(stopped).expect_err("one has failed");
    let message = message.to_string();
    assert!(message.contains("exit code 3") && message.contains("no data"), "{message}");
    assert_eq!(left(&docker), "");
}

#[test]
fn a_container_of_an_image_gets_the_environment_and_ends_with_its_warden() {
    let Some(docker) = docker() else { return };
    let place = Place::new();
    let system = image_system(&place, &docker, "echo it is $COLOUR; while :; do sleep 0.05; done");
    let running = started(&place, &system);
    wait_until("its environment", || wrote(&place, "it is green"));
    drop(running);
    assert_eq!(left(&docker), "", "after a drop");

    let running = started(&place, &system);
    end(running.warden());
    let stopped = running.stop();
    assert!(matches!(stopped, Err(SystemError::WardenLost { .. })), "{stopped:?}");
    assert_eq!(left(&docker), "", "after the warden is lost");

    let running = started(&place, &system);
    end(running.warden());
    std::mem::forget(running); // as if Plimsoll had died with it
    assert_eq!(docker.containers().len(), 1);
    let other = launcher().of_run("2026-11-27T03:30:33.6Z");
    assert_eq!(other.remove_left_over(&system).unwrap(), 0, "it is of another run");
    assert_eq!(of_run().remove_left_over(&system).unwrap(), 1);
    assert_eq!(left(&docker), "", "after the next process of the run");

    let ending = image_system(&place, &docker, "echo ends; sleep 8; exit 3");
    let running = started(&place, &ending);
    let mut ended = None;
    wait_until("its end", || {
        ended = running.check().err();
        ended.is_some()
    });
    let message = ended.expect("an error").to_string();
    assert!(message.contains("exit code 3") && message.contains("ends"), "{message}");
    drop(running);

    let mut deaf = image_system(&place, &docker, "trap '' TERM; while :; do sleep 0.05; done");
    deaf.stop = StopPolicy { grace: Duration::from_secs(1), ..deaf.stop };
    let running = started(&place, &deaf);
    assert_eq!(running.stop().unwrap().killed, 1);
    assert_eq!(left(&docker), "");
}

#[test]
fn what_cannot_be_started_is_named_beforehand() {
    let place = Place::new();
    let mut system = place.system("true");
    system.start = command(&["docker", "compose", "--file", "none.yaml", "up"]);
    let origin = ContainersOf::Compose("none.yaml".into());
    system.containers = Some(Containers { engine: "docker".to_owned(), origin });
    let message = check_containers(&system, &[]).expect("no file").to_string();
    assert!(message.starts_with("the Compose file of the system `counter` was not found: "), "{message}");

    // A client that finds no engine.
    let system = with_client(&place, "echo no engine here >&2; exit 1");
    let message = check_containers(&system, &[]).expect("no engine").to_string();
    assert!(message.contains("`docker ps --quiet` failed: no engine here; start the engine"), "{message}");
}

#[test]
fn processes_of_an_engine_elsewhere_are_not_taken_for_those_of_this_machine() {
    pass_a_tick();
    let this_process = std::process::id().to_string();
    // The client stands for the first process of its container; or an older process has the number of that.
    for (pid, is_elsewhere) in [("$(cat pid)", false), (this_process.as_str(), true)] {
        let place = Place::new();
        let client = format!(
            "case \"$1\" in
             run) echo $$ > written; mv written pid; exec sleep 1000;;
             ps) if [ -e pid ] && [ ! -e removed ]; then echo a; fi;;
             container) printf 'running\\t%s\\t0\\tfalse\\tsha256:ab\\tnginx\\t/web\\t\\t0\\t0\\t0\\t0\\n' \"{pid}\";;
             rm) touch removed;;
             esac"
        );
        let running = launcher().start(&with_client(&place, &client), &place.output()).unwrap();
        running.wait_ready(&Interrupt::new()).unwrap();
        let services = running.services();
        assert_eq!((services.len(), services[0].name.as_str()), (1, "web"));
        assert_eq!((services[0].is_elsewhere, services[0].first.is_empty()), (is_elsewhere, is_elsewhere), "{pid}");
        running.check().unwrap();
        running.stop().unwrap();
    }
}

#[test]
fn an_engine_that_listens_itself_is_no_forwarder_of_a_system() {
    pass_a_tick();
    let place = Place::new();
    let mut system = with_client(&place, "case \"$1\" in run) exec sleep 1000;; esac");
    let port = free_port().unwrap();
    system.port = Some(port);
    let running = launcher().start(&system, &place.output()).unwrap();
    // This process, which was there before, stands for the engine.
    let _listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    assert_eq!(running.forwarder(), None);
}
