//! The command line.

mod fleet;
mod script;

pub(crate) use fleet::{Agent, Fleet};
pub(crate) use script::{
    Flags, InspectFlags, LogFormat, LogOutput, NewScript, Project, RunFlags, Script, Shown, Template, Vendor,
};

use clap::{Args, Parser, Subcommand};
use plimsoll_demo::Mode;
use plimsoll_k6_run::duration;
use plimsoll_model::shell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Performance studies: which is faster, by how much, and how sure that is.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 fine, 1 a variant is worse, 2 usage or study error, 3 a system \
failed, 4 inconclusive or void, 5 the gate is not passed, 130 interrupted.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a short study that needs nothing but this program, and write its report
    Demo(Output),
    /// Write a study to start from
    Init {
        /// Folder for it; made if it is not there
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// A study that compares nothing and describes one system
        #[arg(long)]
        describe: bool,
    },
    /// Find everything that is wrong with a study; start nothing
    Check(StudyFile),
    /// Print every trial in order and the time they take; start nothing
    Plan {
        #[command(flatten)]
        file: StudyFile,
        /// The plan of a first look: fewer levels, repeats and seconds
        #[arg(long)]
        quick: bool,
        /// The plan of a run that ends when every verdict is reached
        #[arg(long, conflicts_with = "quick")]
        until_decided: bool,
        /// The plan of a run that takes so long
        #[arg(long = "for", value_name = "TIME", value_parser = time, conflicts_with_all = ["quick", "until_decided"])]
        time: Option<Duration>,
    },
    /// Run a study and write its report
    Run(Run),
    /// Generate load for runs on other machines
    ///
    /// Waits at a NATS broker until a run asks it to work (`plimsoll run --nats URL --agents N`), and goes on
    /// waiting when the run is over. Nothing listens on it, and it loads only hosts that it is allowed to.
    Agent(Agent),
    /// Write the report of a bundle again
    Report {
        /// The bundle: the folder that a run has written
        bundle: PathBuf,
        /// Folder for the report [default: `report` in the bundle]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Pass only where every variant is shown to be no worse than the baseline by the margin, as
        /// `plimsoll run --gate` does; without it, a report that was written exits with 0
        #[arg(long)]
        gate: bool,
    },
    /// Write the report of a release, in the form that teams publish
    ///
    /// Comments, action items, supported users, graphs and tables by change, from one bundle or several.
    ReleaseReport {
        /// The bundles of the release, as of its bounded and its unbounded runs
        #[arg(required = true)]
        bundles: Vec<PathBuf>,
        /// Folder for the report; must be new, empty, or hold an earlier one
        #[arg(long, value_name = "DIR", default_value = "release-report")]
        out: PathBuf,
    },
    /// Hold a second run of a study against a first one
    Compare(Compare),
    /// Find out whether this machine is fit to measure on
    Doctor(Doctor),
    /// Find what is wrong with a table of results that someone else made
    Audit {
        /// The table, as CSV; `-` for standard input
        table: PathBuf,
        /// Print it for other programs, with all evidence
        #[arg(long)]
        json: bool,
    },
    /// Run scripts without a study
    #[command(subcommand)]
    Script(Script),
    /// Print the JSON Schema of study files, for editors
    Schema,
    /// Print a completion script
    Completions {
        /// The shell to complete in
        shell: clap_complete::Shell,
    },
    /// The server that `demo` measures
    #[command(hide = true)]
    DemoServer {
        /// How it counts
        #[arg(long)]
        mode: Mode,
        /// Where it listens
        #[arg(long)]
        listen: SocketAddr,
    },
}

#[derive(Debug, Args)]
pub(crate) struct StudyFile {
    /// The study file
    pub(crate) study: PathBuf,
    /// The study in another size: as `[profile.NAME]` of the file has it
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
}

impl StudyFile {
    /// The flag that selects the profile, after a space; empty without one.
    pub(crate) fn flag(&self) -> String {
        self.profile.as_ref().map_or_else(String::new, |profile| format!(" --profile {}", shell::word(profile)))
    }
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) file: StudyFile,
    /// A first look with fewer levels, repeats and seconds; the report says so
    #[arg(long)]
    pub(crate) quick: bool,
    /// End at the first of the study's `looks` at which every verdict is reached [looks of a study
    /// that names none: after 5, 7 and 10 repeats]
    #[arg(long, conflicts_with = "quick")]
    pub(crate) until_decided: bool,
    /// As many repeats as fit into so much time under load: `10m`, `1h30m`. Their number is fixed before the run
    #[arg(long = "for", value_name = "TIME", value_parser = time, conflicts_with_all = ["quick", "until_decided"])]
    pub(crate) time: Option<Duration>,
    /// Pass only where every variant is shown to be no worse than the baseline by the margin: what is
    /// not known does not pass, and exits with 5
    #[arg(long, conflicts_with = "quick")]
    pub(crate) gate: bool,
    /// Run to the end on a machine that is too busy for trials to count, rather than end early
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Go on with the bundle that an interrupted run has left; of one that is complete, write the
    /// report
    #[arg(long, requires = "out")]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) fleet: Fleet,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// The bundle that is compared with: the folder of the earlier run; or a folder with results of another tool
    pub(crate) first: PathBuf,
    /// The bundle that is compared: that of the later run; or such a folder too
    pub(crate) second: PathBuf,
    /// Write it as Markdown too, with every table; of results of another tool the folder for the report
    /// [default: `release-report`]
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,
    /// Print it for other programs
    #[arg(long)]
    pub(crate) json: bool,
    /// Pass only where everything is shown to be no worse by the margin: what is not known does not
    /// pass, and exits with 5
    #[arg(long)]
    pub(crate) gate: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Run the baseline of STUDY against itself, under its first condition, in short trials, and
    /// tell the noise floor [STUDY: the demo]
    #[arg(long, value_name = "STUDY", num_args = 0..=1)]
    pub(crate) aa: Option<Option<PathBuf>>,
    /// Measure for about four minutes how much the demo's server differs from itself, in each design, and
    /// tell how long it takes on this machine to see a small difference
    #[arg(long, conflicts_with = "aa")]
    pub(crate) noise: bool,
    /// How often the two are run side by side
    #[arg(long, value_name = "N", default_value_t = 10, requires = "aa", value_parser = clap::value_parser!(u32).range(3..=1000))]
    pub(crate) blocks: u32,
    /// Folder for the bundle of `--aa`; must be new or empty [default: one named by time in
    /// `plimsoll-runs`]
    #[arg(long, value_name = "DIR", requires = "aa")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Folder for the bundle; must be new or empty [default: one named by study and time in
    /// `plimsoll-runs`]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// A span of time, as `10m`, `90s` or `1h30m`.
fn time(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text).filter(|time| !time.is_zero() && text.ends_with(char::is_alphabetic));
    time.ok_or_else(|| "expected a time with its unit, such as 90s, 10m or 1h30m".to_owned())
}

impl Arguments {
    /// Reads the command line, or ends the program with an error.
    pub(crate) fn read() -> Arguments {
        Arguments::parse()
    }
}
