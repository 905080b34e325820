//! The command line of `plimsoll script run`: the flags of `k6 run`, and a few of Plimsoll's own.

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, Subcommand};
use plimsoll_javascript::Level;
use plimsoll_k6_run::duration;
use std::env::VarError;
use std::path::PathBuf;
use std::time::Duration;

/// Scripts on their own, without a study.
#[derive(Debug, Subcommand)]
pub(crate) enum Script {
    /// Run a script for k6, as `k6 run` does
    #[command(after_help = EXIT_CODES)]
    Run(Box<RunFlags>),
    /// Print the options of a script as JSON, as `k6 inspect` does
    Inspect(Box<InspectFlags>),
    /// Write a script to start from, as `k6 new` does
    New(NewScript),
    /// Take saved copies of the remote modules that a script imports
    #[command(long_about = VENDOR)]
    Vendor(Vendor),
}

/// A run, on this machine or on agents.
#[derive(Debug, Args)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) flags: Flags,
    #[command(flatten)]
    pub(crate) fleet: super::Fleet,
}

/// What is printed of a script.
#[derive(Debug, Args)]
pub(crate) struct InspectFlags {
    /// Print the scenarios and how many users and how much time they need as well
    #[arg(long)]
    pub(crate) execution_requirements: bool,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// A script to write.
#[derive(Debug, Args)]
pub(crate) struct NewScript {
    /// The file
    #[arg(default_value = "script.js")]
    pub(crate) file: PathBuf,
    /// Overwrite the file
    #[arg(short = 'f', long)]
    pub(crate) force: bool,
    /// What it shows
    #[arg(long, value_name = "TEMPLATE", default_value = "minimal")]
    pub(crate) template: Template,
}

/// What a new script shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Template {
    /// One request in a loop
    Minimal,
    /// Scenarios, thresholds, checks and groups
    Protocol,
}

const VENDOR: &str = "Take saved copies of the remote modules that a script imports (`https://…`), itself or through \
others. Plimsoll fetches nothing: the command says where to save each one that is missing, and notes the SHA-256 of those \
that are there, with which `script run` and studies then use them. Exit codes: 0 all are there, 1 some are missing, \
107 the script is at fault.";

/// A script whose remote imports are looked for.
#[derive(Debug, Args)]
pub(crate) struct Vendor {
    /// The script, in JavaScript or TypeScript
    pub(crate) script: PathBuf,
    /// The folder of the copies [default: `vendor` in the folder of the project]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) project: Project,
}

/// What a script may read.
#[derive(Debug, Args)]
pub(crate) struct Project {
    /// The folder of the project, whose files the script may read [default: the nearest folder above it with `.git` or
    /// `package.json`, or else its own]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// A folder that the script may read files from, besides its project [may be repeated]
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Vec<PathBuf>,
}

const EXIT_CODES: &str = "Exit codes, as those of k6: 0 fine, 99 a threshold does not hold, 100 setup timed out, \
101 teardown timed out, 104 options at fault, 105 interrupted, 107 the script is at fault, 108 the script ended the run, \
110 the script called it a failure, 255 it exports no function, 1 anything else.";

/// Makes a flag of each option that scripts have as well.
macro_rules! options {
    ($($(#[$attribute:meta])+ $field:ident: $name:literal, $flag:literal;)+) => {
        /// Flags that are options of scripts too.
        #[derive(Debug, Args)]
        pub(crate) struct Options {
            $($(#[$attribute])+ $field: Vec<String>,)+
        }

        impl Options {
            /// The options that were given: the option's name, that of its flag, and its text.
            pub(crate) fn given(&self) -> Vec<(&'static str, &'static str, String)> {
                [$(($name, $flag, &self.$field)),+]
                    .into_iter()
                    .filter_map(|(name, flag, texts)| Some((name, flag, text(name, texts)?)))
                    .collect()
            }
        }
    };
}

/// Options that may be given more than once.
const LISTS: [&str; 6] = ["stages", "tags", "systemTags", "summaryTrendStats", "blockHostnames", "blacklistIPs"];

/// The text of an option: a list, or the last of several texts. Values of tags may have commas.
fn text(option: &str, texts: &[String]) -> Option<String> {
    let separator = if option == "tags" { "\n" } else { "," };
    if LISTS.contains(&option) && !texts.is_empty() { Some(texts.join(separator)) } else { texts.last().cloned() }
}

options! {
    /// How many users
    #[arg(short = 'u', long, value_name = "N")]
    vus: "vus", "--vus";
    /// How long
    #[arg(short = 'd', long, value_name = "TIME")]
    duration: "duration", "--duration";
    /// How many iterations, of all users together
    #[arg(short = 'i', long, value_name = "N")]
    iterations: "iterations", "--iterations";
    /// A step of a ramp: how long it takes, and how many users there are at its end [may be repeated]
    #[arg(short = 's', long, value_name = "TIME:USERS")]
    stage: "stages", "--stage";
    /// How many requests begin in a second at most
    #[arg(long, value_name = "N")]
    rps: "rps", "--rps";
    /// How many redirects are followed
    #[arg(long, value_name = "N")]
    max_redirects: "maxRedirects", "--max-redirects";
    /// How many requests of a batch go at once
    #[arg(long, value_name = "N")]
    batch: "batch", "--batch";
    /// How many of them to one host
    #[arg(long, value_name = "N")]
    batch_per_host: "batchPerHost", "--batch-per-host";
    /// The header `User-Agent`
    #[arg(long, value_name = "TEXT")]
    user_agent: "userAgent", "--user-agent";
    /// A host to which nothing is sent, maybe with `*` at its beginning [may be repeated]
    #[arg(long, value_name = "HOST")]
    block_hostnames: "blockHostnames", "--block-hostnames";
    /// A range of addresses to which nothing is sent [may be repeated]
    #[arg(long, value_name = "CIDR")]
    blacklist_ip: "blacklistIPs", "--blacklist-ip";
    /// Take any certificate
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    insecure_skip_tls_verify: "insecureSkipTLSVerify", "--insecure-skip-tls-verify";
    /// Give each request a connection of its own
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    no_connection_reuse: "noConnectionReuse", "--no-connection-reuse";
    /// Begin each iteration without connections
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    no_vu_connection_reuse: "noVUConnectionReuse", "--no-vu-connection-reuse";
    /// How long an iteration takes at least
    #[arg(long, value_name = "TIME")]
    min_iteration_duration: "minIterationDuration", "--min-iteration-duration";
    /// Make exceptions of requests that fail
    #[arg(short = 'w', long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    throw: "throw", "--throw";
    /// A tag of all samples [may be repeated]
    #[arg(long, value_name = "NAME=VALUE")]
    tag: "tags", "--tag";
    /// Which tags samples get by themselves, with commas
    #[arg(long, value_name = "NAMES")]
    system_tags: "systemTags", "--system-tags";
    /// Leave bodies of responses aside
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    discard_response_bodies: "discardResponseBodies", "--discard-response-bodies";
    /// Show requests and responses on the console: their heads, or with `full` their bodies too
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "headers", value_name = "WHAT")]
    http_debug: "httpDebug", "--http-debug";
    /// Leave `setup` out
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    no_setup: "noSetup", "--no-setup";
    /// Leave `teardown` out
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    no_teardown: "noTeardown", "--no-teardown";
    /// What the summary says of durations and trends, with commas: `avg`, `min`, `med`, `max`, `count`, `p(N)`
    #[arg(long, value_name = "STATS")]
    summary_trend_stats: "summaryTrendStats", "--summary-trend-stats";
    /// The unit of times in the summary: `s`, `ms` or `us`
    #[arg(long, value_name = "UNIT")]
    summary_time_unit: "summaryTimeUnit", "--summary-time-unit";
}

/// Everything.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The script, in JavaScript or TypeScript; `-` for standard input
    pub(crate) script: PathBuf,
    #[command(flatten)]
    pub(crate) options: Options,
    /// A variable of `__ENV` [may be repeated]
    #[arg(short = 'e', long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Whether `__ENV` has the variables of the system as well
    #[arg(
        long,
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        default_value = "true",
        value_name = "BOOL",
        value_parser = BoolishValueParser::new(),
        env = "K6_INCLUDE_SYSTEM_ENV_VARS"
    )]
    pub(crate) include_system_env_vars: bool,
    /// A file of options in JSON, which counts less than those of the script
    #[arg(short = 'c', long, value_name = "FILE", env = "K6_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Write every sample to a file: `json=FILE` or `csv=FILE`; or send metrics to a server while the script runs:
    /// `experimental-prometheus-rw=URL` or `opentelemetry=URL` [may be repeated] [env: K6_OUT, with commas]
    #[arg(short = 'o', long, value_name = "OUTPUT")]
    out: Vec<String>,
    /// Write the summary as JSON
    #[arg(long, value_name = "FILE", env = "K6_SUMMARY_EXPORT")]
    pub(crate) summary_export: Option<PathBuf>,
    /// How much the summary shows [default: compact]
    #[arg(long, value_name = "MODE", env = "K6_SUMMARY_MODE")]
    pub(crate) summary_mode: Option<Shown>,
    /// Show no summary
    #[arg(long, env = "K6_NO_SUMMARY", value_parser = BoolishValueParser::new())]
    pub(crate) no_summary: bool,
    /// Leave thresholds aside
    #[arg(long, env = "K6_NO_THRESHOLDS", value_parser = BoolishValueParser::new())]
    pub(crate) no_thresholds: bool,
    /// Where the console of the script goes [default: standard error]
    #[arg(long, value_name = "FILE", env = "K6_CONSOLE_OUTPUT")]
    pub(crate) console_output: Option<PathBuf>,
    /// Where log lines go, the console of the script included: `stderr`, `stdout`, `none`, or `file=FILE`, which
    /// `,level=LEVEL` may follow
    #[arg(long, value_name = "OUTPUT", env = "K6_LOG_OUTPUT", default_value = "stderr", value_parser = LogOutput::parse)]
    pub(crate) log_output: LogOutput,
    /// The form of log lines
    #[arg(long, value_name = "FORMAT", env = "K6_LOG_FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// A source of secrets for `k6/secrets`: `file=FILE` with a line `NAME=VALUE` for each, or `mock=NAME=VALUE,…`
    /// [may be repeated]
    #[arg(long, value_name = "SOURCE", env = "K6_SECRET_SOURCE")]
    pub(crate) secret_source: Vec<String>,
    /// Stay after the end of the run, until a signal comes
    #[arg(long, env = "K6_LINGER", value_parser = BoolishValueParser::new())]
    pub(crate) linger: bool,
    /// Accepted: nothing listens there, since there is no server to control a run
    #[arg(long, value_name = "ADDRESS", hide = true)]
    pub(crate) address: Option<String>,
    /// Accepted: all modes are the same here
    #[arg(long, value_name = "MODE", env = "K6_COMPATIBILITY_MODE", hide = true)]
    pub(crate) compatibility_mode: Option<CompatibilityMode>,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
    /// Show the summary without colours
    #[arg(long)]
    pub(crate) no_color: bool,
    /// Accepted: nothing is ever reported
    #[arg(long, hide = true)]
    pub(crate) no_usage_report: bool,
    /// Show what the script says by console.debug, too
    #[arg(short = 'v', long)]
    pub(crate) verbose: bool,
    /// A host that the script may send to, besides this machine's loopback [may be repeated]
    #[arg(long, value_name = "HOST")]
    pub(crate) allow: Vec<String>,
    #[command(flatten)]
    pub(crate) project: Project,
    /// The folder of saved copies of remote modules [default: `vendor` in the folder of the project]
    #[arg(long, value_name = "DIR")]
    pub(crate) vendor: Option<PathBuf>,
    /// A folder into which `handleSummary` may write, besides the current one [may be repeated]
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_write: Vec<PathBuf>,
    /// How many threads run users [default: one for each processor, fewer where an arrival rate has few users]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// How much memory the script of one user may take, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) user_memory: u32,
    /// How much stack its calls may take, in KiB
    #[arg(long, value_name = "KIB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(64..=65536))]
    pub(crate) user_stack: u32,
    /// How long it may run without waiting for anything
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub(crate) user_busy: Duration,
    #[command(flatten)]
    pub(crate) unsupported: Unsupported,
}

impl Flags {
    /// The outputs that the command line names, or else those of the variable `K6_OUT`.
    ///
    /// # Errors
    /// The variable counts, and is not UTF-8 text.
    pub(crate) fn outputs(&self) -> Result<Vec<String>, String> {
        self.outputs_or(std::env::var("K6_OUT"))
    }

    /// The outputs of the flag, or else those of a text with commas between them. Clap would divide the flag's text too.
    fn outputs_or(&self, variable: Result<String, VarError>) -> Result<Vec<String>, String> {
        if !self.out.is_empty() {
            return Ok(self.out.clone());
        }
        let text = match variable {
            Ok(text) => text,
            Err(VarError::NotPresent) => String::new(),
            Err(VarError::NotUnicode(text)) => {
                return Err(format!(
                    "expected UTF-8 text in the variable `K6_OUT`, found `{}`",
                    text.to_string_lossy()
                ));
            }
        };
        Ok(text.split(',').filter(|output| !output.is_empty()).map(str::to_owned).collect())
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let read = duration::parse(text).filter(|time| !time.is_zero());
    read.ok_or_else(|| "expected a time above 0 such as `1s`".to_owned())
}

/// Where log lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogOutput {
    Stderr,
    Stdout,
    Nowhere,
    /// Lines of this level and above.
    File {
        path: PathBuf,
        least: Level,
    },
}

impl LogOutput {
    /// Reads `stderr`, `stdout`, `none`, `file=FILE` or `file=FILE,level=warn`.
    pub(crate) fn parse(text: &str) -> Result<LogOutput, String> {
        let wrong = || format!("expected `stderr`, `stdout`, `none` or `file=FILE,level=LEVEL`, found `{text}`");
        let Some(rest) = text.strip_prefix("file=") else {
            return match text {
                "stderr" => Ok(LogOutput::Stderr),
                "stdout" => Ok(LogOutput::Stdout),
                "none" => Ok(LogOutput::Nowhere),
                _ => Err(wrong()),
            };
        };
        let (path, least) = match rest.split_once(",level=") {
            Some((path, level)) => (path, log_level(level).ok_or_else(wrong)?),
            None => (rest, Level::Debug),
        };
        if path.is_empty() { Err(wrong()) } else { Ok(LogOutput::File { path: path.into(), least }) }
    }
}

/// A level as k6 names it.
fn log_level(name: &str) -> Option<Level> {
    match name {
        "trace" | "debug" => Some(Level::Debug),
        "info" => Some(Level::Info),
        "warn" | "warning" => Some(Level::Warn),
        "error" | "fatal" | "panic" => Some(Level::Error),
        _ => None,
    }
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// `INFO[0001] text`
    Text,
    /// The text alone
    Raw,
    /// An object with `level`, `msg` and `time`
    Json,
}

/// The modes in which k6 reads scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum CompatibilityMode {
    Base,
    Extended,
    ExperimentalEnhanced,
}

/// How much the summary shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Shown {
    /// What matters most
    Compact,
    /// All metrics, and groups
    Full,
    /// As before k6 1.0
    Legacy,
    /// Nothing
    Disabled,
}

/// Makes a flag of each that k6 has and Plimsoll has not, so that it is refused by name: those that stand alone, and
/// those with a value.
macro_rules! unsupported {
    ({ $($alone:ident: $flag:literal, $why:literal;)+ } { $($with:ident: $other:literal, $because:literal;)+ }) => {
        /// Flags that k6 has and Plimsoll has not.
        #[derive(Debug, Args)]
        pub(crate) struct Unsupported {
            $(#[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
            $alone: Option<String>,)+
            $(#[arg(long, hide = true)] $with: Option<String>,)+
        }

        impl Unsupported {
            /// A message for each of these flags that was given.
            pub(crate) fn refusals(&self) -> Vec<String> {
                let all = [$((&self.$alone, $flag, $why),)+ $((&self.$with, $other, $because),)+];
                let said = all.iter().filter(|(said, ..)| said.is_some());
                said.map(|(_, flag, why)| format!("`{flag}` is not supported: {why}")).collect()
            }
        }
    };
}

unsupported! {
    {
        paused: "--paused", "a run begins at once";
        new_machine_readable_summary: "--new-machine-readable-summary", "take `--summary-export` or `handleSummary`";
        profiling_enabled: "--profiling-enabled", "profile the program from outside";
    }
    {
        execution_segment: "--execution-segment", "agents divide a run among themselves (`--nats URL --agents N`)";
        execution_segment_sequence: "--execution-segment-sequence", "agents divide a run among themselves (`--nats URL --agents N`)";
        local_ips: "--local-ips", "connections come from the address that the system picks";
        dns: "--dns", "names are looked up once, by the system";
        traces_output: "--traces-output", "there are no traces";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        flags: Flags,
    }

    fn given(words: &[&str]) -> Flags {
        Line::try_parse_from(["run"].iter().chain(words)).unwrap_or_else(|error| panic!("{error}")).flags
    }

    #[test]
    fn flags_are_those_of_k6() {
        let words = "-u 5 -u 6 -s 1s:2 -s 2s:3 -w --no-setup=false --tag a=b,c --tag d=e a.js";
        let flags = given(&words.split(' ').collect::<Vec<_>>());
        let found = flags.options.given();
        let found: Vec<_> = found.iter().map(|(name, flag, text)| (*name, *flag, text.as_str())).collect();
        assert_eq!(
            found,
            [
                ("vus", "--vus", "6"),
                ("stages", "--stage", "1s:2,2s:3"),
                ("throw", "--throw", "true"),
                ("tags", "--tag", "a=b,c\nd=e"),
                ("noSetup", "--no-setup", "false"),
            ]
        );
    }

    #[test]
    fn variables_of_the_system_are_left_out_on_demand() {
        for (words, included) in [
            (&["a.js"][..], true),
            (&["--include-system-env-vars", "a.js"], true),
            (&["--include-system-env-vars=false", "a.js"], false),
            (&["--include-system-env-vars=0", "a.js"], false),
        ] {
            assert_eq!(given(words).include_system_env_vars, included, "{words:?}");
        }
        let flags = given(&["--no-summary", "--no-thresholds", "--linger", "a.js"]);
        assert!(flags.no_summary && flags.no_thresholds && flags.linger);
    }

    #[test]
    fn the_variable_of_outputs_has_commas_and_counts_less_than_the_flag() {
        let (none, flag) = (given(&["a.js"]), given(&["-o", "csv=a,b.csv", "a.js"]));
        let outputs = |flags: &Flags, variable: &str| flags.outputs_or(Ok(variable.to_owned())).expect("it is text");
        assert_eq!(outputs(&none, "json=a.json,csv=b.csv"), ["json=a.json", "csv=b.csv"]);
        assert!(outputs(&none, "").is_empty());
        assert_eq!(none.outputs_or(Err(VarError::NotPresent)), Ok(Vec::new()));
        assert_eq!(outputs(&flag, "json=a.json"), ["csv=a,b.csv"]);
    }

    #[test]
    fn a_variable_of_outputs_that_is_no_text_is_refused_where_it_counts() {
        let variable = || Err(VarError::NotUnicode(OsString::from_vec(b"json=\xff.json".to_vec())));
        let refused = given(&["a.js"]).outputs_or(variable()).expect_err("it is no text");
        assert!(refused.contains("UTF-8 text in the variable `K6_OUT`, found `json=\u{fffd}.json`"), "{refused}");
        let flag = given(&["-o", "csv=a.csv", "a.js"]);
        assert_eq!(flag.outputs_or(variable()), Ok(vec!["csv=a.csv".to_owned()]));
    }

    #[test]
    fn what_is_not_supported_is_refused_by_name() {
        let flags = given(&["--paused", "--traces-output", "otel", "a.js"]);
        let refusals = flags.unsupported.refusals();
        assert_eq!(refusals.len(), 2, "{refusals:?}");
        assert!(refusals[1].contains("`--traces-output` is not supported"), "{refusals:?}");
    }

    #[test]
    fn log_lines_go_where_k6_sends_them() {
        let file = |path: &str, least| Ok(LogOutput::File { path: path.into(), least });
        for (text, output) in [
            ("stderr", Ok(LogOutput::Stderr)),
            ("stdout", Ok(LogOutput::Stdout)),
            ("none", Ok(LogOutput::Nowhere)),
            ("file=a=b.log", file("a=b.log", Level::Debug)),
            ("file=a.log,level=warning", file("a.log", Level::Warn)),
        ] {
            assert_eq!(LogOutput::parse(text), output, "{text}");
        }
        for text in ["", "file=", "file", "file=a.log,level=loud", "loki=http://127.0.0.1:3100"] {
            let refused = LogOutput::parse(text).expect_err(text);
            assert!(refused.contains("`stderr`, `stdout`, `none`") && refused.contains(text), "{refused}");
        }
    }
}
