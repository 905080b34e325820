//! Storage workloads through the whole generator, on real file systems.

use crate::support::{Outcome, run_prepared, run_watched};
use plimsoll_generator::Prepared;
use plimsoll_model::job::WorkFacts;
use plimsoll_model::load::{LoadModel, LoadProfile, Profile, Stop, Think};
use plimsoll_model::record::{ErrorKind, Interval, Part, Subject};
use plimsoll_model::storage::{Action, Mode, Operation, Payload, Storage, StorageFacts, StorageStep, Store};
use plimsoll_model::workload::{Connect, Steps, Workload};
use plimsoll_testkit::sshfs::SshfsMount;
use plimsoll_testkit::{Mounted, skipped};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::Duration;
use tempfile::TempDir;

const SIZE: u64 = 100_000;

/// Iterations of these steps in one directory.
fn storage(directory: &Path, operations: &[Operation]) -> Storage {
    Storage {
        name: "local".to_owned(),
        store: Store::Directory(directory.to_owned()),
        mode: Mode::App,
        sync_directory: true,
        payload: Payload::Random,
        size: SIZE,
        block: 64 << 10,
        objects: 3,
        overwrite: false,
        verify: true,
        actions: vec![Action { weight: 1, steps: 0..operations.len() }],
        steps: operations.iter().map(|operation| step(*operation)).collect(),
    }
}

fn step(operation: Operation) -> StorageStep {
    StorageStep { name: operation.to_string(), operation }
}

fn workload(storage: Storage, timeout: Duration) -> Workload {
    Workload { target: None, connect: Connect::PerUser, timeout, steps: Steps::Storage(Box::new(storage)) }
}

fn load(users: f64, stop: Stop) -> LoadProfile {
    let model = LoadModel::Closed { users: Profile::constant(users), think: Think::Constant(Duration::ZERO) };
    LoadProfile { model, warmup: Duration::ZERO, stop, drain: Duration::from_secs(10) }
}

fn iterations(count: u64) -> Stop {
    Stop::Iterations { count, limit: Duration::from_secs(60) }
}

fn outcome(storage: Storage, users: f64, stop: Stop) -> Outcome {
    let prepared = Prepared::new(&workload(storage, Duration::from_secs(20)), None).expect("in order");
    run_prepared(&prepared, &load(users, stop), 1, &AtomicBool::new(false))
}

fn facts(outcome: &Outcome) -> &StorageFacts {
    match &outcome.record.facts {
        WorkFacts::Storage(facts) => facts,
        other => panic!("it was storage: {other:?}"),
    }
}

/// A directory with a file that does not belong to the trial.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().expect("a folder");
    std::fs::write(directory.path().join("foreign"), "mine").expect("room");
    directory
}

/// Whether nothing but the foreign file is there.
fn is_clean(directory: &Path) -> bool {
    let names: Vec<_> =
        std::fs::read_dir(directory).expect("a folder").map(|entry| entry.expect("one").file_name()).collect();
    names == ["foreign"]
}

#[test]
fn objects_are_written_read_listed_and_deleted_and_none_is_left() {
    let directory = directory();
    let operations = [Operation::Write, Operation::Read, Operation::List, Operation::Delete];
    let outcome = outcome(storage(directory.path(), &operations), 4.0, iterations(200));
    for operation in operations {
        let requests = outcome.requests(operation.name());
        assert_eq!((requests.count(), requests.failed()), (200, 0), "{operation}: {:?}", outcome.record.error_examples);
    }
    assert_eq!(outcome.requests("write").bytes_out, 200 * SIZE);
    assert_eq!(outcome.requests("read").bytes_in, 200 * SIZE);
    for part in [Part::Open, Part::Data, Part::Close] {
        assert_eq!(outcome.subject(&Subject::Part(part, "write".to_owned())).count(), 200, "{part:?}");
    }
    assert_eq!(outcome.subject(&Subject::Part(Part::Sync, "write".to_owned())).count(), 0);
    assert!(outcome.record.faults.is_empty() && facts(&outcome).left_behind.is_empty());
    assert!(is_clean(directory.path()));
}

#[test]
fn what_is_read_was_there_before_the_load() {
    let directory = directory();
    let outcome = outcome(storage(directory.path(), &[Operation::Read]), 2.0, iterations(50));
    assert_eq!((outcome.requests("read").count(), outcome.requests("read").failed()), (50, 0));
    assert_eq!(outcome.measure.len(), 5, "iterations, reads and their three parts: {:?}", outcome.measure.keys());
    assert!(is_clean(directory.path()));
}

#[test]
fn each_way_of_keeping_objects_works() {
    for (overwrite, operations) in [
        (true, vec![Operation::Write, Operation::List]),
        (false, vec![Operation::Write, Operation::List]),
        (false, vec![Operation::Delete]),
        (true, vec![Operation::List]),
    ] {
        let directory = directory();
        let storage = Storage { overwrite, ..storage(directory.path(), &operations) };
        let outcome = outcome(storage, 2.0, iterations(40));
        assert_eq!(outcome.iterations().count(), 40);
        assert_eq!(outcome.iterations().failed(), 0, "{operations:?}: {:?}", outcome.record.error_examples);
        assert!(is_clean(directory.path()));
    }
}

#[test]
fn actions_are_drawn_by_their_weights() {
    let directory = directory();
    let actions = vec![Action { weight: 3, steps: 0..1 }, Action { weight: 1, steps: 1..2 }];
    let storage = Storage { actions, ..storage(directory.path(), &[Operation::Read, Operation::Write]) };
    let outcome = outcome(storage, 1.0, iterations(1000));
    let reads = outcome.requests("read").count();
    assert_eq!(reads + outcome.requests("write").count(), 1000);
    // Five standard deviations of a binomial draw.
    assert!((680..=820).contains(&reads), "{reads}");
}

#[test]
fn how_much_of_what_was_read_lay_in_the_page_cache_is_known() {
    for (mode, expected) in [(Mode::App, 1.0), (Mode::Cold, 0.0)] {
        let directory = directory();
        let storage = Storage { mode, ..storage(directory.path(), &[Operation::Write, Operation::Read]) };
        let outcome = outcome(storage, 2.0, iterations(30));
        assert_eq!(outcome.iterations().failed(), 0, "{:?}", outcome.record.error_examples);
        let residency = facts(&outcome).residency.expect("reads were looked at");
        let looks = residency.pages / SIZE.div_ceil(4096);
        assert!(if mode == Mode::Cold { looks == 30 } else { (4..=6).contains(&looks) }, "{mode}: {looks} looks");
        let share = residency.share().expect("pages");
        assert!((share - expected).abs() < 0.05, "{mode}: {share}");
    }
}

#[test]
fn durable_writes_are_synced_and_timed_apart() {
    let directory = directory();
    let storage = Storage { mode: Mode::Durable, ..storage(directory.path(), &[Operation::Write]) };
    let outcome = outcome(storage, 1.0, iterations(10));
    assert_eq!(outcome.subject(&Subject::Part(Part::Sync, "write".to_owned())).count(), 10);
    assert_eq!(facts(&outcome).mode, "durable");
    assert!(facts(&outcome).file_system.is_some());
}

#[test]
fn more_than_there_is_room_for_is_refused_before_any_load() {
    let directory = directory();
    let storage = Storage { size: 1 << 50, ..storage(directory.path(), &[Operation::Write]) };
    let prepared = Prepared::new(&workload(storage, Duration::from_secs(20)), None).expect("in order");
    let error = prepared
        .run(&crate::support::job(&load(2.0, iterations(10)), 1), &AtomicBool::new(false), &mut |_| panic!("no load"))
        .expect_err("no disk is that large");
    assert!(error.to_string().starts_with("expected room for "), "{error}");
    assert!(is_clean(directory.path()));
}

#[test]
fn a_disk_that_fills_up_under_load_is_named_and_left_clean() {
    let Some(mounted) = Mounted::new("tmpfs", "size=4m") else { return };
    let storage = Storage { objects: 1, ..storage(mounted.path(), &[Operation::Write]) };
    let prepared = Prepared::new(&workload(storage, Duration::from_secs(20)), None).expect("in order");
    // What is left after a second goes to another writer; the write that hits the limit fails.
    let fill = |second: &Interval| {
        if second.second == 0 {
            let _ = std::fs::write(mounted.path().join("foreign"), vec![1; 4 << 20]);
        }
    };
    // A busy machine may be late to tell of the first second.
    let load = load(4.0, Stop::After(Duration::from_secs(4)));
    let outcome = run_watched(&prepared, &load, 1, &AtomicBool::new(false), &fill);
    let writes = outcome.requests("write");
    assert!(writes.count() > writes.failed(), "some went well before");
    assert_eq!(writes.errors.keys().collect::<Vec<_>>(), [&ErrorKind::Space], "{:?}", outcome.record.error_examples);
    assert!(outcome.example("write", ErrorKind::Space).contains("No space left on device"));
    assert!(facts(&outcome).left_behind.is_empty() && outcome.record.faults.is_empty());
    assert!(is_clean(mounted.path()));
}

#[test]
fn an_interruption_ends_it_soon_and_cleans_up() {
    let directory = directory();
    let storage = storage(directory.path(), &[Operation::Write]);
    let prepared = Prepared::new(&workload(storage, Duration::from_secs(20)), None).expect("in order");
    let interrupted = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            interrupted.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        run_prepared(&prepared, &load(2.0, Stop::After(Duration::from_secs(600))), 1, &interrupted)
    });
    assert!(outcome.record.interrupted);
    assert!(is_clean(directory.path()));
}

#[test]
fn a_mount_that_hangs_ends_the_trial_and_is_named() {
    let directory = tempfile::tempdir().expect("a folder");
    let mount = match SshfsMount::start(directory.path()) {
        Ok(mount) => mount,
        Err(reason) => return skipped(format_args!("no network mount: {reason}")),
    };
    let storage = storage(mount.path(), &[Operation::Write, Operation::Read]);
    let prepared = Prepared::new(&workload(storage, Duration::from_millis(500)), None).expect("in order");
    let (first_second, is_under_way) = channel();
    let load = load(2.0, Stop::After(Duration::from_secs(600)));
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            is_under_way.into_iter().next();
            mount.hang();
            // Waits until the trial has ended and its cleanup waits; the cleanup may then go on.
            std::thread::sleep(Duration::from_secs(25));
            mount.resume();
        });
        let on_second = |_: &Interval| {
            // After the first, the receiver is gone.
            let _ = first_second.send(());
        };
        run_watched(&prepared, &load, 1, &AtomicBool::new(false), &on_second)
    });
    assert_eq!(outcome.record.faults.len(), 1, "{:?}", outcome.record.faults);
    assert!(outcome.record.faults[0].contains("did not come back from a call"), "{:?}", outcome.record.faults);
    let timeouts = [outcome.requests("write"), outcome.requests("read")]
        .iter()
        .filter_map(|tally| tally.errors.get(&ErrorKind::Timeout).copied())
        .sum::<u64>();
    assert!(timeouts >= 1, "{:?}", outcome.record.error_examples);
    let facts = facts(&outcome);
    assert!(facts.file_system.as_ref().is_some_and(|system| system.network), "{facts:?}");
}
