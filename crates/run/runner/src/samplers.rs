//! The samplers of a start: one for this machine, and one for each other host on which its systems run.

use crate::host::{Host, HostError, SamplerElsewhere};
use crate::run::Context;
use crate::running_variant::RunningVariant;
use crate::start::{Abort, Fault};
use plimsoll_model::database::Database;
use plimsoll_model::host::LOCAL;
use plimsoll_model::sample::Samples;
use plimsoll_telemetry::{LastSamples, Sampler};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::Instant;

/// The other hosts on which systems of these variants run, each once: two labels may be those of one agent.
pub(crate) fn hosts_of<'a>(context: &Context<'a>, variants: &[RunningVariant]) -> Result<Vec<&'a dyn Host>, HostError> {
    let mut hosts: BTreeMap<&str, &dyn Host> = BTreeMap::new();
    let systems = variants.iter().flat_map(|running| &running.spec.systems).filter_map(|one| one.on.as_deref());
    let databases = variants.iter().flat_map(|running| &running.spec.databases).filter_map(Database::on);
    for label in systems.chain(databases) {
        let host = context.host(label)?;
        hosts.insert(host.name(), host);
    }
    Ok(hosts.into_values().collect())
}

/// The samplers of the machines on which the systems of a start run.
pub(crate) struct Samplers {
    here: Sampler,
    /// One for each other host, with its name.
    elsewhere: Vec<(String, Box<dyn SamplerElsewhere>)>,
}

impl Samplers {
    pub(crate) fn start(
        context: &Context<'_>,
        variants: &[RunningVariant],
        hosts: &[&dyn Host],
    ) -> Result<Samplers, Fault> {
        let targets = variants.iter().flat_map(RunningVariant::targets).collect();
        let here = Sampler::start(LOCAL, targets, &|| context.interrupted.is_set());
        let here = here.map_err(|error| match error.kind() {
            ErrorKind::Interrupted => Fault::Abort(Abort::Interrupted),
            _ => Fault::Failed(error.to_string()),
        })?;
        let elsewhere = hosts.iter().map(|host| Ok((host.name().to_owned(), host.sample(context.interrupted)?)));
        Ok(Samplers { here, elsewhere: elsewhere.collect::<Result<_, HostError>>()? })
    }

    /// The samples since the last call. Their instants count from `zero`.
    pub(crate) fn take(&self, zero: Instant) -> Samples {
        let mut samples = self.here.take(zero);
        self.elsewhere.iter().for_each(|(_, sampler)| samples.extend(sampler.take(zero)));
        samples
    }

    /// The last samples: those of this machine, and those of each other host, by its name.
    pub(crate) fn stop(self, zero: Instant) -> (LastSamples, Vec<(String, LastSamples)>) {
        let here = self.here.stop(zero);
        (here, self.elsewhere.into_iter().map(|(host, sampler)| (host, sampler.stop(zero))).collect())
    }
}
