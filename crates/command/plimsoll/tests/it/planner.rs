//! The study `planner-capacity` with its service and a PostgreSQL: the exact counts of the busiest day.

use crate::common::{Place, edited};
use plimsoll_model::result::StartResult;
use plimsoll_testkit::skipped;
use std::path::{Path, PathBuf};

const BUSIEST_DAY: &str = include_str!("../../../../../studies/planner-capacity/busiest-day.toml");
const BY_SCRIPT: &str = include_str!("../../../../../studies/planner-capacity/script.toml");

/// The service, where it was built beside Plimsoll, as all tests together build it.
fn service() -> Option<PathBuf> {
    let planner = Path::new(env!("CARGO_BIN_EXE_plimsoll")).with_file_name("planner");
    if !planner.exists() {
        skipped("the service of studies/planner-capacity is not built: cargo build -p planner");
        return None;
    }
    Some(planner)
}

/// A place with the study for twelve users in a hurry, where its service and PostgreSQL are there.
fn place(study: &str, replaced: &[(&str, &str)]) -> Option<Place> {
    let place = Place::with_study(&hurried(study, &service()?, replaced));
    place.write("script.js", include_str!("../../../../../studies/planner-capacity/script.js"));
    let checked = place.plimsoll(&["check", "study.toml"]);
    if checked.stderr.contains("install the package") {
        skipped(checked.stderr);
        return None;
    }
    checked.with(0);
    Some(place)
}

/// The study for twelve users in a hurry, with this service.
fn hurried(study: &str, service: &Path, replaced: &[(&str, &str)]) -> String {
    let service = service.to_str().unwrap();
    let study =
        edited(study, "dir     = \"server\"\nbuild   = \"cargo build --release --locked --target-dir target\"\n", "");
    let study = study.replace("server/target/release/planner", service).replace("target/release/planner", service);
    let study = replaced.iter().fold(study, |study, (from, to)| edited(&study, from, to));
    // As long as scripts wait. All tests together leave the service a small part of the processors.
    let study = study.replace("protocol = \"http\"", "protocol = \"http\"\ntimeout = \"60s\"");
    let study = edited(&study, "users       = [300]", "users       = [12]");
    let study = edited(&study, "new_users = 8", "new_users = 100");
    let study = edited(&study, "repeats  = 3", "repeats  = 1\nspare_blocks = 0");
    edited(&study, "max_lateness = \"50ms\"", "max_lateness = \"10s\"\nmax_cpu = \"100%\"")
}

/// The numbers of requests by name, as the generator sent them and the service answered them.
fn counts(start: &StartResult, name: &str) -> (u64, u64) {
    let account = &start.loads[0].summary.replies.accounts[&format!("request:{name}")];
    (account.sent, account.answered)
}

fn assert_exact(place: &Place) {
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    let start = &bundle.starts[0];
    assert!(start.validity().counts(), "{:?}", start.validity());
    for (name, expected) in [("log in", 12), ("make a plan", 12), ("update", 264)] {
        assert_eq!(counts(start, name), (expected, expected), "{name}");
    }
    let pages = counts(start, "index");
    assert!(pages.0 > 0 && pages.0 == pages.1);
    assert_eq!([counts(start, "search"), counts(start, "plan")], [pages, pages]);
}

const TIMES: [(&str, &str); 3] = [("\"250ms\"", "\"5ms\""), ("\"750ms\"", "\"15ms\""), ("\"2500ms\"", "\"20ms\"")];

#[test]
fn the_busiest_day_has_the_exact_number_of_each_request() {
    let Some(place) = place(BUSIEST_DAY, &TIMES) else { return };
    place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with_any_verdict();
    place.nothing_runs();
    assert_exact(&place);
    let report = place.read("bundle/report/report.md");
    assert!(report.contains("| update | 264 | 264 | 0 | 0 | 1 |"), "{report}");
}

#[test]
fn the_users_of_the_script_do_the_same() {
    let times = [("[0.25]", "[0.005]"), ("[0.75]", "[0.015]"), ("[2.5]", "[0.02]")];
    let Some(place) = place(BY_SCRIPT, &times) else { return };
    place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with_any_verdict();
    place.nothing_runs();
    assert_exact(&place);
}

#[test]
fn the_searches_of_the_study_and_their_profiles_are_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../studies/planner-capacity");
    for file in ["study.toml", "stress.toml"] {
        let place = Place::with_study(&std::fs::read_to_string(folder.join(file)).unwrap());
        for name in ["plans.sql", "plans.csv"] {
            place.write(name, std::fs::read(folder.join(name)).unwrap());
        }
        std::fs::create_dir_all(place.path("server/src")).unwrap();
        place.write("server/src/schema.sql", std::fs::read(folder.join("server/src/schema.sql")).unwrap());
        let checked = place.plimsoll(&["check", "study.toml"]);
        if checked.stderr.contains("install the package") {
            return skipped(checked.stderr);
        }
        let checked = checked.with(0);
        assert!(!checked.stderr.contains("warning"), "{}", checked.stderr);
        let plan = ["plan", "study.toml", "--profile", "quick"];
        place.plimsoll(&plan).with(0).prints(&["3 starts, each a ", "of 2 variants"]);
    }
}

#[test]
fn a_plan_too_many_fails_the_start() {
    let Some(place) = place(&edited(BUSIEST_DAY, "count(*) from dataset\"", "count(*) + 1 from dataset\""), &TIMES)
    else {
        return;
    };
    place
        .plimsoll(&["run", "study.toml", "--out", "bundle"])
        .with(3)
        .says(&["count(*) + 1 from dataset` = 12", "it gives 13"]);
    place.nothing_runs();
}
