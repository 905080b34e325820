//! Checks that the disk of a directory has space for the objects that users keep in it.

use plimsoll_model::storage::{Storage, Store};
use plimsoll_model::workload::Steps;
use plimsoll_study::TrialSpec;
use plimsoll_system::free_space;

/// A message, if all objects of a trial together are larger than the free space.
pub(crate) fn check(spec: &TrialSpec) -> Option<String> {
    let Steps::Storage(storage) = &spec.workload.steps else { return None };
    let Storage { name, store: Store::Directory(path), size, objects, .. } = &**storage else { return None };
    let users = spec.load.most_users();
    let (needed, free) = (size.saturating_mul((*objects).into()).saturating_mul(users.into()), free_space(path).ok()?);
    (needed > free).then(|| {
        format!(
            "no space: {users} users, each with {objects} objects of {size} bytes, take {needed} bytes in `{name}`, and \
             {free} are free on the disk of {}\nuse fewer users, fewer objects or smaller ones",
            path.display()
        )
    })
}
