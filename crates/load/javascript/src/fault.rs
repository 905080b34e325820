//! Faults of a script before it runs, and exceptions while it runs, with their place if they have one.

use std::fmt;

/// A place in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The path of the module: that of the script as it was given, others relative to it.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The line; empty if unknown.
    pub text: String,
}

impl Place {
    /// The place of the byte `offset` of `source`.
    #[must_use]
    pub fn in_text(file: &str, source: &str, offset: usize) -> Self {
        let mut offset = offset.min(source.len());
        while !source.is_char_boundary(offset) {
            offset -= 1;
        }
        let start = source[..offset].rfind('\n').map_or(0, |at| at + 1);
        let line = source[..start].matches('\n').count() + 1;
        let column = source[start..offset].chars().count() + 1;
        let text = source[start..].lines().next().unwrap_or_default();
        Self { file: file.to_owned(), line, column, text: text.to_owned() }
    }

    /// The line with a mark under the place. A long line is cut to the part around it.
    #[must_use]
    pub fn drawn(&self) -> String {
        const WIDTH: usize = 120;
        let skipped = (self.column - 1).saturating_sub(WIDTH / 2);
        let (first, last) = (skipped, skipped + WIDTH - 1);
        let goes_on = self.text.chars().nth(last + 1).is_some();
        let is_cut = |at: usize| at == first && skipped > 0 || at == last && goes_on;
        let near = self.text.chars().enumerate().skip(skipped).take(WIDTH);
        let near: String = near.map(|(at, char)| if is_cut(at) { '…' } else { char }).collect();
        // Tabs stay tabs, so the mark stands under the place in any terminal.
        let ahead = near.chars().take(self.column - 1 - skipped);
        let indent: String = ahead.map(|char| if char == '\t' { '\t' } else { ' ' }).collect();
        let (number, margin) = (self.line, " ".repeat(self.line.to_string().len()));
        format!("{number} | {near}\n{margin} | {indent}^\n")
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Why a script cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its place; None if the file as a whole cannot be read.
    pub place: Option<Place>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The imports that led to the module.
    pub imported_at: Box<ImportChain>,
}

/// The places of imports that led to a module, from the nearest one up to the script itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportChain(pub Vec<Place>);

impl Fault {
    pub(crate) fn new(place: Option<Place>, message: String) -> Self {
        Self { place, message, help: None, imported_at: Box::default() }
    }

    /// The fault, with the line and a mark under the place, and the imports that led there.
    #[must_use]
    pub fn render(&self) -> String {
        let drawn = self.place.as_ref().map(Place::drawn).unwrap_or_default();
        format!("{self}\n{drawn}{}", self.imported_at)
    }
}

impl fmt::Display for ImportChain {
    /// A line each: `imported at load.js:3:7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|place| writeln!(f, "imported at {place}"))
    }
}

impl fmt::Display for Fault {
    /// One line: `load.js:3:7: unexpected token; …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.message)?;
        self.help.iter().try_for_each(|help| write!(f, "; {help}"))
    }
}

/// An uncaught exception of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// `String(error)`: `TypeError: not a function`.
    pub message: String,
    /// The place in the script's own code where it was thrown; None for values other than `Error`.
    pub place: Option<Place>,
    /// The stack of calls, a line each, as the engine writes it; empty for values other than `Error`.
    pub stack: String,
}

impl Exception {
    /// The exception, with the line and a mark under the place, and the stack of calls.
    #[must_use]
    pub fn render(&self) -> String {
        let drawn = self.place.as_ref().map(Place::drawn).unwrap_or_default();
        format!("{self}\n{drawn}{}", self.stack).trim_end().to_owned()
    }
}

impl fmt::Display for Exception {
    /// One line: `TypeError: not a function (load.js:3:7)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.place.iter().try_for_each(|place| write!(f, " ({place})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_characters_and_knows_its_line() {
        let source = "one\nzwölf = ;\r\nthree";
        let place = Place::in_text("load.js", source, source.find(';').expect("it is there"));
        assert_eq!(place.to_string(), "load.js:2:9");
        assert_eq!(place.text, "zwölf = ;");
        assert_eq!(place.drawn(), "2 | zwölf = ;\n  |         ^\n");
    }

    #[test]
    fn the_end_of_a_text_is_a_place() {
        let place = Place::in_text("load.js", "a\n", 99);
        assert_eq!((place.line, place.column, place.text.as_str()), (2, 1, ""));
    }

    #[test]
    fn of_a_long_line_what_is_near_is_shown() {
        let source = format!("{}!{}", "a".repeat(5000), "b".repeat(5000));
        let drawn = Place::in_text("min.js", &source, 5000).drawn();
        let lines: Vec<&str> = drawn.lines().collect();
        let at = |line: &str, mark| line.chars().position(|char| char == mark);
        assert_eq!(lines[0].chars().count(), 124);
        assert_eq!(at(lines[0], '!'), at(lines[1], '^'));
        assert!(lines[0].starts_with("1 | …a") && lines[0].ends_with("b…"), "{}", lines[0]);
    }
}
