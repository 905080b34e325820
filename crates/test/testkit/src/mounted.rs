//! Mounts a file system for a test: a small one, a read-only one, or one without some operation.

use crate::skip::skipped;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// A mounted file system. Dropping it unmounts.
#[derive(Debug)]
pub struct Mounted {
    point: PathBuf,
}

impl Mounted {
    /// Mounts a file system of this kind with these options. Returns `None`, and reports a skipped test, if that
    /// is not permitted.
    #[must_use]
    pub fn new(kind: &str, options: &str) -> Option<Mounted> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let point = std::env::temp_dir().join(format!("mounted-{:x}-{number}", std::process::id()));
        let made = fs::create_dir(&point).map_err(|error| error.to_string());
        let reason = match made.and_then(|()| mount(kind, options, &point)) {
            Ok(()) => return Some(Mounted { point }),
            Err(reason) => reason,
        };
        // It may not even be there.
        let _ = fs::remove_dir(&point);
        skipped(format_args!("cannot mount {kind}: {}", reason.lines().next().unwrap_or_default()));
        None
    }

    /// The mount point.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.point
    }
}

fn mount(kind: &str, options: &str, point: &Path) -> Result<(), String> {
    let mut command = Command::new("mount");
    match command.args(["-t", kind, "-o", options, kind]).arg(point).output() {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // It is busy for a moment while another process looks through `/proc` or the mounts.
        let unmounted = (0..50).any(|tries| {
            if tries > 0 {
                sleep(Duration::from_millis(100));
            }
            Command::new("umount").arg(&self.point).status().is_ok_and(|status| status.success())
        });
        let gone = unmounted && fs::remove_dir(&self.point).is_ok();
        assert!(gone || std::thread::panicking(), "{} stays mounted", self.point.display());
    }
}
