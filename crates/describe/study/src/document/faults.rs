//! Collects every fault of a study file, each once.

use super::diagnostic::{Diagnostic, Fault, Severity, Source, Span};
use plimsoll_model::words::{and_list, or_list, quoted};

/// The faults found so far.
#[derive(Debug)]
pub(crate) struct Faults {
    source: Source,
    found: Vec<Fault>,
    /// Places that are no TOML; empty in a well-formed file.
    unreadable: Vec<Span>,
}

impl Faults {
    pub(crate) fn new(source: Source) -> Faults {
        Faults { source, found: Vec::new(), unreadable: Vec::new() }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn add(&mut self, fault: Fault) {
        let known = |old: &Fault| old.span == fault.span && old.message == fault.message;
        let guessed = self.unreadable.iter().any(|span| self.on_one_line(span, &fault.span));
        if !guessed && !self.found.iter().any(known) {
            self.found.push(fault);
        }
    }

    /// Adds a fault of syntax. Other faults on its line are consequences, and are not reported.
    pub(crate) fn add_syntax(&mut self, fault: Fault) {
        let span = fault.span.clone();
        self.add(fault);
        self.unreadable.push(span);
    }

    /// Returns true if the whole file is TOML. If not, what seems to be missing may stand in the part
    /// that could not be read.
    pub(crate) fn well_formed(&self) -> bool {
        self.unreadable.is_empty()
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.found.iter().any(|fault| fault.severity == Severity::Error)
    }

    /// In the order of the file.
    pub(crate) fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|fault| fault.span.start);
        self.found.into_iter().map(|fault| self.source.diagnostic(fault)).collect()
    }

    fn on_one_line(&self, one: &Span, other: &Span) -> bool {
        let (from, to) = (one.start.min(other.start), one.start.max(other.start));
        self.source.text().get(from..to).is_some_and(|between| !between.contains('\n'))
    }
}

/// `did you mean …?` for the candidate nearest to `word`, if there is one.
pub(crate) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// The fault for a `name` at `span` that nothing of this kind has.
pub(crate) fn unknown<'a>(kind: &str, name: &str, known: impl IntoIterator<Item = &'a str>, span: &Span) -> Fault {
    let known: Vec<&str> = known.into_iter().collect();
    let help = did_you_mean(name, known.iter().copied()).unwrap_or_else(|| format!("{kind}s are {}", one_of(known)));
    Fault::error(span, format!("no {kind} is named `{name}`")).help(help)
}

/// The candidate nearest to `word`, if one is near enough to be a slip.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_of(word, &mut candidates.into_iter())
}

fn nearest_of<'a>(word: &str, candidates: &mut dyn Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let scored = candidates.map(|candidate| (score(&word, &candidate.to_lowercase()), candidate));
    let (score, candidate) = scored.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (score > 0.0).then_some(candidate)
}

/// How near two words are, 0 for too far: few edits for their length, or one the start of the
/// other.
fn score(word: &str, candidate: &str) -> f64 {
    let edits = strsim::damerau_levenshtein(word, candidate);
    let few = edits <= (word.chars().count().max(candidate.chars().count()) / 3).max(1);
    let start = word.chars().count() >= 3 && (candidate.starts_with(word) || word.starts_with(candidate));
    if few || start { strsim::jaro_winkler(word, candidate) } else { 0.0 }
}

/// `` `a`, `b` or `c` ``, for messages that list what is allowed.
pub(crate) fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    none_if_empty(or_list(quoted(words)))
}

/// `` `a`, `b` and `c` ``, for messages that list what there is.
pub(crate) fn all_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    none_if_empty(and_list(quoted(words)))
}

fn none_if_empty(list: String) -> String {
    if list.is_empty() { "none".to_owned() } else { list }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_anything_else_is_not() {
        let keys = ["users", "rate", "duration", "warmup"];
        for (slip, meant) in [("user", "users"), ("Users", "users"), ("duratoin", "duration"), ("warm_up", "warmup")] {
            assert_eq!(nearest(slip, keys), Some(meant), "{slip}");
        }
        for word in ["x", "colour", "threads", ""] {
            assert_eq!(nearest(word, keys), None, "{word}");
        }
    }

    #[test]
    fn lists_read_as_prose() {
        assert_eq!(one_of(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(all_of(["a", "b"]), "`a` and `b`");
        assert_eq!(one_of(["a"]), "`a`");
    }
}
