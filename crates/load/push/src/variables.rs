//! The variables of the environment that belong to an output.

use plimsoll_k6_run::duration;
use plimsoll_model::suggestion::did_you_mean;
use std::collections::BTreeMap;
use std::time::Duration;

/// Variables with a prefix, each of which is taken once, and the faults that were found in them.
pub(crate) struct Variables {
    prefix: &'static str,
    /// By the name after the prefix.
    values: BTreeMap<String, String>,
    known: Vec<&'static str>,
    pub(crate) faults: Vec<String>,
}

impl Variables {
    /// The variables of the environment whose names begin with the prefix. Empty ones count as not set.
    pub(crate) fn new(prefix: &'static str, environment: &[(String, String)]) -> Variables {
        let set = environment.iter().filter(|(_, value)| !value.is_empty());
        let own = set.filter_map(|(name, value)| Some((name.strip_prefix(prefix)?.to_owned(), value.clone())));
        Variables { prefix, values: own.collect(), known: Vec::new(), faults: Vec::new() }
    }

    pub(crate) fn take(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        self.values.remove(name)
    }

    pub(crate) fn duration(&mut self, name: &'static str) -> Option<Duration> {
        let text = self.take(name)?;
        let read = duration::parse(&text).filter(|time| !time.is_zero());
        if read.is_none() {
            self.fault(name, &format!("expected a time above 0 such as `5s`, found `{text}`"));
        }
        read
    }

    /// True if the variable says so.
    pub(crate) fn flag(&mut self, name: &'static str) -> bool {
        self.choice(name, false)
    }

    /// The value of the variable, else `default`.
    pub(crate) fn choice(&mut self, name: &'static str, default: bool) -> bool {
        let Some(text) = self.take(name) else { return default };
        match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
            "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
            _ => {
                self.fault(name, &format!("expected `true` or `false`, found `{text}`"));
                default
            }
        }
    }

    /// The variables with a second prefix, by the name after it.
    pub(crate) fn take_all(&mut self, prefix: &str) -> Vec<(String, String)> {
        let (own, others) =
            std::mem::take(&mut self.values).into_iter().partition(|(name, _)| name.starts_with(prefix));
        self.values = others;
        let own: BTreeMap<String, String> = own;
        own.into_iter().map(|(name, value)| (name[prefix.len()..].to_owned(), value)).collect()
    }

    /// Refuses variables that k6 has and this output has not.
    pub(crate) fn refuse(&mut self, names: &[&'static str], why: &str) {
        for name in names {
            if self.take(name).is_some() {
                self.fault(name, &format!("this is not supported: {why}"));
            }
        }
    }

    pub(crate) fn fault(&mut self, name: &str, why: &str) {
        self.faults.push(format!("`{}{name}`: {why}", self.prefix));
    }

    /// The faults, with one for each variable that nobody took.
    pub(crate) fn finish(mut self) -> Vec<String> {
        for name in std::mem::take(&mut self.values).into_keys() {
            let hint = did_you_mean(&name, self.known.iter().copied());
            let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            self.fault(&name, &format!("the output knows no such variable{hint}"));
        }
        self.faults
    }
}
