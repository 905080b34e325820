//! What users of a storage workload do, and which objects they have.

use super::{Object, Session, Store};
use plimsoll_engine::blocking::{BlockingWorkload, Call, Failure};
use plimsoll_engine::schedule::Random;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::storage::{Mode, Operation, Residency, Storage, StorageFacts};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

/// The longest that preparing the back end, or cleaning it up, may take beyond one call.
const PATIENCE: Duration = Duration::from_secs(30);

/// Of so many reads one is preceded by a look at the page cache, where nothing has to be dropped from
/// it: a look costs as much as the read of a small object.
const LOOK_EVERY: u64 = 8;

/// Object numbers of a user: room for more objects than a trial can write.
const NUMBERS: u32 = 40;

/// The users of a trial, and the back end that they share.
pub struct StorageUsers {
    storage: Storage,
    store: Arc<dyn Store>,
    timeout: Duration,
    pages: AtomicU64,
    cached: AtomicU64,
}

/// One user.
pub struct StorageUser {
    session: Box<dyn Session>,
    over: Arc<AtomicBool>,
    /// What it has, oldest first.
    objects: VecDeque<Object>,
    /// What the iteration under way has written, and is still there.
    written: Option<Object>,
    /// What it has written in part.
    broken: Option<Object>,
    /// What the next call is about.
    next: Option<Object>,
    /// The number of the next new object.
    number: u64,
    /// Reads that it has made.
    reads: u64,
}

impl StorageUsers {
    pub(crate) fn new(storage: Storage, store: Arc<dyn Store>, timeout: Duration) -> StorageUsers {
        StorageUsers { storage, store, timeout, pages: AtomicU64::new(0), cached: AtomicU64::new(0) }
    }

    /// Makes the place for the objects of the trial.
    pub(crate) fn prepare(&self) -> Result<(), Failure> {
        let store = Arc::clone(&self.store);
        let prepared = within(self.timeout + PATIENCE, move || store.prepare());
        prepared.unwrap_or_else(|| Err(Failure::new(ErrorKind::Timeout, "failed to prepare the back end: it hangs")))
    }

    /// Where the trial keeps its objects, once that is made.
    pub fn place(&self) -> String {
        let mut facts = StorageFacts::default();
        self.store.describe(&mut facts);
        facts.place
    }

    /// Removes what the trial wrote, and says what is known of the back end.
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
        let cleaned = within(self.timeout + PATIENCE, move || store.clean_up());
        facts.left_behind =
            cleaned.unwrap_or_else(|| vec![format!("everything in {}: removing it hangs", facts.place)]);
        facts
    }

    /// Writes objects until the user has `count`, untimed.
    fn fill_up(&self, user: &mut StorageUser, count: usize) -> Result<(), Failure> {
        while user.objects.len() < count {
            let object = user.new_object(self.storage.size);
            let mut call = Call::until(Arc::clone(&user.over), self.timeout);
            user.session.write(&object, &mut call)?;
            user.objects.push_back(object);
        }
        Ok(())
    }

    /// The object that is written next: under a new name, after the oldest was deleted where the
    /// user has as many as it may; or under that one's name.
    fn object_to_write(&self, user: &mut StorageUser) -> Result<Object, Failure> {
        let object = user.new_object(self.storage.size);
        if user.objects.len() < self.storage.objects as usize {
            return Ok(object);
        }
        let oldest = user.objects.pop_front().expect("a user may have at least one object");
        if self.storage.overwrite {
            return Ok(Object { name: oldest.name, ..object });
        }
        user.session.delete(&oldest, &mut Call::until(Arc::clone(&user.over), self.timeout))?;
        Ok(object)
    }

    /// The object that is read next: what the iteration wrote, otherwise those of the user in turn.
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

    fn user(&self, user: u32, over: &Arc<AtomicBool>) -> Result<StorageUser, Failure> {
        let mut enlisted = StorageUser {
            session: self.store.session(user)?,
            over: Arc::clone(over),
            objects: VecDeque::new(),
            written: None,
            broken: None,
            next: None,
            number: u64::from(user) << NUMBERS,
            reads: 0,
        };
        if needs_objects(&self.storage) {
            self.fill_up(&mut enlisted, self.storage.objects as usize)?;
        }
        Ok(enlisted)
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
                if self.storage.mode == Mode::Cold || user.reads.is_multiple_of(LOOK_EVERY) {
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
        let object = || object.as_ref().expect("what is called about was chosen before");
        match self.storage.steps[step].operation {
            Operation::Write => {
                let result = user.session.write(object(), call);
                match result {
                    Ok(()) => {
                        user.objects.push_back(object().clone());
                        user.written = Some(object().clone());
                    }
                    Err(_) => user.broken = Some(object().clone()),
                }
                result
            }
            Operation::Read => user.session.read(object(), call),
            Operation::List => user.session.list(user.objects.len(), call),
            Operation::Delete => {
                let result = user.session.delete(object(), call);
                user.objects.retain(|kept| kept != object());
                result
            }
        }
    }

    fn end_iteration(&self, user: &mut StorageUser) {
        user.written = None;
        if let Some(broken) = user.broken.take() {
            // There may be nothing of it; what stays is removed with everything else in the end.
            let _ = user.session.delete(&broken, &mut Call::until(Arc::clone(&user.over), self.timeout));
        }
    }
}

impl StorageUser {
    fn new_object(&mut self, size: u64) -> Object {
        let number = self.number;
        self.number += 1;
        Object { name: format!("object-{}", number & ((1 << NUMBERS) - 1)), number, size }
    }
}

/// True if an iteration may read, list or delete before it has written anything.
fn needs_objects(storage: &Storage) -> bool {
    let firsts = storage.actions.iter().filter_map(|action| storage.steps.get(action.steps.start));
    let mut firsts = firsts.map(|step| step.operation);
    firsts.any(|operation| operation != Operation::Write)
}

/// What `work` gives, unless it takes longer than `limit`: then it is left behind.
fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        // Nobody listens any more after the limit.
        let _ = sender.send(work());
    });
    receiver.recv_timeout(limit).ok()
}
