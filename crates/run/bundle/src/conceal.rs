//! Removes secrets from the output of systems.

use crate::error::BundleError;
use crate::files::files_in;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that are searched at a time.
const CHUNK: usize = 1 << 20;

/// Overwrites `secret` with asterisks in all logs directly in `folder`.
pub(crate) fn conceal_in_logs(folder: &Path, secret: &str) -> Result<(), BundleError> {
    let conceal_all = || -> io::Result<()> {
        let files = files_in(folder)?;
        let mut logs = files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "log"));
        logs.try_for_each(|path| conceal(path, secret))
    };
    conceal_all().map_err(BundleError::io("take a secret out of the output in", folder))
}

/// Overwrites every occurrence of `secret` in the file with asterisks. The file keeps its length.
fn conceal(path: &Path, secret: &str) -> io::Result<()> {
    if secret.is_empty() {
        return Ok(());
    }
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let stars = "*".repeat(secret.len());
    for place in occurrences(&file, secret.as_bytes(), CHUNK)? {
        file.write_all_at(stars.as_bytes(), place)?;
    }
    Ok(())
}

/// The offsets at which `pattern` begins in the file, also where it crosses the border of two chunks.
fn occurrences(file: &File, pattern: &[u8], chunk: usize) -> io::Result<Vec<u64>> {
    let mut places = Vec::new();
    let mut window: Vec<u8> = Vec::new();
    let mut begin = 0;
    loop {
        let read = file.take(chunk as u64).read_to_end(&mut window)?;
        let found = window.windows(pattern.len()).enumerate().filter(|(_, part)| *part == pattern);
        places.extend(found.map(|(index, _)| begin + index as u64));
        if read == 0 {
            return Ok(places);
        }
        // The kept bytes are too short for a whole occurrence, so none is found twice.
        let kept = window.len().min(pattern.len() - 1);
        begin += (window.len() - kept) as u64;
        window.drain(..window.len() - kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek;

    #[test]
    fn a_secret_is_found_wherever_chunks_end() {
        let text = b"--key--keykey-ke-k";
        let mut file = tempfile::tempfile().expect("a file");
        io::Write::write_all(&mut file, text).expect("room");
        for chunk in 1..=text.len() + 1 {
            file.rewind().expect("a file");
            assert_eq!(occurrences(&file, b"key", chunk).expect("readable"), [2, 7, 10], "chunks of {chunk}");
        }
    }

    #[test]
    fn a_secret_is_gone_and_the_rest_is_as_it_was() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "user root, secret s3cr3t!\nsecret s3cr3t!").expect("room");
        conceal(file.path(), "s3cr3t!").expect("writable");
        conceal(file.path(), "").expect("nothing to do");
        let text = std::fs::read_to_string(file.path()).expect("text");
        assert_eq!(text, "user root, secret *******\nsecret *******");
    }
}
