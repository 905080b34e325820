//! The study file: read with every fault named, and resolved for each trial.
