//! Paths as steps.

use super::query::Query;
use plimsoll_javascript::busy::spend;

/// One step from a value to a value inside of it.
#[derive(Debug)]
pub(super) struct Step {
    pattern: Pattern,
    /// What it means in an array.
    pub(super) each: Each,
}

/// What a step means in an array.
#[derive(Debug)]
pub(super) enum Each {
    /// Its name as an index.
    Name,
    /// `#`
    All,
    /// `#(query)`
    First(Query),
    /// `#(query)#`
    Matching(Query),
}

/// A name, or a pattern for names.
#[derive(Debug)]
pub(super) struct Pattern(Vec<Part>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Is(char),
    /// `?`
    One,
    /// `*`
    Any,
}

impl Step {
    /// Its name where it is looked up in an object.
    pub(super) fn name(&self) -> Option<&Pattern> {
        matches!(self.each, Each::Name | Each::All).then_some(&self.pattern)
    }

    pub(super) fn index(&self) -> Option<usize> {
        let digit = |part: &Part| if let Part::Is(digit) = part { Some(*digit) } else { None };
        let digits: String = self.pattern.0.iter().map(digit).collect::<Option<_>>()?;
        // `+1` would be read as a number, too.
        digits.starts_with(|c: char| c.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
    }
}

impl Pattern {
    pub(super) fn new(text: &str) -> Pattern {
        let mut rest = text.chars();
        let mut parts = Vec::new();
        while let Some(c) = rest.next() {
            parts.push(match c {
                '\\' => Part::Is(rest.next().unwrap_or('\\')),
                '?' => Part::One,
                '*' => Part::Any,
                other => Part::Is(other),
            });
        }
        // Two stars are one: else a name full of them would be tried in too many ways.
        parts.dedup_by(|a, b| (*a, *b) == (Part::Any, Part::Any));
        Pattern(parts)
    }

    /// True if a text matches the pattern; takes time of the product of their lengths.
    pub(super) fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let (mut at, mut in_text) = (0, 0);
        // Where the last star was, and up to where it reaches by now.
        let mut star: Option<(usize, usize)> = None;
        while in_text < text.len() {
            spend(1);
            match (self.0.get(at), star) {
                (Some(Part::Any), _) => {
                    star = Some((at, in_text));
                    at += 1;
                }
                (Some(part), _) if *part == Part::One || *part == Part::Is(text[in_text]) => {
                    (at, in_text) = (at + 1, in_text + 1);
                }
                (_, Some((star_at, reached))) => {
                    star = Some((star_at, reached + 1));
                    (at, in_text) = (star_at + 1, reached + 1);
                }
                _ => return false,
            }
        }
        self.0[at..].iter().all(|part| *part == Part::Any)
    }
}

/// The most `#` in a path: only they nest, in the path and where it is followed.
const MOST_NESTED: usize = 32;

/// The steps of a path, or the part of it that is not supported.
pub(super) fn parse(path: &str) -> Result<Vec<Step>, &'static str> {
    if path.matches('#').count() > MOST_NESTED {
        return Err("more than 32 of `#`");
    }
    if path.starts_with("..") {
        return Err("`..` for JSON lines");
    }
    let mut steps = Vec::new();
    let mut rest = path;
    loop {
        match rest.chars().next() {
            Some('@') => return Err("a modifier (`@…`)"),
            Some('{' | '[') => return Err("a multipath (`{…}`, `[…]`)"),
            Some('!') => return Err("a literal (`!…`)"),
            _ => {}
        }
        let (step, behind) = if rest.starts_with("#(") || rest.starts_with("#[") {
            query_step(rest)?
        } else {
            let end = end_of_name(rest);
            let each = if &rest[..end] == "#" { Each::All } else { Each::Name };
            (Step { pattern: Pattern::new(&rest[..end]), each }, &rest[end..])
        };
        steps.push(step);
        match behind.chars().next() {
            None => return Ok(steps),
            Some('|') => return Err("a pipe (`|`)"),
            _ => rest = behind.strip_prefix('.').unwrap_or(behind),
        }
    }
}

/// Where a name ends: at a dot or a pipe that no backslash stands before.
fn end_of_name(text: &str) -> usize {
    let mut escaped = false;
    let end = text.find(|c| {
        let ends = !escaped && matches!(c, '.' | '|');
        escaped = !escaped && c == '\\';
        ends
    });
    end.unwrap_or(text.len())
}

/// A step that begins with `#(`.
fn query_step(text: &str) -> Result<(Step, &str), &'static str> {
    let end = end_of_query(&text[1..]).ok_or("a query that does not end")? + 1;
    let query = Query::parse(&text[2..end])?;
    let behind = &text[end + 1..];
    let (each, behind) = match behind.strip_prefix('#') {
        Some(behind) => (Each::Matching(query), behind),
        None => (Each::First(query), behind),
    };
    Ok((Step { pattern: Pattern::new(""), each }, behind))
}

/// Where the bracket closes that the text begins with; brackets in quotes do not count.
fn end_of_query(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    text.char_indices().find_map(|(at, c)| {
        match c {
            _ if escaped => {}
            '"' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth -= 1,
            _ => {}
        }
        escaped = !escaped && c == '\\';
        (depth == 0).then_some(at)
    })
}
