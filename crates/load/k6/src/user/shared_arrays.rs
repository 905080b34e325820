//! The arrays that all users of a run share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The shared arrays of a run, by name.
#[derive(Clone, Debug, Default)]
pub struct SharedArrays(Arc<Mutex<BTreeMap<String, Elements>>>);

/// The JSON of each element.
pub(crate) type Elements = Arc<[Box<str>]>;

impl SharedArrays {
    pub(crate) fn get(&self, name: &str) -> Option<Elements> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Keeps an array and returns it. If two users make it at the same time, the first one counts.
    pub(crate) fn keep(&self, name: String, elements: Elements) -> Elements {
        let mut arrays = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(arrays.entry(name).or_insert(elements))
    }
}
