//! Options: from the script, a file, the environment and the command line, in ascending precedence,
//! and the scenarios that they describe.

mod derive;
mod fields;
mod scenarios;
mod table;
#[cfg(test)]
mod tests;
mod tls_versions;

pub use derive::{Derived, no_such_function};
pub use tls_versions::TlsVersions;

use crate::metrics::Aggregation;
use crate::scenario::{Scenario, Stage};
use crate::threshold::Threshold;
use serde_json::Value;
use std::fmt;
use std::time::Duration;
use table::{Field, Table};

/// The prefix of options in the environment.
const ENVIRONMENT: &str = "K6_";

/// Options of k6 without which the same is sent.
const IGNORED: [&str; 8] =
    ["cloud", "ext", "dns", "metricSamplesBufferSize", "linger", "noUsageReport", "logOutput", "collectors"];

/// Options of k6 that would change what is sent, or when. They are refused, since a load without them is another one.
const REFUSED: [&str; 6] =
    ["paused", "localIPs", "executionSegment", "executionSegmentSequence", "tlsAuth", "tlsCipherSuites"];

/// The default system tags of samples. They have columns in CSV.
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

/// The default aggregations of trends in summaries.
pub const TREND_STATS: [Aggregation; 6] = [
    Aggregation::Avg,
    Aggregation::Min,
    Aggregation::Med,
    Aggregation::Max,
    Aggregation::Percentile(90.0),
    Aggregation::Percentile(95.0),
];

/// A fault of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionFault {
    /// The option: `scenarios.login.vus`, `K6_VUS`, `--vus`.
    pub option: String,
    /// The expected and the found value.
    pub what: String,
}

/// Options that were read, with their faults and those that were ignored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// The options without faults.
    pub options: Options,
    /// The faults.
    pub faults: Vec<OptionFault>,
    /// Options that have no effect.
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

            /// The options as scripts see them; `null` for those that are not set.
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
    /// The number of users.
    vus: u64 = "vus",
    /// The duration.
    duration: Duration = "duration",
    /// The number of iterations of all users.
    iterations: u64 = "iterations",
    /// Ramps of the number of users.
    stages: Vec<Stage> = "stages",
    /// Scenarios, in the order of their names.
    scenarios: Vec<Scenario> = "scenarios",
    /// Thresholds by selector.
    thresholds: Vec<(String, Vec<Threshold>)> = "thresholds",
    /// Tags of all samples.
    tags: Vec<(String, String)> = "tags",
    /// The timeout of `setup`.
    setup_timeout: Duration = "setupTimeout",
    /// The timeout of `teardown`.
    teardown_timeout: Duration = "teardownTimeout",
    /// True to skip `setup`.
    no_setup: bool = "noSetup",
    /// True to skip `teardown`.
    no_teardown: bool = "noTeardown",
    /// The most requests a second of all users.
    rps: u64 = "rps",
    /// The most redirects that are followed.
    max_redirects: u64 = "maxRedirects",
    /// The header `User-Agent`.
    user_agent: String = "userAgent",
    /// The most requests of a batch at once.
    batch: u64 = "batch",
    /// The most of them to one host.
    batch_per_host: u64 = "batchPerHost",
    /// True to accept any certificate.
    insecure_skip_tls_verify: bool = "insecureSkipTLSVerify",
    /// The versions of TLS that are offered.
    tls_version: TlsVersions = "tlsVersion",
    /// True to open a connection for each request.
    no_connection_reuse: bool = "noConnectionReuse",
    /// True to close connections after each iteration.
    no_vu_connection_reuse: bool = "noVUConnectionReuse",
    /// The least duration of an iteration.
    min_iteration_duration: Duration = "minIterationDuration",
    /// True if a failed request throws.
    throw: bool = "throw",
    /// True to discard the bodies of responses.
    discard_response_bodies: bool = "discardResponseBodies",
    /// The aggregations of trends in the summary.
    summary_trend_stats: Vec<Aggregation> = "summaryTrendStats",
    /// The unit of times in the summary: `s`, `ms` or `us`.
    summary_time_unit: TimeUnit = "summaryTimeUnit",
    /// The system tags of samples.
    system_tags: Vec<String> = "systemTags",
    /// What the console shows of requests and responses: their heads, or with `full` their bodies too.
    http_debug: String = "httpDebug",
    /// True to keep cookies from one iteration to the next.
    no_cookies_reset: bool = "noCookiesReset",
    /// Addresses by host, which take precedence over the DNS.
    hosts: Vec<(String, String)> = "hosts",
    /// Hosts to which nothing is sent: `*.example.org`.
    block_hostnames: Vec<String> = "blockHostnames",
    /// Ranges of addresses to which nothing is sent: `10.0.0.0/8`.
    blacklist_ips: Vec<String> = "blacklistIPs",
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
    /// The defaults.
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
        for name in REFUSED {
            if fields.get(name).is_some_and(is_set) {
                table.fault(name, "Plimsoll has no such option, and without it the load would be another one");
            }
        }
        if fields.get("dns").and_then(|dns| dns.get("policy")).is_some_and(|policy| *policy != "preferIPv4") {
            table.fault("dns.policy", "expected `preferIPv4`: Plimsoll has no other policy");
        }
        let mut ignored = Vec::new();
        for (option, hint) in table.unread() {
            if REFUSED.contains(&option.as_str()) {
                continue;
            }
            let is_known = IGNORED.contains(&option.as_str());
            let what =
                if is_known { "Plimsoll does without it".to_owned() } else { format!("there is no such option{hint}") };
            ignored.push(OptionFault { option, what });
        }
        Read { options, faults, ignored }
    }

    /// Reads texts, each with the name of the option and its name at the source: `("vus", "--vus", "10")`.
    /// Stages are `10s:5,1m:20`; lists are separated by commas, tags (`team=shop`) by line breaks.
    #[must_use]
    pub fn from_texts<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Read {
        let mut read = Read::default();
        for (name, called, text) in texts {
            let mut one = Options::read(&Value::Object([(name.to_owned(), Value::from(text))].into_iter().collect()));
            one.faults.iter_mut().chain(&mut one.ignored).for_each(|fault| called.clone_into(&mut fault.option));
            read.options.fill(one.options);
            read.faults.append(&mut one.faults);
            read.ignored.append(&mut one.ignored);
        }
        read
    }

    /// Reads the variables `K6_VUS`, `K6_BATCH_PER_HOST` and so on, which `get` looks up.
    #[must_use]
    pub fn from_environment(get: impl Fn(&str) -> Option<String>) -> Read {
        let names = Options::NAMES.iter().chain(&REFUSED).chain(&IGNORED).map(|name| (*name, variable(name)));
        let text = |(name, variable): (&'static str, String)| {
            let text = in_lines(name, get(&variable)?);
            Some((name, variable, text))
        };
        let set: Vec<_> = names.filter_map(text).collect();
        Options::from_texts(set.iter().map(|(name, variable, text)| (*name, variable.as_str(), text.as_str())))
    }

    /// Fills in options of a lower level. Duration, iterations, stages and scenarios come from one level:
    /// the highest that sets any of them.
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

/// The text of a variable. Tags are `team:shop,tier=1` there, and lines elsewhere.
fn in_lines(name: &str, text: String) -> String {
    if name != "tags" {
        return text;
    }
    let pair = |pair: &str| match pair.find([':', '=']) {
        Some(at) => format!("{}={}", &pair[..at], &pair[at + 1..]),
        None => pair.to_owned(),
    };
    text.split(',').map(pair).collect::<Vec<_>>().join("\n")
}

/// False for a value that stands for none.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !matches!(text.as_str(), "" | "false" | "0"),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

/// The variable of an option: `batchPerHost` is `K6_BATCH_PER_HOST`, `noVUConnectionReuse` is
/// `K6_NO_VU_CONNECTION_REUSE`.
fn variable(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut variable = ENVIRONMENT.to_owned();
    for (at, c) in letters.iter().enumerate() {
        let after_small = at > 0 && letters[at - 1].is_ascii_lowercase();
        // The plural of an abbreviation is one word: `blacklistIPs` is `K6_BLACKLIST_IPS`.
        let before_small = letters.get(at + 1..at + 3).is_some_and(|next| next.iter().all(char::is_ascii_lowercase));
        if at > 0 && c.is_ascii_uppercase() && (after_small || before_small) {
            variable.push('_');
        }
        variable.push(c.to_ascii_uppercase());
    }
    variable
}
