//! An engine of containers for one test: `dockerd` with all that it keeps in a folder of its own, and an image without a
//! registry, whose programs are those of this machine.

use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The image that every engine of tests has: empty, but for the places where [`MOUNTS`] are mounted.
pub const IMAGE: &str = "plimsoll-test:1";

/// The mounts of a container of [`IMAGE`], read-only, by which the programs of this machine run in it.
pub const MOUNTS: [&str; 2] = ["/usr:/usr:ro", "/etc:/etc:ro"];

/// How long starting and ending may take, on the busiest machine.
const TIMEOUT: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(20);

/// The words of the Compose that is installed.
///
/// # Errors
/// The reason names the package that has one.
pub fn compose() -> Result<&'static [&'static str], String> {
    const KNOWN: [&[&str]; 2] = [&["docker", "compose"], &["docker-compose"]];
    let answers = |words: &&&[&str]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let found = KNOWN.iter().find(answers).copied();
    found.ok_or_else(|| "Compose is not there: apt-get install docker-compose".to_owned())
}

/// A running engine. Dropping it removes its containers and ends it.
#[derive(Debug)]
pub struct Docker {
    folder: PathBuf,
    daemon: Child,
}

impl Docker {
    /// Starts an engine, without a network of its own: containers use that of the machine.
    ///
    /// # Errors
    /// The reason names what is missing: the programs, the rights, or what the engine itself says.
    pub fn start() -> Result<Docker, String> {
        if !geteuid().is_root() {
            return Err("an engine of containers is started by root alone".to_owned());
        }
        for program in ["dockerd", "docker", "tar"] {
            if Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
                return Err(format!("`{program}` is not there: apt-get install docker.io"));
            }
        }
        // Paths of sockets are short.
        let folder = PathBuf::from(format!("/tmp/plimsoll-docker-{}-{}", std::process::id(), number()));
        fs::create_dir_all(&folder).map_err(|error| format!("no folder for an engine: {error}"))?;
        let path = |name: &str| folder.join(name).display().to_string();
        let log = fs::File::create(folder.join("log")).map_err(|error| error.to_string())?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        let daemon = Command::new("dockerd")
            .args(["--data-root", &path("data"), "--exec-root", &path("exec"), "--pidfile", &path("pid")])
            .args(["--host", &format!("unix://{}", path("socket"))])
            .args(["--bridge", "none", "--iptables=false"])
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|error| format!("dockerd does not start: {error}"))?;
        let mut docker = Docker { folder, daemon };
        docker.wait_until_ready()?;
        docker.import()?;
        Ok(docker)
    }

    /// The variable of the environment by which clients find it, and its value.
    #[must_use]
    pub fn host(&self) -> (String, String) {
        ("DOCKER_HOST".to_owned(), format!("unix://{}", self.folder.join("socket").display()))
    }

    /// Runs the client with these arguments, and returns what it prints.
    ///
    /// # Panics
    /// It fails.
    #[must_use]
    pub fn ask(&self, arguments: &[&str]) -> String {
        let output = self.client(arguments).expect("a client");
        assert!(output.status.success(), "docker {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The ids of all containers, ended ones included.
    #[must_use]
    pub fn containers(&self) -> Vec<String> {
        self.ask(&["ps", "--all", "--quiet"]).split_whitespace().map(str::to_owned).collect()
    }

    fn client(&self, arguments: &[&str]) -> std::io::Result<Output> {
        Command::new("docker").args(arguments).envs([self.host()]).stdin(Stdio::null()).output()
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let begin = Instant::now();
        loop {
            if self.client(&["ps"]).is_ok_and(|output| output.status.success()) {
                return Ok(());
            }
            let ended = self.daemon.try_wait().ok().flatten();
            if ended.is_some() || begin.elapsed() > TIMEOUT {
                return Err(format!("dockerd does not run here: {}", last_line(&self.folder.join("log"))));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Makes [`IMAGE`].
    fn import(&self) -> Result<(), String> {
        let root = self.folder.join("image");
        let make = || -> std::io::Result<()> {
            for folder in ["usr", "etc", "tmp", "data"] {
                fs::create_dir_all(root.join(folder))?;
            }
            for name in ["bin", "sbin", "lib", "lib64"] {
                symlink(format!("usr/{name}"), root.join(name))?;
            }
            Ok(())
        };
        make().map_err(|error| format!("no folder for an image: {error}"))?;
        let archive = self.folder.join("image.tar");
        let tar = Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&archive).arg(".").status();
        if !tar.is_ok_and(|status| status.success()) {
            return Err("tar makes no archive".to_owned());
        }
        let imported =
            self.client(&["import", &archive.display().to_string(), IMAGE]).map_err(|error| error.to_string())?;
        if imported.status.success() {
            return Ok(());
        }
        Err(format!("docker import: {}", String::from_utf8_lossy(&imported.stderr).trim()))
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        let left =
            self.client(&["ps", "--all", "--quiet"]).map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let left = left.unwrap_or_default();
        let ids: Vec<&str> = left.split_whitespace().collect();
        if !ids.is_empty() {
            let _ = self.client(&[&["rm", "--force"][..], &ids].concat());
        }
        if let Some(pid) = i32::try_from(self.daemon.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let begin = Instant::now();
        while matches!(self.daemon.try_wait(), Ok(None)) && begin.elapsed() < TIMEOUT {
            std::thread::sleep(PAUSE);
        }
        let _ = self.daemon.kill(); // does nothing if it has ended
        let _ = self.daemon.wait();
        // The network of containers without one, which the engine leaves mounted.
        let _ = Command::new("umount").arg(self.folder.join("exec/netns/default")).output();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A number that no other engine of this process has.
fn number() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

fn last_line(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().last().unwrap_or("it wrote nothing").to_owned()
}
