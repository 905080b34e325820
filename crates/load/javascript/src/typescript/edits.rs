//! The text of a module while its types are removed: characters that give way to spaces, and code that is put between
//! them.

use oxc_span::Span;
use std::collections::BTreeMap;

/// A module as JavaScript.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stripped {
    pub(crate) code: String,
    /// What was put between the characters of the source, in the order of the text.
    pub(crate) inserted: Vec<Inserted>,
}

/// A piece of code that is not in the source. It has no line break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// Its offset in the code.
    pub(crate) at: usize,
    /// How many bytes it has.
    pub(crate) length: usize,
}

/// The mark of a byte that stays as it is; any other mark is the character that takes its place.
const KEEP: u8 = 0;

pub(super) struct Edits<'a> {
    pub(super) source: &'a str,
    /// A mark for each byte of the source. The mark of its first byte decides what becomes of a character.
    marks: Vec<u8>,
    /// What is put before a byte of the source.
    inserted: BTreeMap<usize, String>,
}

impl<'a> Edits<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self { source, marks: vec![KEEP; source.len()], inserted: BTreeMap::new() }
    }

    pub(super) fn stripped(mut self) -> Stripped {
        let mut stripped = Stripped { code: String::with_capacity(self.source.len()), inserted: Vec::new() };
        for (at, char) in self.source.char_indices() {
            self.insert_into(&mut stripped, at);
            stripped.code.push(match self.marks[at] {
                KEEP => char,
                _ if matches!(char, '\n' | '\r' | '\u{2028}' | '\u{2029}') => char,
                mark => char::from(mark),
            });
        }
        self.insert_into(&mut stripped, self.source.len());
        stripped
    }

    fn insert_into(&mut self, stripped: &mut Stripped, at: usize) {
        if let Some(text) = self.inserted.remove(&at) {
            stripped.inserted.push(Inserted { at: stripped.code.len(), length: text.len() });
            stripped.code.push_str(&text);
        }
    }

    /// Puts code before an offset of the source, and behind what was put there before.
    pub(super) fn insert(&mut self, at: u32, code: &str) {
        self.inserted.entry(at as usize).or_default().push_str(code);
    }

    pub(super) fn blank(&mut self, span: Span) {
        self.marks[span.start as usize..span.end as usize].fill(b' ');
    }

    /// Removes a statement or member. A semicolon keeps the lines around it apart.
    pub(super) fn blank_statement(&mut self, span: Span) {
        self.blank(span);
        self.replace(span.start, b';');
    }

    /// Puts a character in the place of another.
    pub(super) fn replace(&mut self, at: u32, by: u8) {
        self.marks[at as usize] = by;
    }

    /// The source from one offset to another.
    pub(super) fn between(&self, from: u32, to: u32) -> &'a str {
        &self.source[from as usize..to.max(from) as usize]
    }

    /// Removes the first `word` between two offsets.
    pub(super) fn blank_word(&mut self, from: u32, to: u32, word: &str) {
        if let Some(at) = self.between(from, to).find(word) {
            let start = from + at as u32;
            self.blank(Span::new(start, start + word.len() as u32));
        }
    }

    /// Removes an item of a list, with the comma behind it.
    pub(super) fn blank_item(&mut self, span: Span) {
        let comma = self.comma_behind(span.end).map_or(span.end, |comma| comma + 1);
        self.blank(Span::new(span.start, comma));
    }

    /// The offset of the comma that follows, after spaces.
    pub(super) fn comma_behind(&self, end: u32) -> Option<u32> {
        let rest = &self.source[end as usize..];
        let gap = rest.len() - rest.trim_start().len();
        rest[gap..].starts_with(',').then_some(end + gap as u32)
    }

    /// Removes the text behind an expression (`as T`). A next line that begins like arguments or an index is a statement of
    /// its own in TypeScript, and needs a semicolon.
    pub(super) fn blank_after(&mut self, expression: Span, whole: Span) {
        self.blank(Span::new(expression.end, whole.end));
        let rest = &self.source[whole.end as usize..];
        let next = rest.trim_start();
        let on_next_line = rest[..rest.len() - next.len()].contains('\n');
        if on_next_line && next.starts_with(['(', '[', '`']) {
            self.replace(whole.end - 1, b';');
        }
    }
}
