//! `plimsoll init`: a study to start from.

use crate::exit::{Exit, Failure};
use crate::say;
use anyhow::{Context, anyhow};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

const STUDY: &str = include_str!("init.toml");

pub(super) fn init(folder: &Path) -> Result<Exit, Failure> {
    std::fs::create_dir_all(folder).with_context(|| format!("failed to make the folder {}", folder.display()))?;
    let path = folder.join("study.toml");
    let shown = path.display();
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => anyhow!("{shown} is there already; name another folder: `plimsoll init DIR`"),
        _ => anyhow!("failed to write {shown}: {error}"),
    })?;
    file.write_all(STUDY.as_bytes()).with_context(|| format!("failed to write {shown}"))?;
    say::result(&format!(
        "wrote {shown}\n  edit it, then:\n  plimsoll check {shown}\n  plimsoll plan {shown}\n  plimsoll run {shown}"
    ))?;
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use super::STUDY;
    use std::path::Path;

    #[test]
    fn the_readme_shows_the_study_that_is_written() {
        assert!(include_str!("../../../../../README.md").contains(STUDY));
    }

    #[test]
    fn nothing_is_said_against_it() {
        let (study, diagnostics) = plimsoll_study::read("study.toml", STUDY, None, Path::new("/"), &[0]);
        assert!(study.is_some() && diagnostics.is_empty(), "{diagnostics:?}");
    }
}
