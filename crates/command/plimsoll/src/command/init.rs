//! `plimsoll init`: a study to start from.

use crate::exit::{Exit, Failure};
use crate::say;
use anyhow::{Context, anyhow};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

const STUDY: &str = include_str!("init.toml");
const OF_ONE_SYSTEM: &str = include_str!("init-describe.toml");

/// Writes a study that compares two variants, or one that describes one system.
pub(super) fn init(folder: &Path, describe: bool) -> Result<Exit, Failure> {
    let study = if describe { OF_ONE_SYSTEM } else { STUDY };
    std::fs::create_dir_all(folder).with_context(|| format!("failed to make the folder {}", folder.display()))?;
    let path = folder.join("study.toml");
    let shown = path.display();
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => anyhow!("{shown} is there already; name another folder: `plimsoll init DIR`"),
        _ => anyhow!("failed to write {shown}: {error}"),
    })?;
    file.write_all(study.as_bytes()).with_context(|| format!("failed to write {shown}"))?;
    say::result(&format!(
        "wrote {shown}\n  edit it, then:\n  plimsoll check {shown}\n  plimsoll plan {shown}\n  plimsoll run {shown}"
    ))?;
    Ok(Exit::Fine)
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
