//! Programs, builds and versions.

use crate::common::{Place, command, launcher, wait_until};
use plimsoll_model::system::Probe;
use plimsoll_system::{Interrupt, SystemError, check_command, check_commands};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_command_that_is_not_found_says_where_it_was_looked_for() {
    let place = Place::new();
    let mut spec = place.system("");
    let by_path = check_command(&command(&["./counter", "-v"]), &spec).unwrap_err().to_string();
    let file = place.folder.path().join("./counter").display().to_string();
    assert!(by_path.contains(&format!("looked for {file}")), "{by_path}");
    assert!(by_path.contains("`./counter -v`"), "{by_path}");

    spec.env.insert("PATH".to_owned(), "/no/bin:tools".to_owned());
    let by_name = check_command(&command(&["counter"]), &spec).unwrap_err().to_string();
    let tools = place.folder.path().join("tools");
    assert!(by_name.contains(&format!("in PATH: /no/bin, {}", tools.display())), "{by_name}");

    fs::create_dir(&tools).unwrap();
    fs::write(tools.join("counter"), "").unwrap();
    assert!(check_command(&command(&["counter"]), &spec).is_err(), "it is no program yet");
    let not_executable = check_command(&command(&["tools/counter"]), &spec).unwrap_err();
    assert!(not_executable.to_string().contains("chmod +x"), "{not_executable}");
    fs::set_permissions(tools.join("counter"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(check_command(&command(&["counter"]), &spec).unwrap(), tools.join("counter"));
}

#[test]
fn the_commands_of_a_system_are_checked_before_anything_runs() {
    let place = Place::new();
    let mut spec = place.system("true");
    assert!(check_commands(&spec).is_empty());
    spec.start = command(&["./made-by-the-build"]);
    assert!(matches!(check_commands(&spec)[..], [SystemError::NotFound { .. }]));
    spec.build = Some(command(&["sh", "-c", "true"]));
    assert!(check_commands(&spec).is_empty());
    spec.version = Some(command(&["no-such-program"]));
    assert!(matches!(check_commands(&spec)[..], [SystemError::NotFound { .. }]));
    spec.dir = place.folder.path().join("missing");
    assert!(matches!(check_commands(&spec)[..], [SystemError::NoFolder { .. }]));
}

#[test]
fn every_missing_program_of_a_system_is_named_once() {
    let place = Place::new();
    let mut spec = place.system("true");
    spec.build = Some(command(&["no-such-compiler", "."]));
    spec.start = command(&["no-such-server", "--listen"]);
    spec.version = Some(command(&["no-such-server", "--version"]));
    spec.ready.probe = Probe::Command(command(&["no-such-probe"]));
    let faults: Vec<String> = check_commands(&spec).iter().map(ToString::to_string).collect();
    let named = |fault: &String| fault.split('`').nth(1).map(str::to_owned);
    let programs: Vec<Option<String>> = faults.iter().map(named).collect();
    assert_eq!(programs, ["no-such-compiler", "no-such-server", "no-such-probe"].map(|name| Some(name.to_owned())));
}

#[test]
fn a_build_makes_what_the_start_needs() {
    let place = Place::new();
    let mut spec = place.system("");
    spec.build = Some(command(&["sh", "-c", "echo building; printf '#!/bin/sh\nsleep 1000\n' > made; chmod +x made"]));
    spec.start = command(&["./made"]);
    let took = launcher().build(&spec, &place.output(), &Interrupt::new()).unwrap();
    assert!(!took.is_zero());
    assert_eq!(fs::read_to_string(place.output()).unwrap(), "building\n");
    launcher().start(&spec, &place.output()).unwrap().stop().unwrap();
}

#[test]
fn a_build_that_fails_shows_its_output() {
    let place = Place::new();
    let mut spec = place.system("");
    spec.build = Some(command(&["sh", "-c", "echo main.go:7: undefined: x >&2; exit 1"]));
    let message = launcher().build(&spec, &place.output(), &Interrupt::new()).unwrap_err().to_string();
    for part in
        ["the build command `sh -c", "`counter` failed with exit code 1", "main.go:7: undefined: x", "output.log"]
    {
        assert!(message.contains(part), "{part} is missing in: {message}");
    }
}

#[test]
fn a_version_is_the_hash_of_the_program_and_the_first_line_of_its_command() {
    let place = Place::new();
    fs::write(place.folder.path().join("server"), "abc").unwrap();
    fs::set_permissions(place.folder.path().join("server"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut spec = place.system("");
    spec.start = command(&["./server"]);
    spec.version = Some(command(&["sh", "-c", "echo ' counter 1.4 '; echo built today"]));
    let version = launcher().version_of(&spec, &Interrupt::new()).unwrap().unwrap();
    assert_eq!((version.name.as_str(), version.program.as_str()), ("counter", "./server"));
    assert_eq!(version.version.as_deref(), Some("counter 1.4"));
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; // FIPS 180-2, B.1
    assert_eq!(version.sha256.as_deref(), Some(abc));

    spec.version = Some(command(&["sh", "-c", "echo no such option; exit 2"]));
    let message = launcher().version_of(&spec, &Interrupt::new()).unwrap_err().to_string();
    assert!(message.contains("the version command") && message.contains("no such option"), "{message}");
}

#[test]
fn a_relative_folder_is_taken_from_where_plimsoll_runs() {
    let place = Place::new();
    let mut spec = place.system("");
    spec.dir = "tests".into(); // tests run in the folder of their crate
    spec.start = command(&["sh", "-c", "ls it/commands.rs; exec sleep 1000"]);
    spec.version = Some(command(&["ls", "it/main.rs"]));
    let system = launcher().start(&spec, &place.output()).unwrap();
    wait_until("its output", || fs::read_to_string(place.output()).unwrap() == "it/commands.rs\n");
    assert_eq!(
        launcher().version_of(&spec, &Interrupt::new()).unwrap().unwrap().version.as_deref(),
        Some("it/main.rs")
    );
    system.stop().unwrap();
}
