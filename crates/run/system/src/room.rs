//! How much room a disk has.

use rustix::fs::statvfs;
use std::io;
use std::path::Path;

/// Bytes that are free where `path` lies, or will lie once its folders are made. A file system that
/// is no disk, such as `/proc`, has no bound.
pub fn free_room(path: &Path) -> io::Result<u64> {
    let absolute = std::path::absolute(path)?;
    let nearest = absolute.ancestors().find(|folder| folder.exists()).unwrap_or(&absolute);
    let room = statvfs(nearest)?;
    Ok(if room.f_blocks == 0 { u64::MAX } else { room.f_bavail * room.f_frsize })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_yet_has_the_room_of_the_one_that_it_will_lie_in() {
        assert!(free_room(Path::new("/")).unwrap() > 0);
        assert!(free_room(Path::new("/dev/shm/not/there/yet")).unwrap() < u64::MAX);
        assert_eq!(free_room(Path::new("/proc/nothing")).unwrap(), u64::MAX);
    }
}
