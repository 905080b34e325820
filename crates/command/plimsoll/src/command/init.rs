//! `plimsoll init`: a study to start from.

use crate::exit::{Exit, Failure};
use crate::say;
use anyhow::{Context, anyhow};
use plimsoll_model::shell;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

const STUDY: &str = include_str!("init.toml");
const OF_ONE_SYSTEM: &str = include_str!("init-describe.toml");

/// Writes a study that compares two variants, or one that describes one system.
pub(super) fn init(folder: &Path, describe: bool) -> Result<Exit, Failure> {
    let study = if describe { OF_ONE_SYSTEM } else { STUDY };
    fs::create_dir_all(folder).with_context(|| format!("failed to make the folder {}", folder.display()))?;
    let path = folder.join("study.toml");
    let shown = path.display();
    write_new(&path, study).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => anyhow!("{shown} is there already; name another folder: `plimsoll init DIR`"),
        _ => anyhow!("failed to write {shown}: {error}"),
    })?;
    let file = shell::word(&shown);
    say::result(&format!(
        "wrote {shown}\n  edit it, then:\n  plimsoll check {file}\n  plimsoll plan {file}\n  plimsoll run {file}"
    ))?;
    Ok(Exit::Fine)
}

/// Writes a file that is not there yet. If only a part of it can be written, as on a full disk, it is removed, so that
/// the command can be repeated.
pub(super) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes()).inspect_err(|_| {
        let _ = fs::remove_file(path); // the first error is the one to tell
    })
}

#[cfg(test)]
mod tests {
    use super::{OF_ONE_SYSTEM, STUDY};
    use std::path::Path;

    #[test]
    fn the_readme_shows_the_study_that_is_written() {
        assert!(include_str!("../../../../../README.md").contains(STUDY));
    }

    #[test]
    fn nothing_is_said_against_it() {
        for (text, compares) in [(STUDY, true), (OF_ONE_SYSTEM, false)] {
            let (study, diagnostics) = plimsoll_study::read("study.toml", text, None, Path::new("/"), &[0]);
            assert!(diagnostics.is_empty(), "{diagnostics:?}");
            assert_eq!(study.map(|study| study.compares()), Some(compares));
        }
    }
}
