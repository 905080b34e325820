//! Options: from the script, a file, the environment and the command line, one over the other, and
//! what they come to.

mod derive;
mod fields;
mod scenarios;
mod table;
#[cfg(test)]
mod tests;

pub use derive::{Derived, no_such_function};

use crate::metrics::Aggregation;
use crate::scenario::{Scenario, Stage};
use crate::summary::TREND_STATS;
use crate::threshold::Threshold;
use serde_json::Value;
use std::fmt;
use std::time::Duration;
use table::{Field, Table};

/// The texts of options of one name in the environment begin so.
const ENVIRONMENT: &str = "K6_";

/// Options that k6 has and Plimsoll does without.
const IGNORED: [&str; 18] = [
    "paused",
    "cloud",
    "ext",
    "localIPs",
    "executionSegment",
    "executionSegmentSequence",
    "httpDebug",
    "dns",
    "blacklistIPs",
    "blockHostnames",
    "tlsAuth",
    "tlsVersion",
    "tlsCipherSuites",
    "metricSamplesBufferSize",
    "linger",
    "noUsageReport",
    "logOutput",
    "collectors",
];

/// The tags that samples get unless somebody says otherwise. In CSV they have columns of their own.
pub(crate) const SYSTEM_TAGS: [&str; 14] = [
    "check",
    "error",
    "error_code",
    "expected_response",
    "group",
    "method",
    "name",
    "proto",
    "scenario",
    "service",
    "status",
    "subproto",
    "tls_version",
    "url",
];

/// What is wrong with an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionFault {
    /// Which option: `scenarios.login.vus`, `K6_VUS`, `--vus`.
    pub option: String,
    /// What was expected, and what was found.
    pub what: String,
}

/// Options as they were read, with all that is wrong with them and all that was left aside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// What could be read.
    pub options: Options,
    /// What could not.
    pub faults: Vec<OptionFault>,
    /// What does not count here.
    pub ignored: Vec<OptionFault>,
}

impl fmt::Display for OptionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "option `{}`: {}", self.option, self.what)
    }
}

/// Makes [`Options`] of a list of its fields: with the name of each in scripts and its type.
macro_rules! options {
    ($($(#[doc = $doc:literal])+ $field:ident: $type:ty = $name:literal,)+) => {
        /// Options, each of which may be missing.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Options { $($(#[doc = $doc])+ pub $field: Option<$type>,)+ }

        impl Options {
            fn take(table: &mut Table<'_>) -> Options {
                Options { $($field: table.take($name),)+ }
            }

            /// As scripts see them; `null` is what nobody has said.
            #[must_use]
            pub fn to_json(&self) -> Value {
                let fields = [$(($name, self.$field.as_ref().map_or(Value::Null, Field::written))),+];
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }

            fn fill(&mut self, lower: Options) {
                $(if self.$field.is_none() { self.$field = lower.$field; })+
            }

            const NAMES: &'static [&'static str] = &[$($name),+];
        }
    };
}

options! {
    /// How many users.
    vus: u64 = "vus",
    /// How long.
    duration: Duration = "duration",
    /// How many iterations in all.
    iterations: u64 = "iterations",
    /// How the number of users changes.
    stages: Vec<Stage> = "stages",
    /// Scenarios, in the order of their names.
    scenarios: Vec<Scenario> = "scenarios",
    /// What must hold, by the name of the metric.
    thresholds: Vec<(String, Vec<Threshold>)> = "thresholds",
    /// What all samples are tagged with.
    tags: Vec<(String, String)> = "tags",
    /// How long `setup` may take.
    setup_timeout: Duration = "setupTimeout",
    /// How long `teardown` may take.
    teardown_timeout: Duration = "teardownTimeout",
    /// Whether `setup` is left out.
    no_setup: bool = "noSetup",
    /// Whether `teardown` is left out.
    no_teardown: bool = "noTeardown",
    /// How many requests begin in a second at most, of all users.
    rps: u64 = "rps",
    /// How many redirects are followed.
    max_redirects: u64 = "maxRedirects",
    /// The header `User-Agent`.
    user_agent: String = "userAgent",
    /// How many requests of a batch go at once.
    batch: u64 = "batch",
    /// How many of them to one host.
    batch_per_host: u64 = "batchPerHost",
    /// Whether any certificate will do.
    insecure_skip_tls_verify: bool = "insecureSkipTLSVerify",
    /// Whether each request gets a connection of its own.
    no_connection_reuse: bool = "noConnectionReuse",
    /// Whether each iteration begins without connections.
    no_vu_connection_reuse: bool = "noVUConnectionReuse",
    /// How long an iteration takes at least.
    min_iteration_duration: Duration = "minIterationDuration",
    /// Whether a request that fails is an exception.
    throw: bool = "throw",
    /// Whether bodies are left aside.
    discard_response_bodies: bool = "discardResponseBodies",
    /// What the summary says of trends.
    summary_trend_stats: Vec<Aggregation> = "summaryTrendStats",
    /// The unit in which the summary has times: `s`, `ms` or `us`.
    summary_time_unit: TimeUnit = "summaryTimeUnit",
    /// Which tags samples get by themselves.
    system_tags: Vec<String> = "systemTags",
    /// Whether cookies stay from one iteration to the next.
    no_cookies_reset: bool = "noCookiesReset",
    /// Addresses by host, asked before the DNS.
    hosts: Vec<(String, String)> = "hosts",
}

/// A unit of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// `s`
    Seconds,
    /// `ms`
    Milliseconds,
    /// `us`
    Microseconds,
}

impl TimeUnit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            TimeUnit::Seconds => "s",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Microseconds => "us",
        }
    }
}

impl Options {
    /// What holds where nobody says otherwise.
    #[must_use]
    pub fn defaults() -> Options {
        Options {
            setup_timeout: Some(Duration::from_secs(60)),
            teardown_timeout: Some(Duration::from_secs(60)),
            max_redirects: Some(10),
            batch: Some(20),
            batch_per_host: Some(6),
            summary_trend_stats: Some(TREND_STATS.to_vec()),
            system_tags: Some(SYSTEM_TAGS.iter().map(ToString::to_string).collect()),
            ..Options::default()
        }
    }

    /// Reads the options that a script exports, or a file of options.
    #[must_use]
    pub fn read(value: &Value) -> Read {
        let Value::Object(fields) = value else {
            let what = format!("expected an object, found {}", table::kind(value));
            let faults = vec![OptionFault { option: "options".to_owned(), what }];
            return Read { faults, ..Read::default() };
        };
        let mut faults = Vec::new();
        let mut table = Table::new(fields, String::new(), &mut faults);
        let options = Options::take(&mut table);
        let mut ignored = Vec::new();
        for (option, hint) in table.unread() {
            let is_known = IGNORED.contains(&option.as_str());
            let what =
                if is_known { "Plimsoll does without it".to_owned() } else { format!("there is no such option{hint}") };
            ignored.push(OptionFault { option, what });
        }
        Read { options, faults, ignored }
    }

    /// Reads texts, each with how it is called where it comes from: `("vus", "--vus", "10")`. Stages
    /// are `10s:5,1m:20`, lists have commas.
    #[must_use]
    pub fn from_texts<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Read {
        let mut read = Read::default();
        for (name, called, text) in texts {
            let mut one = Options::read(&Value::Object([(name.to_owned(), Value::from(text))].into_iter().collect()));
            one.faults.iter_mut().for_each(|fault| called.clone_into(&mut fault.option));
            read.options.fill(one.options);
            read.faults.append(&mut one.faults);
        }
        read
    }

    /// Reads the variables `K6_VUS`, `K6_BATCH_PER_HOST` and so on, which `get` looks up.
    #[must_use]
    pub fn from_environment(get: impl Fn(&str) -> Option<String>) -> Read {
        let names = Options::NAMES.iter().map(|name| (*name, variable(name)));
        let set: Vec<_> =
            names.filter_map(|(name, variable)| get(&variable).map(|text| (name, variable, text))).collect();
        Options::from_texts(set.iter().map(|(name, variable, text)| (*name, variable.as_str(), text.as_str())))
    }

    /// These options, and where they are silent those of a lower level. Whoever says how much load
    /// there is says all of it: duration, iterations, stages and scenarios come from one level.
    #[must_use]
    pub fn over(mut self, mut lower: Options) -> Options {
        if self.says_load() {
            (lower.duration, lower.iterations, lower.stages, lower.scenarios) = (None, None, None, None);
        }
        self.fill(lower);
        self
    }

    fn says_load(&self) -> bool {
        self.duration.is_some() || self.iterations.is_some() || self.stages.is_some() || self.scenarios.is_some()
    }
}

/// The variable of an option: `batchPerHost` is `K6_BATCH_PER_HOST`, `noVUConnectionReuse` is
/// `K6_NO_VU_CONNECTION_REUSE`.
fn variable(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut variable = ENVIRONMENT.to_owned();
    for (at, c) in letters.iter().enumerate() {
        let after_small = at > 0 && letters[at - 1].is_ascii_lowercase();
        let before_small = letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
        if at > 0 && c.is_ascii_uppercase() && (after_small || before_small) {
            variable.push('_');
        }
        variable.push(c.to_ascii_uppercase());
    }
    variable
}
