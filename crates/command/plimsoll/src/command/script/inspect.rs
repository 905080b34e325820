//! `plimsoll script inspect`: prints the options of a script as JSON.

use super::exit::{Exit, Failure};
use super::settle::settle;
use super::{loaded, program};
use crate::arguments::InspectFlags;
use crate::say;
use plimsoll_generator::script::Console;
use plimsoll_k6::secrets::Secrets;
use plimsoll_k6_run::duration;
use plimsoll_k6_run::scenario;
use plimsoll_model::load::WHOLE;
use serde_json::Value;
use std::sync::Arc;

/// Prints the options that the script exports, and with `--execution-requirements` those of the command line and of the
/// environment over them, with the users and the time that they need.
pub(super) fn inspect(wanted: &InspectFlags, secrets: &Arc<Secrets>) -> Result<Exit, Failure> {
    let InspectFlags { execution_requirements, flags } = wanted;
    let program = program(flags)?;
    // A person wants the options, and what a script says goes to standard error.
    let console: Console = {
        let secrets = Arc::clone(secrets);
        Arc::new(move |_, _, line| say::note(&secrets.masked(line)))
    };
    let inspected = loaded(flags, &program, secrets, &console)?;
    let mut options: Value =
        inspected.options.as_deref().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    if *execution_requirements {
        let warn = &mut |warning: &str| say::note(&format!("warning: {warning}"));
        let settled = settle(flags, &inspected.functions, inspected.options.as_deref(), &inspected.registry, warn)?;
        options = settled.options.to_json();
        options["totalDuration"] = duration::format(scenario::longest(&settled.scenarios)).into();
        options["maxVUs"] = scenario::most_vus(&settled.scenarios, WHOLE).into();
    }
    say::result(&secrets.masked(&format!("{options:#}")))?;
    Ok(Exit::Fine)
}
