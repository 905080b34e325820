use super::*;
use crate::Expected;
use plimsoll_model::storage::{Action, Payload, StorageStep, Store as StoreSpec};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;

/// Objects in memory. So many deletions fail before one succeeds.
#[derive(Clone, Default)]
struct Memory {
    names: Arc<Mutex<BTreeSet<String>>>,
    deletions_fail: Arc<AtomicU64>,
}

impl Store for Memory {
    fn prepare(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn session(&self, _user: u32) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(self.clone()))
    }

    fn describe(&self, _facts: &mut StorageFacts) {}

    fn clean_up(&self, _cleaning: &Cleaning) -> Vec<String> {
        Vec::new()
    }
}

impl Session for Memory {
    fn write(&mut self, object: &Object, _call: &mut Call) -> Result<(), Failure> {
        self.names.lock().unwrap().insert(object.name.clone());
        Ok(())
    }

    fn read(&mut self, _object: &Object, _call: &mut Call) -> Result<(), Failure> {
        Ok(())
    }

    fn list(&mut self, expected: &Expected, _call: &mut Call) -> Result<(), Failure> {
        let found = self.names.lock().unwrap().len();
        let wrong = || Failure::new(ErrorKind::Check, format!("expected {}, found {found}", crate::in_words(expected)));
        expected.contains(&found).then_some(()).ok_or_else(wrong)
    }

    fn delete(&mut self, object: &Object, _call: &mut Call) -> Result<(), Failure> {
        if self.deletions_fail.load(Ordering::Relaxed) > 0 {
            self.deletions_fail.fetch_sub(1, Ordering::Relaxed);
            return Err(Failure::new(ErrorKind::Status, "503"));
        }
        self.names.lock().unwrap().remove(&object.name);
        Ok(())
    }
}

/// One step for each operation, and actions of one step each.
fn workload(store: &Memory, operations: &[Operation]) -> StorageUsers {
    let step = |operation: &Operation| StorageStep { name: String::new(), operation: *operation };
    let storage = Storage {
        name: "memory".to_owned(),
        store: StoreSpec::Directory(PathBuf::new()),
        mode: Mode::App,
        sync_directory: true,
        payload: Payload::Random,
        size: 1,
        block: 1,
        objects: 10,
        overwrite: false,
        verify: false,
        steps: operations.iter().map(step).collect(),
        actions: (0..operations.len()).map(|step| Action { weight: 1, steps: step..step + 1 }).collect(),
    };
    StorageUsers::new(storage, Arc::new(store.clone()), Duration::from_secs(10))
}

#[test]
fn objects_whose_deletion_failed_may_be_listed_until_they_are_gone() {
    let store = Memory::default();
    let users = workload(&store, &[Operation::Write, Operation::List, Operation::Delete]);
    let mut user = users.user(0, &Arc::default()).expect("a user");
    let mut call = Call::untimed(Duration::from_secs(10));
    let mut iterate = |user: &mut StorageUser, step: usize| {
        let result = users.before_call(user, step).and_then(|()| users.call(user, step, &mut call));
        users.end_iteration(user);
        result
    };
    let there = || store.names.lock().expect("a lock").len();
    assert_eq!((there(), iterate(&mut user, 1)), (10, Ok(())), "objects are written before a list");
    // That of the step fails, and the first two times that it is tried again.
    store.deletions_fail.store(3, Ordering::Relaxed);
    assert_eq!(iterate(&mut user, 2).expect_err("a failure").kind, ErrorKind::Status);
    assert_eq!((there(), iterate(&mut user, 1)), (10, Ok(())), "it is still there");
    assert_eq!((there(), iterate(&mut user, 1)), (10, Ok(())));
    assert_eq!((there(), iterate(&mut user, 1)), (9, Ok(())), "it is gone");
    store.names.lock().expect("a lock").insert("one of nobody".to_owned());
    assert_eq!(iterate(&mut user, 1).expect_err("a failure").detail, "expected 9, found 10");
    assert_eq!(iterate(&mut user, 0), Ok(()));
}

#[test]
fn a_clean_up_may_take_long_as_long_as_it_goes_on() {
    let limit = Duration::from_secs(2);
    let steps = |count: u32, each: Duration| {
        move |cleaning: &Cleaning| {
            (0..count)
                .take_while(|_| {
                    std::thread::sleep(each);
                    cleaning.goes_on()
                })
                .count()
        }
    };
    assert_eq!(run_with_limit(limit, &Arc::default(), steps(15, Duration::from_millis(200))), Some(15));
    let cleaning: Arc<Cleaning> = Arc::default();
    assert_eq!(run_with_limit(limit, &cleaning, steps(2, Duration::from_secs(4))), None);
    assert_eq!(cleaning.steps.load(Ordering::Relaxed), 1, "it was told to stop, and did");
}
