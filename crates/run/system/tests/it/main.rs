//! The lifecycle of real processes. Nothing here sleeps to prove something: it waits until what
//! must happen has happened, and fails if that takes too long.

mod commands;
mod common;
mod containers;
mod lifecycle;
mod nothing_outlives;
mod readiness;
