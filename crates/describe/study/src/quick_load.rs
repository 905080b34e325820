//! The load of a first look: shorter than the study asks for.

use crate::TrialSpec;
use plimsoll_model::load::{LoadModel, LoadProfile, Stop};
use std::time::Duration;

const WARMUP: Duration = Duration::from_secs(1);
const MEASURE: Duration = Duration::from_secs(3);

/// The trial in a first look. It has no time for a number of iterations, nor for the rows that all of them leave.
pub(crate) fn first_look(mut spec: TrialSpec) -> TrialSpec {
    if matches!(spec.load.stop, Stop::Iterations { .. } | Stop::IterationsPerUser { .. }) {
        spec.databases.iter_mut().for_each(|database| database.expected.clear());
    }
    TrialSpec { load: shortened(spec.load), ..spec }
}

/// The load of a trial in a first look.
pub(crate) fn shortened(mut load: LoadProfile) -> LoadProfile {
    let full = load.stop.limit();
    load.warmup = load.warmup.min(WARMUP);
    match &mut load.stop {
        Stop::After(limit)
        | Stop::Soak(limit)
        | Stop::IterationsPerUser { limit, .. }
        | Stop::Iterations { limit, .. } => {
            *limit = (*limit).min(MEASURE);
        }
        // It has no end in seconds: a first look sees users come, and no alert.
        Stop::Feedback { limit, .. } => *limit = (*limit).min(MEASURE),
    }
    let share = load.stop.limit().as_secs_f64() / full.as_secs_f64();
    let (LoadModel::Closed { users: profile, .. } | LoadModel::Open { rate: profile, .. }) = &mut load.model;
    for stage in &mut profile.stages {
        stage.length = stage.length.mul_f64(share);
    }
    // The warm-up is too short for users who begin one after the other.
    profile.joining = None;
    load
}
