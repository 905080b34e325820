//! The tables of a study file, one module each: its keys, what they become in a trial, and tests
//! of how they are read.

pub(crate) mod decide;
pub(crate) mod factors;
pub(crate) mod generator;
pub(crate) mod grpc;
pub(crate) mod http;
pub(crate) mod load;
pub(crate) mod ready;
pub(crate) mod report;
pub(crate) mod root;
pub(crate) mod stage;
pub(crate) mod system;
pub(crate) mod target;
pub(crate) mod workload;
