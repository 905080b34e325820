//! `plimsoll check`: finds every fault that can be found without starting anything.

use super::study::{self, Extent};
use super::{databases, plan};
use crate::exit::{Exit, Failure};
use crate::say;
use std::path::Path;

pub(crate) fn check(path: &Path, profile: Option<&str>) -> Result<Exit, Failure> {
    let (study, plan) = study::plan(study::read(path, profile)?.study, Extent::Whole)?;
    study::check_before_start(&path.display().to_string(), &study, &plan, false)?;
    say::result(&format!("{}: no errors; {}", path.display(), plan::in_short(&study, &plan)))?;
    if study.compares() {
        say::result(&format!("design      {}", plan::design(&study, &plan)))?;
    }
    databases::in_words(&study, &plan)?.iter().try_for_each(|line| say::result(&format!("database    {line}")))?;
    plan::hosts(&study, &plan).iter().try_for_each(|hosts| say::result(&format!("hosts       {hosts}")))?;
    Ok(Exit::Fine)
}
