//! Faults of a table: the place, what was expected and found, and a hint.

use std::fmt;

/// A fault that keeps a table from being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line of the file, from 1.
    pub line: u64,
    /// The heading of the column as in the file, where the fault is in a cell.
    pub column: Option<String>,
    /// What was expected, and what was found.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl Fault {
    pub(crate) fn new(line: u64, message: impl Into<String>) -> Fault {
        Fault { line, column: None, message: message.into(), hint: None }
    }

    pub(crate) fn in_column(self, column: &str) -> Fault {
        Fault { column: Some(column.to_owned()), ..self }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Fault {
        Fault { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(column) = &self.column {
            write!(f, ", column `{column}`")?;
        }
        write!(f, ": {}", self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

/// The reason why a cell cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) expected: String,
    pub(crate) hint: Option<String>,
}

impl Unreadable {
    pub(crate) fn expected(what: impl Into<String>) -> Unreadable {
        Unreadable { expected: what.into(), hint: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Unreadable {
        Unreadable { hint: Some(hint.into()), ..self }
    }

    /// The fault of the cell with `text` in it.
    pub(crate) fn at(self, line: u64, column: &str, text: &str) -> Fault {
        let Some((first, _)) = text.split_once(['\n', '\r']) else {
            let fault = Fault::new(line, format!("expected {}, found `{text}`", self.expected)).in_column(column);
            return Fault { hint: self.hint, ..fault };
        };
        let message = format!("expected {}, found several lines that begin with `{first}`", self.expected);
        Fault::new(line, message)
            .in_column(column)
            .with_hint("the quotation mark that opens the cell is not closed on its line: close it, or leave it out")
    }
}

/// The candidate closest to `word`, if it is close enough to be a typo: at most one edit in three
/// letters.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let most = word.chars().count() / 3;
    let near = candidates.into_iter().map(|candidate| (strsim::damerau_levenshtein(&word, candidate), candidate));
    near.filter(|(edits, _)| (1..=most).contains(edits)).min_by_key(|(edits, _)| *edits).map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_says_where_and_what_to_do() {
        let fault = Unreadable::expected("a number").with_hint("write 1300").at(4, "mean", "1,3,00");
        assert_eq!(fault.to_string(), "line 4, column `mean`: expected a number, found `1,3,00`; write 1300");
    }

    #[test]
    fn a_cell_of_several_lines_is_told_in_one() {
        let fault = Unreadable::expected("a number").at(4, "mean", "12,5 ms\nB,13");
        assert_eq!(
            fault.to_string(),
            "line 4, column `mean`: expected a number, found several lines that begin with `12,5 ms`; the quotation mark that \
             opens the cell is not closed on its line: close it, or leave it out"
        );
    }

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        assert_eq!(nearest("medain", ["mean", "median"]), Some("median"));
        assert_eq!(nearest("database", ["data", "rate"]), None);
        assert_eq!(nearest("db", ["sd", "n"]), None);
    }
}
