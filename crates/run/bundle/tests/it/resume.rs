//! Resuming the bundle of an interrupted run.

use crate::given::{self, named};
use plimsoll_bundle::{BundleError, BundleWriter, read};
use plimsoll_model::event::Event;
use plimsoll_model::host::Version;
use plimsoll_model::look::Look;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// A bundle with `sealed` of four starts, whose writer was dropped.
fn interrupted(sealed: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 4);
    given::tell_versions(&mut bundle, &given::versions());
    (1..=sealed).for_each(|number| given::seal(&mut bundle, number));
    folder
}

/// Resumes the run to its end, and asserts that nothing is lost and that there are no problems but those of `known`.
fn finish(folder: &Path, done: &[u32], known: &[&str]) {
    let mut bundle = given::resume(folder, 4);
    assert_eq!(bundle.recorded().starts.keys().copied().collect::<Vec<_>>(), done);
    let left: Vec<u32> = (1..=4).filter(|number| !done.contains(number)).collect();
    given::tell_versions(&mut bundle, &given::versions());
    left.iter().for_each(|number| given::seal(&mut bundle, *number));
    given::end(&mut bundle, None);
    let contents = read(folder).expect("a bundle");
    assert_eq!(given::numbers(&contents), [1, 2, 3, 4], "{:?}", contents.problems);
    contents.starts.iter().for_each(given::assert_whole);
    assert!(contents.complete);
    assert_eq!(contents.problems.len(), known.len(), "{:?}", contents.problems);
    known.iter().for_each(|word| assert!(named(&contents.problems, word), "{:?}", contents.problems));
}

fn append(path: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(bytes)).expect("a file");
}

#[test]
fn a_run_goes_on_with_the_starts_that_are_missing() {
    for sealed in 0..=4 {
        let folder = interrupted(sealed);
        finish(folder.path(), &(1..=sealed).collect::<Vec<_>>(), &[]);
    }
}

#[test]
fn an_unfinished_start_is_run_again() {
    let folder = interrupted(1);
    let mut bundle = given::resume(folder.path(), 4);
    given::begin(&mut bundle, 2);
    drop(bundle);
    finish(folder.path(), &[1], &[]);
    assert!(!folder.path().join("starts/0002.partial").exists());
}

#[test]
fn a_manifest_cut_off_anywhere_loses_nothing_that_is_sealed_later() {
    let mut missing = 1;
    loop {
        let folder = interrupted(2);
        let path = folder.path().join("manifest.jsonl");
        let manifest = fs::read(&path).expect("a manifest");
        let last = manifest.split_inclusive(|byte| *byte == b'\n').next_back().expect("lines").len();
        if missing > last {
            break;
        }
        fs::write(&path, &manifest[..manifest.len() - missing]).expect("a file");
        finish(folder.path(), &[1], &[]);
        missing += 31;
    }
}

#[test]
fn a_damaged_line_in_the_middle_stays_and_its_start_is_run_again() {
    for cut_off in [&b""[..], b"{\"sealed\":{\"part\":\"sta"] {
        let folder = interrupted(2);
        let path = folder.path().join("manifest.jsonl");
        let text = fs::read_to_string(&path).expect("a manifest");
        fs::write(&path, text.replace("\"start 1\"", "\"start 1")).expect("a file");
        append(&path, cut_off);
        finish(folder.path(), &[2], &["manifest.jsonl: line 4 is damaged or cut off"]);
    }
}

#[test]
fn a_start_that_died_between_renaming_and_sealing_is_run_again() {
    let folder = interrupted(2);
    let path = folder.path().join("manifest.jsonl");
    let text = fs::read_to_string(&path).expect("a manifest");
    let without_last = text.trim_end().rfind('\n').expect("more lines") + 1;
    fs::write(&path, &text[..without_last]).expect("a file");
    finish(folder.path(), &[1], &[]);
}

#[test]
fn a_study_that_was_not_sealed_any_more_is_sealed_when_the_run_goes_on() {
    let folder = interrupted(0);
    let path = folder.path().join("manifest.jsonl");
    let text = fs::read_to_string(&path).expect("a manifest");
    fs::write(&path, &text[..=text.find('\n').expect("a line")]).expect("a file");
    finish(folder.path(), &[], &[]);
    append(&folder.path().join("host.json"), b" ");
    assert!(named(&read(folder.path()).expect("a bundle").problems, "host.json was changed"));
}

#[test]
fn a_start_whose_folder_was_deleted_is_run_again() {
    let folder = interrupted(2);
    fs::remove_dir_all(folder.path().join("starts/0001")).expect("a folder");
    finish(folder.path(), &[2], &[]);
}

#[test]
fn a_start_whose_files_changed_is_not_gone_on_with() {
    let folder = interrupted(3);
    let starts = folder.path().join("starts");
    append(&starts.join("0002/load.csv"), b" ");
    fs::remove_file(starts.join("0003/totals.csv")).expect("a file");
    let refused = BundleWriter::resume(folder.path(), given::STUDY, &given::facts(), &given::plan(4));
    let refused = refused.expect_err("changed files").to_string();
    for word in
        ["starts/0002/load.csv was changed after the run", "starts/0003/totals.csv cannot be read", "delete the folder"]
    {
        assert!(refused.contains(word), "{refused}");
    }
    fs::remove_dir_all(starts.join("0002")).expect("a folder");
    fs::remove_dir_all(starts.join("0003")).expect("a folder");
    finish(folder.path(), &[1], &[]);
}

#[test]
fn an_event_that_was_cut_off_does_not_spoil_the_next() {
    let folder = interrupted(0);
    let path = folder.path().join("events.jsonl");
    append(&path, b"{\"at\":\"2026-11-21T00:00:00Z\",\"event\":\"run_finished\",\"complete\":false}\n{\"at\":\"20");
    let mut bundle = given::resume(folder.path(), 4);
    given::tell(&mut bundle, &Event::RunFinished { complete: true, decided_after: None });
    let text = fs::read_to_string(&path).expect("events");
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{text}");
}

#[test]
fn another_study_plan_or_resolution_is_refused_by_name() {
    let folder = interrupted(1);
    let (facts, plan) = (given::facts(), given::plan(4));
    let mut other_facts = facts.clone();
    other_facts.quick = true;
    let mut other_plan = plan.clone();
    other_plan.starts.swap(0, 1);
    let other_study = format!("{}# a comment\n", given::STUDY);
    for (study, facts, plan, word) in [
        (other_study.as_str(), &facts, &plan, "its study differs"),
        (given::STUDY, &other_facts, &plan, "its resolved study differs"),
        (given::STUDY, &facts, &other_plan, "its plan differs"),
    ] {
        let refused = BundleWriter::resume(folder.path(), study, facts, plan).expect_err(word);
        assert!(refused.to_string().contains(word), "{refused}");
    }
    finish(folder.path(), &[1], &[]);
}

#[test]
fn a_complete_bundle_has_nothing_left_to_run() {
    let folder = tempfile::tempdir().expect("a folder");
    given::complete(folder.path(), 2);
    let refused = BundleWriter::resume(folder.path(), given::STUDY, &given::facts(), &given::plan(2));
    assert!(matches!(refused, Err(BundleError::Complete(_))), "{refused:?}");
}

#[test]
fn a_complete_bundle_takes_no_lock_and_may_be_read_only() {
    let folder = tempfile::tempdir().expect("a folder");
    given::complete(folder.path(), 2);
    let manifest = folder.path().join("manifest.jsonl");
    let mut permissions = fs::metadata(&manifest).expect("a manifest").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&manifest, permissions).expect("a file");
    // Root may open it for writing all the same. Then the lock shows whether it was opened.
    let locked = File::open(&manifest).expect("a manifest");
    locked.try_lock().expect("nobody writes it");
    let resume = |study| BundleWriter::resume(folder.path(), study, &given::facts(), &given::plan(2));
    let refused = resume(given::STUDY);
    assert!(matches!(refused, Err(BundleError::Complete(_))), "{refused:?}");
    let refused = resume("another study");
    assert!(matches!(refused, Err(BundleError::OtherStudy { .. })), "{refused:?}");
}

#[test]
fn a_bundle_that_another_run_is_writing_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 2);
    let refused = BundleWriter::resume(folder.path(), given::STUDY, &given::facts(), &given::plan(2));
    assert!(matches!(refused, Err(BundleError::InUse(_))), "{refused:?}");
    given::seal(&mut bundle, 1);
    drop(bundle);
    assert_eq!(given::resume(folder.path(), 2).recorded().starts.len(), 1);
}

#[test]
fn a_bundle_is_read_only_once_nobody_else_writes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 2);
    given::seal(&mut bundle, 1);
    append(&folder.path().join("starts/0001/load.csv"), b" ");
    let resume = || BundleWriter::resume(folder.path(), given::STUDY, &given::facts(), &given::plan(2));
    let refused = resume();
    assert!(matches!(refused, Err(BundleError::InUse(_))), "what it seals meanwhile would be missed: {refused:?}");
    drop(bundle);
    let refused = resume();
    assert!(matches!(refused, Err(BundleError::Changed { .. })), "{refused:?}");
}

#[test]
fn a_folder_without_a_manifest_gets_none() {
    let folder = interrupted(1);
    let manifest = folder.path().join("manifest.jsonl");
    fs::remove_file(&manifest).expect("a manifest");
    let refused = BundleWriter::resume(folder.path(), given::STUDY, &given::facts(), &given::plan(4));
    assert!(matches!(refused, Err(BundleError::NoBundle(_))), "{refused:?}");
    assert!(!manifest.exists());
}

#[test]
fn a_manifest_that_is_not_gone_on_with_keeps_its_cut_off_line() {
    let folder = interrupted(1);
    let manifest = folder.path().join("manifest.jsonl");
    append(&manifest, b"{\"sealed\":{\"part\":\"sta");
    let before = fs::read(&manifest).expect("a manifest");
    let refused = BundleWriter::resume(folder.path(), "another study", &given::facts(), &given::plan(4));
    assert!(matches!(refused, Err(BundleError::OtherStudy { .. })), "{refused:?}");
    assert_eq!(fs::read(&manifest).expect("a manifest"), before);
}

#[test]
fn a_program_that_changed_in_between_is_kept_beside_the_first_and_named() {
    let folder = interrupted(1);
    let changed = Version { sha256: Some("cd".repeat(32)), ..given::versions()[0].clone() };
    let mut bundle = given::resume(folder.path(), 4);
    given::tell_versions(&mut bundle, std::slice::from_ref(&changed));
    drop(bundle);
    let contents = read(folder.path()).expect("a bundle");
    assert_eq!(contents.versions, [given::versions(), vec![changed]].concat());
    assert!(named(&contents.problems, "not all of the same programs"), "{contents:?}");
}

#[test]
fn a_program_behind_a_wrapper_that_shows_later_is_no_change() {
    let wrapped = Version { program: "/usr/bin/real".to_owned(), ..given::versions()[0].clone() };
    for going_on in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bundle = given::create(folder.path(), 4);
        given::tell_versions(&mut bundle, &given::versions());
        if going_on {
            drop(bundle);
            bundle = given::resume(folder.path(), 4);
            given::tell_versions(&mut bundle, &given::versions());
        }
        given::tell_versions(&mut bundle, std::slice::from_ref(&wrapped));
        drop(bundle);
        let contents = read(folder.path()).expect("a bundle");
        assert_eq!(contents.versions.len(), 2);
        assert!(!named(&contents.problems, "programs"), "{contents:?}");
    }
}

#[test]
fn a_file_with_two_hashes_changed_even_if_nobody_interrupted_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 4);
    let real = |hash: &str| Version {
        program: "/usr/bin/real".to_owned(),
        sha256: Some(hash.repeat(32)),
        ..given::versions()[0].clone()
    };
    given::tell_versions(&mut bundle, &[real("ab")]);
    given::tell_versions(&mut bundle, &[real("cd")]);
    drop(bundle);
    let contents = read(folder.path()).expect("a bundle");
    assert!(named(&contents.problems, "/usr/bin/real changed during the run"), "{contents:?}");
}

#[test]
fn programs_that_are_left_to_run_do_not_displace_those_that_have_run() {
    let folder = interrupted(1);
    let mut bundle = given::resume(folder.path(), 4);
    given::tell_versions(&mut bundle, &[]);
    drop(bundle);
    let contents = read(folder.path()).expect("a bundle");
    assert_eq!(contents.versions, given::versions());
    assert!(!named(&contents.problems, "programs"), "{contents:?}");
}

#[test]
fn looks_that_were_taken_are_known_when_the_run_goes_on() {
    let folder = interrupted(2);
    let mut bundle = given::resume(folder.path(), 4);
    assert_eq!(bundle.recorded().looks, []);
    let look = |repeats, decided, conditions| Look { repeats, decided, conditions };
    let looks = [look(1, false, vec![1]), look(2, true, Vec::new())];
    looks.iter().for_each(|look| given::look(&mut bundle, look));
    assert_eq!(bundle.recorded().looks, looks);
    drop(bundle);
    assert_eq!(given::resume(folder.path(), 4).recorded().looks, looks);
    finish(folder.path(), &[1, 2], &[]);
}

#[test]
fn a_folder_of_a_run_that_was_killed_before_it_began_is_used_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = folder.path().join("manifest.jsonl");
    drop(given::create(folder.path(), 4));
    fs::remove_file(&manifest).expect("a manifest");
    drop(given::create(folder.path(), 4));
    finish(folder.path(), &[], &[]);
    fs::remove_file(&manifest).expect("a manifest");
    let again = BundleWriter::create(folder.path(), given::STUDY, &given::facts(), &given::plan(4), &given::host());
    assert!(matches!(again, Err(BundleError::NotEmpty(_))), "it has starts");
}

#[test]
fn a_run_that_broke_off_says_why_until_it_resumes() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 3);
    given::seal(&mut bundle, 1);
    given::tell(&mut bundle, &Event::TooDisturbed { blocks: 3, others: 1.42, goes_on: true });
    let problems = || read(folder.path()).expect("a bundle").problems;
    assert!(given::named(&problems(), "did not come to its end"), "{:?}", problems());
    given::tell(&mut bundle, &Event::TooDisturbed { blocks: 3, others: 1.42, goes_on: false });
    drop(bundle);
    let why = "the run broke off after 3 blocks in a row that do not count, in which others used 1.4 cores: 2 of 3 trials \
               are missing";
    assert!(given::named(&problems(), why), "{:?}", problems());
    let bundle = given::resume(folder.path(), 3);
    assert!(given::named(&problems(), "did not come to its end"), "{:?}", problems());
    drop(bundle);
}
