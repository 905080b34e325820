//! The users of a storage workload, and their objects.

use super::{Cleaning, Object, Session, Store};
use plimsoll_engine::blocking::{BlockingWorkload, Call, Failure};
use plimsoll_engine::schedule::Random;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::storage::{Mode, Operation, Residency, Storage, StorageFacts};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The time that preparing the back end, or removing an object of it, may take beyond the timeout of a call.
const EXTRA_TIME: Duration = Duration::from_secs(30);

/// The time between two looks at its progress.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The time that work has to stop when it is told to.
const TIME_TO_STOP: Duration = Duration::from_secs(5);

/// One of this many reads measures the page cache first, in modes other than `cold`. That takes as long as
/// the read of a small object.
const READS_PER_RESIDENCY: u64 = 8;

/// The bits of an object number that count the objects of one user: more than a trial can write.
const NUMBER_BITS: u32 = 40;

/// A storage workload, shared by the users of a load, and its back end.
pub struct StorageUsers {
    storage: Storage,
    store: Arc<dyn Store>,
    timeout: Duration,
    pages: AtomicU64,
    cached: AtomicU64,
    /// The number of objects that users have written to get ready.
    readied: AtomicU64,
}

/// One user.
pub struct StorageUser {
    session: Box<dyn Session>,
    cancelled: Arc<AtomicBool>,
    /// Its objects, oldest first.
    objects: VecDeque<Object>,
    /// The object that the current iteration has written and not deleted.
    written: Option<Object>,
    /// Objects that may be there or not: their writes failed, or their deletions.
    doubtful: VecDeque<Object>,
    /// The object of the next call.
    next: Option<Object>,
    /// The number of the next new object.
    number: u64,
    /// The number of its reads.
    reads: u64,
}

impl StorageUsers {
    pub(crate) fn new(storage: Storage, store: Arc<dyn Store>, timeout: Duration) -> StorageUsers {
        let [pages, cached, readied] = [const { AtomicU64::new(0) }; 3];
        StorageUsers { storage, store, timeout, pages, cached, readied }
    }

    /// Makes the place for the objects of the trial.
    pub(crate) fn prepare(&self) -> Result<(), Failure> {
        let store = Arc::clone(&self.store);
        let prepared = run_with_limit(self.timeout + EXTRA_TIME, &Arc::default(), move |_| store.prepare());
        prepared.unwrap_or_else(|| Err(Failure::new(ErrorKind::Timeout, "failed to prepare the back end: it hangs")))
    }

    /// The place of the objects of the trial, after preparing.
    pub fn place(&self) -> String {
        let mut facts = StorageFacts::default();
        self.store.describe(&mut facts);
        facts.place
    }

    /// Removes the objects of the trial, and returns the facts of the back end.
    pub fn finish(&self) -> StorageFacts {
        let storage = &self.storage;
        let residency =
            Residency { pages: self.pages.load(Ordering::Relaxed), cached: self.cached.load(Ordering::Relaxed) };
        let mut facts = StorageFacts {
            name: storage.name.clone(),
            mode: storage.mode_in_words().to_owned(),
            payload: storage.payload.to_string(),
            size: storage.size,
            block: storage.block,
            steps: storage.steps.clone(),
            residency: (residency.pages > 0).then_some(residency),
            ..StorageFacts::default()
        };
        self.store.describe(&mut facts);
        let store = Arc::clone(&self.store);
        let limit = self.timeout + EXTRA_TIME;
        let cleaned = run_with_limit(limit, &Arc::default(), move |cleaning| store.clean_up(cleaning));
        facts.left_behind =
            cleaned.unwrap_or_else(|| vec![format!("what is left in {}: removing it hangs", facts.place)]);
        facts
    }

    /// Writes objects until the user has `count`, untimed.
    fn fill_up(&self, user: &mut StorageUser, count: usize) -> Result<(), Failure> {
        while user.objects.len() < count {
            let object = user.new_object(self.storage.size);
            let mut call = Call::until(Arc::clone(&user.cancelled), self.timeout);
            user.session.write(&object, &mut call)?;
            user.objects.push_back(object);
            self.readied.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Deletes an object that is no longer counted, untimed. If that fails, it may be there or not.
    fn discard(&self, user: &mut StorageUser, object: Object) -> Result<(), Failure> {
        let deleted = user.session.discard(&object, &mut Call::until(Arc::clone(&user.cancelled), self.timeout));
        if deleted.is_err() {
            user.doubtful.push_back(object);
        }
        deleted
    }

    /// Chooses the object to write next. If the user already has its most objects, it replaces the oldest: by
    /// overwriting it, or by deleting it first.
    fn object_to_write(&self, user: &mut StorageUser) -> Result<Object, Failure> {
        let object = user.new_object(self.storage.size);
        if user.objects.len() < self.storage.objects as usize {
            return Ok(object);
        }
        let oldest = user.objects.pop_front().expect("a user may have at least one object");
        if self.storage.overwrite {
            return Ok(Object { name: oldest.name, ..object });
        }
        self.discard(user, oldest)?;
        Ok(object)
    }

    /// Chooses the object to read next: the one that the iteration wrote, or else the objects of the user in
    /// turn.
    fn object_to_read(&self, user: &mut StorageUser) -> Result<Object, Failure> {
        if let Some(written) = &user.written {
            return Ok(written.clone());
        }
        self.fill_up(user, 1)?;
        user.objects.rotate_left(1);
        Ok(user.objects.back().expect("there is at least one").clone())
    }

    fn object_to_delete(&self, user: &mut StorageUser) -> Result<Object, Failure> {
        self.fill_up(user, 1)?;
        Ok(user.written.take().unwrap_or_else(|| user.objects[0].clone()))
    }
}

impl BlockingWorkload for StorageUsers {
    type User = StorageUser;

    fn user(&self, user: u32, cancelled: &Arc<AtomicBool>) -> Result<StorageUser, Failure> {
        let mut new_user = StorageUser {
            session: self.store.session(user)?,
            cancelled: Arc::clone(cancelled),
            objects: VecDeque::new(),
            written: None,
            doubtful: VecDeque::new(),
            next: None,
            number: u64::from(user) << NUMBER_BITS,
            reads: 0,
        };
        if needs_objects(&self.storage) {
            self.fill_up(&mut new_user, self.storage.objects as usize)?;
        }
        Ok(new_user)
    }

    fn readied(&self) -> u64 {
        self.readied.load(Ordering::Relaxed)
    }

    fn begin_iteration(&self, _user: &mut StorageUser, random: &mut Random) -> Range<usize> {
        let all: u32 = self.storage.actions.iter().map(|action| action.weight).sum();
        let mut drawn = random.unit() * f64::from(all);
        for action in &self.storage.actions {
            drawn -= f64::from(action.weight);
            if drawn <= 0.0 {
                return action.steps.clone();
            }
        }
        self.storage.actions.last().expect("a workload has an action").steps.clone()
    }

    fn before_call(&self, user: &mut StorageUser, step: usize) -> Result<(), Failure> {
        user.next = match self.storage.steps[step].operation {
            Operation::Write => Some(self.object_to_write(user)?),
            Operation::Read => {
                let object = self.object_to_read(user)?;
                if self.storage.mode == Mode::Cold || user.reads.is_multiple_of(READS_PER_RESIDENCY) {
                    let residency = user.session.before_read(&object)?;
                    self.pages.fetch_add(residency.pages, Ordering::Relaxed);
                    self.cached.fetch_add(residency.cached, Ordering::Relaxed);
                }
                user.reads += 1;
                Some(object)
            }
            Operation::Delete => Some(self.object_to_delete(user)?),
            Operation::List => None,
        };
        Ok(())
    }

    fn call(&self, user: &mut StorageUser, step: usize, call: &mut Call) -> Result<(), Failure> {
        let object = user.next.take();
        let object = || object.as_ref().expect("`before_call` has chosen it");
        match self.storage.steps[step].operation {
            Operation::Write => {
                let result = user.session.write(object(), call);
                match result {
                    Ok(()) => {
                        user.objects.push_back(object().clone());
                        user.written = Some(object().clone());
                    }
                    Err(_) => user.doubtful.push_back(object().clone()),
                }
                result
            }
            Operation::Read => user.session.read(object(), call),
            Operation::List => {
                let known = user.objects.len();
                user.session.list(&(known..=known + user.doubtful.len()), call)
            }
            Operation::Delete => {
                let result = user.session.delete(object(), call);
                user.forget(object());
                if result.is_err() {
                    user.doubtful.push_back(object().clone());
                }
                result
            }
        }
    }

    fn end_iteration(&self, user: &mut StorageUser) {
        user.written = None;
        if let Some(doubtful) = user.doubtful.pop_front() {
            // It may not exist; whatever stays is removed at the end of the trial.
            let _ = self.discard(user, doubtful);
        }
    }
}

impl StorageUser {
    fn new_object(&mut self, size: u64) -> Object {
        let number = self.number;
        self.number += 1;
        Object { name: format!("object-{}", number & ((1 << NUMBER_BITS) - 1)), number, size }
    }

    /// Counts an object no longer. It is the oldest or the newest as a rule, so that no search falls into the measured time.
    fn forget(&mut self, object: &Object) {
        if self.objects.back() == Some(object) {
            self.objects.pop_back();
        } else if self.objects.front() == Some(object) {
            self.objects.pop_front();
        } else {
            self.objects.retain(|kept| kept != object);
        }
    }
}

/// True if an iteration may read, list or delete before it has written anything.
fn needs_objects(storage: &Storage) -> bool {
    let firsts = storage.actions.iter().filter_map(|action| storage.steps.get(action.steps.start));
    let mut firsts = firsts.map(|step| step.operation);
    firsts.any(|operation| operation != Operation::Write)
}

/// Runs `work` on a thread. Returns `None` if it makes no progress for `limit`: it is told to stop, and a thread that does not is
/// left behind.
fn run_with_limit<T: Send + 'static>(
    limit: Duration,
    cleaning: &Arc<Cleaning>,
    work: impl FnOnce(&Cleaning) -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = channel();
    let of_work = Arc::clone(cleaning);
    std::thread::spawn(move || {
        // Nobody listens any more after the limit.
        let _ = sender.send(work(&of_work));
    });
    let (mut steps, mut since) = (0, Instant::now());
    while since.elapsed() < limit {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(result) => return Some(result),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                let by_now = cleaning.steps.load(Ordering::Relaxed);
                if by_now != steps {
                    (steps, since) = (by_now, Instant::now());
                }
            }
        }
    }
    cleaning.is_given_up.store(true, Ordering::Relaxed);
    let _ = receiver.recv_timeout(TIME_TO_STOP);
    None
}

#[cfg(test)]
mod tests;
