//! How much space a disk has.

use rustix::fs::statvfs;
use std::io;
use std::path::Path;

/// Bytes that are free on the disk of `path`, which need not exist yet. A file system that is no disk,
/// such as `/proc`, has no bound: `u64::MAX`.
pub fn free_space(path: &Path) -> io::Result<u64> {
    let absolute = std::path::absolute(path)?;
    let nearest = absolute.ancestors().find(|folder| folder.exists()).unwrap_or(&absolute);
    let disk = statvfs(nearest)?;
    Ok(if disk.f_blocks == 0 { u64::MAX } else { disk.f_bavail * disk.f_frsize })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_yet_has_the_space_of_the_one_that_it_will_lie_in() {
        assert!(free_space(Path::new("/")).unwrap() > 0);
        assert!(free_space(Path::new("/dev/shm/not/there/yet")).unwrap() < u64::MAX);
        assert_eq!(free_space(Path::new("/proc/nothing")).unwrap(), u64::MAX);
    }
}
