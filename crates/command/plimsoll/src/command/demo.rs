//! `plimsoll demo`: a short study of a server that is part of this program.

use super::interrupt::Listener;
use super::study::{self, Extent, Source};
use super::{report, run};
use crate::arguments::Output;
use crate::exit::{Exit, Failure};
use anyhow::Context;
use plimsoll_demo::Mode;
use std::net::SocketAddr;
use std::path::Path;

const STUDY: &str = include_str!("demo.toml");

/// Threads of the demo's server.
const WORKERS: usize = 2;

pub(super) fn demo(output: &Output) -> Result<Exit, Failure> {
    let signals = Listener::start(Exit::Interrupted as i32)?;
    let source = source()?;
    let out = output.out.clone().unwrap_or_else(|| run::new_folder("demo"));
    let (name, extent) = ("demo.toml", Extent::Whole);
    run::run_study(&run::Task {
        name,
        source,
        extent,
        out: &out,
        resume: false,
        resume_command: None,
        judge: report::Judge::Nothing,
        prints_answer: true,
        keep_going: false,
        fleet: None,
        signals: &signals,
    })
}

/// The study.
pub(super) fn source() -> Result<Source, Failure> {
    // Its bundle has it under this name.
    study::read_text("study.toml", STUDY.to_owned(), None, Path::new("."))
}

/// The server's own process.
pub(super) fn serve(mode: Mode, listen: SocketAddr) -> Result<Exit, Failure> {
    plimsoll_demo::serve(listen, mode, WORKERS).with_context(|| format!("failed to serve at {listen}"))?;
    Ok(Exit::Fine)
}
