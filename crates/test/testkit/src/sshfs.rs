//! A directory as a network mount of this machine: sshfs, with an SFTP server behind it and no SSH
//! between them.

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// The paths of the SFTP server in distributions.
const SERVERS: [&str; 3] =
    ["/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server"];

/// The timeout for mounting and unmounting, long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

const PAUSE: Duration = Duration::from_millis(10);

/// A mounted directory. Dropping it unmounts and ends everything, also after [`SshfsMount::hang`].
#[derive(Debug)]
pub struct SshfsMount {
    /// The folder of the mount point, the program that starts the server, and the server's process id.
    folder: PathBuf,
    point: PathBuf,
    client: Child,
    server: Option<Pid>,
}

impl SshfsMount {
    /// Mounts `dir`.
    ///
    /// # Errors
    /// The reason names what is missing: sshfs, the server, `/dev/fuse`, or the right to mount.
    pub fn start(dir: &Path) -> Result<SshfsMount, String> {
        let server = SERVERS.into_iter().find(|server| Path::new(server).exists());
        let server = server.ok_or_else(|| format!("no SFTP server in {}", SERVERS.join(", ")))?;
        let folder = make_folder(server).map_err(|error| format!("no folder to mount in: {error}"))?;
        let client = match client(&folder, dir) {
            Ok(client) => client,
            Err(error) => {
                remove(&folder);
                return Err(format!("sshfs does not start: {error}"));
            }
        };
        let point = folder.join("mount");
        let mut mount = SshfsMount { folder, point, client, server: None };
        mount.wait_until_mounted()?;
        mount.server = Some(mount.server_id()?);
        Ok(mount)
    }

    /// The mount point.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.point
    }

    /// Stops the server, so that operations on the mount hang.
    pub fn hang(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes the server after [`SshfsMount::hang`].
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(server) = self.server {
            // It may have ended by itself.
            let _ = kill_process(server, signal);
        }
    }

    fn wait_until_mounted(&mut self) -> Result<(), String> {
        let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
        let outside = device(&self.folder);
        let begin = Instant::now();
        while device(&self.point) == outside {
            if let Ok(Some(status)) = self.client.try_wait() {
                let said = fs::read_to_string(self.folder.join("said")).unwrap_or_default();
                return Err(format!("sshfs ended with {status}: {}", said.trim()));
            }
            if begin.elapsed() > TIMEOUT {
                return Err(format!("sshfs has not mounted anything within {TIMEOUT:?}"));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// The server's process id, which its program writes before it becomes the server.
    fn server_id(&self) -> Result<Pid, String> {
        let written = fs::read_to_string(self.folder.join("server.id")).unwrap_or_default();
        written.trim().parse().ok().and_then(Pid::from_raw).ok_or_else(|| format!("`{written}` is no process id"))
    }

    /// Waits until `ended` returns true. Returns false after the timeout.
    fn wait_until(&mut self, ended: impl Fn(&mut SshfsMount) -> bool) -> bool {
        let begin = Instant::now();
        while !ended(self) {
            if begin.elapsed() > TIMEOUT {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
        true
    }
}

impl Drop for SshfsMount {
    fn drop(&mut self) {
        self.resume();
        // A lazy unmount, as others may still use it; the client ends after the last of them.
        let _ = Command::new("fusermount3").args(["-u", "-z"]).arg(&self.point).stderr(Stdio::null()).status();
        if !self.wait_until(|mount| !matches!(mount.client.try_wait(), Ok(None))) {
            let _ = self.client.kill();
            let _ = self.client.wait();
        }
        let alive = |mount: &SshfsMount| mount.server.is_some_and(|server| test_kill_process(server).is_ok());
        if !self.wait_until(|mount| !alive(mount)) {
            self.signal(Signal::KILL);
        }
        remove(&self.folder);
    }
}

/// A folder with a mount point, and with the program that sshfs takes for `ssh`.
fn make_folder(server: &str) -> std::io::Result<PathBuf> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let folder = std::env::temp_dir().join(format!("sshfs-{:x}-{now:x}", std::process::id()));
    fs::create_dir(&folder)?;
    fs::create_dir(folder.join("mount"))?;
    let id = folder.join("server.id");
    fs::write(folder.join("server.sh"), format!("echo $$ > '{}'\nexec {server}\n", id.display()))?;
    Ok(folder)
}

/// Starts sshfs in the foreground, as a child to wait for.
fn client(folder: &Path, dir: &Path) -> std::io::Result<Child> {
    let ssh = format!("ssh_command=/bin/sh {}", folder.join("server.sh").display());
    let said = fs::File::create(folder.join("said"))?;
    let mut command = Command::new("sshfs");
    command.args(["-f", "-o", &ssh]).arg(format!("localhost:{}", dir.display())).arg(folder.join("mount"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).spawn()
}

/// Removes the files one by one, so that nothing behind a leftover mount is removed.
fn remove(folder: &Path) {
    for file in ["server.sh", "server.id", "said"] {
        let _ = fs::remove_file(folder.join(file));
    }
    let _ = fs::remove_dir(folder.join("mount"));
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{RecvTimeoutError, channel};

    #[test]
    fn a_mount_shows_what_is_served_hangs_and_goes_on() {
        // Any folder will do, and this one is removed easily.
        let served = make_folder("none").unwrap();
        let mount = match SshfsMount::start(&served) {
            Ok(mount) => mount,
            Err(reason) => {
                remove(&served);
                return crate::skipped(reason);
            }
        };
        assert!(mount.path().join("server.sh").exists());

        mount.hang();
        let (sender, done) = channel();
        let path = mount.path().join("said");
        let writer = std::thread::spawn(move || sender.send(fs::write(path, "x").is_ok()));
        assert_eq!(done.recv_timeout(Duration::from_millis(200)), Err(RecvTimeoutError::Timeout));
        mount.resume();
        assert_eq!(done.recv_timeout(TIMEOUT), Ok(true));
        writer.join().unwrap().unwrap();
        assert_eq!(fs::read_to_string(served.join("said")).unwrap(), "x");

        let (mounted, client) = (mount.path().to_owned(), mount.client.id());
        drop(mount);
        assert!(!mounted.exists());
        assert!(!Path::new(&format!("/proc/{client}")).exists());
        remove(&served);
        assert!(!served.exists());
    }
}
