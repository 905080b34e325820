//! Runs a program that ends soon, and returns its output.

use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The time limit. A program that takes longer belongs to no database.
const TIMEOUT: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(2);

/// The output of a program, and how it ended.
pub(crate) struct ProgramOutput {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
    pub(crate) errors: String,
}

/// Runs a command to its end, in the root folder, where it finds no configuration of its own.
pub(crate) fn run_program(command: &[String]) -> io::Result<ProgramOutput> {
    let [output, errors] = [memory()?, memory()?];
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(errors.try_clone()?)
        .spawn()?;
    let deadline = Instant::now() + TIMEOUT;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other(format!("it did not end within {} s", TIMEOUT.as_secs())));
        }
        thread::sleep(PAUSE);
    };
    Ok(ProgramOutput { status, output: text(output)?, errors: text(errors)? })
}

fn memory() -> io::Result<File> {
    Ok(File::from(memfd_create("answer", MemfdFlags::CLOEXEC)?))
}

fn text(mut file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_a_program_and_its_end_are_returned() {
        let output = run_program(&["sh", "-c", "pwd; echo wrong >&2; exit 3"].map(str::to_owned)).unwrap();
        assert_eq!((output.output.as_str(), output.errors.as_str()), ("/\n", "wrong\n"));
        assert_eq!(output.status.code(), Some(3));
        assert!(run_program(&["/no/such/program".to_owned()]).is_err());
    }
}
