//! Settings that are wrong, which are named in a line.

use crate::service::{OwnDatabase, planner};
use std::process::Command;

const SERVE: [&str; 3] = ["serve", "--listen", "127.0.0.1:0"];

/// Runs a command that fails with this status and one line.
fn fails(command: &mut Command, status: i32) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(status), &b""[..]), "{said}");
    assert!(said.starts_with("planner: ") && said.ends_with('\n') && said.lines().count() == 1, "{said:?}");
    said
}

#[test]
fn a_wrong_argument_or_variable_is_named_in_a_line() {
    let right = "postgres://tester:hidden@127.0.0.1:1/planner";
    for (arguments, variables, named) in [
        (&["serve"][..], &[("DATABASE_URL", right)][..], "`serve --listen ADDRESS:PORT`"),
        (&["sail"], &[], "found `sail`"),
        (&["serve", "--listen", "here"], &[("DATABASE_URL", right)], "--listen is `here`"),
        (&SERVE, &[], "DATABASE_URL is not set"),
        (&SERVE, &[("DATABASE_URL", "")], "DATABASE_URL is not set"),
        (&["migrate"], &[], "DATABASE_URL is not set"),
        (&SERVE, &[("DATABASE_URL", "postgres://tester:hidden@127.0.0.1:port/planner")], "DATABASE_URL is no address"),
        (&SERVE, &[("DATABASE_URL", "planner")], "DATABASE_URL is no address"),
        (&SERVE, &[("DATABASE_URL", "postgres:///planner")], "it has no host"),
        (&SERVE, &[("DATABASE_URL", right), ("MAX_CONNECTIONS", "0")], "MAX_CONNECTIONS is `0`"),
        (&SERVE, &[("DATABASE_URL", right), ("MAX_CONNECTIONS", "many")], "MAX_CONNECTIONS is `many`"),
    ] {
        let said = fails(planner(arguments).envs(variables.iter().copied()), 2);
        assert!(said.contains(named) && !said.contains("hidden"), "{said}");
    }
}

#[test]
fn a_database_that_does_not_answer_is_named_in_a_line() {
    for arguments in [&SERVE[..], &["migrate"]] {
        let said = fails(planner(arguments).env("DATABASE_URL", "postgres://tester:hidden@127.0.0.1:1/planner"), 1);
        assert!(said.contains("DATABASE_URL") && said.contains("refused") && !said.contains("hidden"), "{said}");
    }
}

#[test]
fn a_database_without_the_schema_asks_for_migrate_which_runs_any_number_of_times() {
    let Some(database) = OwnDatabase::create() else { return };
    let said = fails(planner(&SERVE).env("DATABASE_URL", &database.url), 1);
    assert!(said.contains("`planner migrate`"), "{said}");
    for _ in 0..2 {
        let output = planner(&["migrate"]).env("DATABASE_URL", &database.url).output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn version_is_name_and_version() {
    let output = planner(&["version"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("planner {}\n", env!("CARGO_PKG_VERSION")));
}
