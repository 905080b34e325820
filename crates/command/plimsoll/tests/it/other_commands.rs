//! `init`, `schema`, `completions`, `help`, and the start of `demo`.

use crate::common::{Place, Started, TINY, edited};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// `check` with programs looked up in `folder` alone.
fn check_with_path(place: &Place, folder: &Path) -> Started {
    let mut command = place.command(&["check", "new/study.toml"]);
    command.env("PATH", folder);
    Started::new(command)
}

#[test]
fn init_writes_a_study_that_check_accepts() {
    let place = Place::empty();
    place.plimsoll(&["init", "new"]).with(0).prints(&["wrote new/study.toml", "plimsoll check new/study.toml"]);
    let programs = place.path("programs");
    std::fs::create_dir(&programs).unwrap();
    check_with_path(&place, &programs).end().with(2).says(&["the program `python3` of the system `web` was not found"]);
    // `check` starts nothing, so that any program of that name will do.
    place.write("programs/python3", "#!/bin/sh\n");
    std::fs::set_permissions(programs.join("python3"), std::fs::Permissions::from_mode(0o755)).unwrap();
    check_with_path(&place, &programs).end().with(0).prints(&["no errors; 10 starts of 3 variants"]);
}

#[test]
fn init_does_not_overwrite_a_study() {
    let place = Place::with_study("mine");
    place.plimsoll(&["init"]).with(2).says(&["study.toml is there already", "plimsoll init DIR"]);
    assert_eq!(place.read("study.toml"), "mine");
    place.plimsoll(&["init", "study.toml"]).with(2).says(&["failed to make the folder study.toml"]);
}

#[test]
fn a_full_disk_leaves_no_part_of_a_new_file() {
    let place = Place::empty();
    for (arguments, file) in [(&["init", "new"][..], "new/study.toml"), (&["script", "new", "own.js"], "own.js")] {
        // No file takes a byte there; what is said goes to a pipe.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_plimsoll")]);
        let full = command.args(arguments).current_dir(place.path("")).stdin(Stdio::null()).output().unwrap();
        let says = String::from_utf8_lossy(&full.stderr);
        assert!(!full.status.success() && says.contains(&format!("failed to write {file}")), "{says}");
        assert!(!place.has(file), "{file} is left");
        place.plimsoll(arguments).with(0).prints(&[&format!("wrote {file}")]);
    }
}

#[test]
fn printed_commands_have_quotes_where_a_shell_needs_them() {
    let place = Place::with_study(&edited(TINY, "[system.counter]", "[system.counter]\non = \"my servers\""));
    place.plimsoll(&["init", "my study"]).with(0).prints(&[
        "wrote my study/study.toml",
        "plimsoll check 'my study/study.toml'",
        "plimsoll plan 'my study/study.toml'",
        "plimsoll run 'my study/study.toml'",
    ]);
    let script = r"wrote it's.js; run it with `plimsoll script run 'it'\''s.js'`";
    place.plimsoll(&["script", "new", "it's.js"]).with(0).prints(&[script]);
    place.plimsoll(&["audit", "my study"]).with(2).says(&["`plimsoll report 'my study'`"]);
    place.plimsoll(&["run", "study.toml"]).with(2).says(&["--label 'my servers' --systems FOLDER"]);
}

#[test]
fn the_schema_is_the_one_in_the_documentation() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/study.schema.json");
    let printed = Place::empty().plimsoll(&["schema"]).with(0).stdout;
    assert_eq!(
        printed,
        std::fs::read_to_string(kept).unwrap(),
        "write it anew: plimsoll schema > docs/study.schema.json"
    );
}

#[test]
fn completions_know_the_subcommands() {
    Place::empty().plimsoll(&["completions", "bash"]).with(0).prints(&["_plimsoll()", "report", "--resume"]);
}

/// As in `plimsoll schema | head -1`.
#[test]
fn a_reader_that_goes_away_has_read_enough() {
    let place = Place::with_study(TINY);
    let shell = |script: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", script, env!("CARGO_BIN_EXE_plimsoll")]).current_dir(place.path("")).stdin(Stdio::null());
        Started::new(command).end()
    };
    for arguments in ["schema", "completions bash", "check study.toml", "plan study.toml"] {
        let ended = shell(&format!("\"$0\" {arguments} | : ; exit ${{PIPESTATUS[0]}}")).with(0);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        shell(&format!("\"$0\" {arguments} > /dev/full")).with(2).says(&["failed to write to standard output"]);
    }
    shell("\"$0\" check nowhere.toml 2> /dev/full").with(2);
}

#[test]
fn every_subcommand_has_help() {
    let place = Place::empty();
    let help = place.plimsoll(&["help"]).with(0);
    let listed = help.stdout.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(["demo", "init", "check", "plan", "run", "report"].iter().all(|name| names.contains(name)), "{names:?}");
    for name in names.into_iter().filter(|name| *name != "help") {
        place.plimsoll(&[name, "--help"]).with(0).prints(&[&format!("Usage: plimsoll {name}")]);
    }
}

#[test]
fn help_lists_the_exit_codes() {
    Place::empty().plimsoll(&["help"]).with(0).prints(&[
        "Exit codes: 0 fine",
        "1 a variant is worse",
        "2 usage or study error",
        "3 a system failed",
        "4 inconclusive or void",
        "5 the gate is not passed",
        "130 interrupted",
    ]);
}

#[test]
fn wrong_arguments_end_with_two() {
    let place = Place::empty();
    for (arguments, says) in [
        (&[][..], "Usage: plimsoll"),
        (&["chek"], "similar subcommands exist"),
        (&["run"], "<STUDY>"),
        (&["run", "study.toml", "--resume"], "--out <DIR>"),
        (&["demo-server", "--mode", "fast", "--listen", "127.0.0.1:0"], "expected `mutex`, `inputQ` or `racy`"),
    ] {
        place.plimsoll(arguments).with(2).says(&[says]);
    }
}

#[test]
fn the_demo_begins_and_can_be_interrupted() {
    let place = Place::empty();
    let demo = place.start_until_it_runs(&["demo", "--out", "bundle"], "demo-server");
    demo.signal(Signal::INT);
    let ended = demo.end().with(130).says(&["8 starts, 1 min", "interrupted", "plimsoll report bundle"]);
    assert!(!ended.stderr.contains("go on"), "nothing goes on with a demo:\n{}", ended.stderr);
    place.nothing_runs();
}
