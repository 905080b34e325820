//! `plimsoll script vendor`: takes saved copies of the remote modules that a script imports.

use super::exit::{Exit, Failure};
use crate::arguments::Vendor;
use crate::say;
use anyhow::Context;
use plimsoll_javascript::{Copy, Entry, RemoteImport, remote_imports};

pub(super) fn take(vendor: &Vendor) -> Result<Exit, Failure> {
    let files = super::files(&vendor.project, Some(&vendor.script), vendor.out.as_deref())?;
    let (imports, faults) = remote_imports(Entry::File(&vendor.script), &files, &plimsoll_k6::natives());
    if imports.is_empty() && faults.is_empty() {
        say::result(&format!("{} has no remote imports", vendor.script.display()))?;
        return Ok(Exit::Fine);
    }
    imports.iter().try_for_each(|import| say::result(&told(import)))?;
    files.take(&imports).context("failed to write the hashes of the copies")?;
    if !faults.is_empty() {
        return Err(super::at_fault(&faults));
    }
    let missing = imports.iter().filter(|import| import.copy == Copy::Missing).count();
    if missing == 0 {
        return Ok(Exit::Fine);
    }
    let (them, are) = if missing == 1 { ("it", "is") } else { ("them", "are") };
    let why =
        format!("{missing} of {} {are} missing: save {them} as said above, then run the command again", imports.len());
    Err(Failure::new(Exit::Failed, why))
}

fn told(RemoteImport { url, file, copy, .. }: &RemoteImport) -> String {
    let file = file.display();
    match copy {
        Copy::Missing => format!("missing  {url}\n         save it as {file}"),
        Copy::New => format!("taken    {url}\n         from {file}"),
        Copy::Known => format!("known    {url}\n         from {file}, unchanged"),
        Copy::Changed => format!("changed  {url}\n         from {file}, which is another one than before"),
    }
}
