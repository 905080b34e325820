//! Texts with values in them: compiled into pieces once, written for each request.

use super::uuid::{MessageNumber, random_uuid};
use super::value::{Value, ValueView};
use plimsoll_engine::protocol::Failure;
use plimsoll_feed::Table;
use plimsoll_model::record::ErrorKind;
use plimsoll_web::{form, percent};
use std::io::Write as _;
use std::ops::Range;

/// The source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueRef {
    /// A value that the user keeps, by its slot.
    Kept(u16),
    /// A cell in the user's row of a feed.
    Cell {
        feed: u16,
        column: u16,
        /// The index of its name among the flow's names.
        name: u16,
    },
    User,
    Iteration,
    Uuid,
    Now,
    /// The number of what the request carries, by which deliveries are known.
    Message,
}

/// How a value is encoded, so that its place does not change its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// As it is.
    Plain,
    /// As it is, in a path: it must have no characters that a path cannot have.
    Link,
    /// In a path or query.
    Component,
    /// In a form.
    Form,
    /// Between the quotes of a string of JSON.
    InString,
    /// As a value of JSON.
    Json,
    /// In a header.
    Line,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Fixed bytes: a range of the pool.
    Bytes(Range<usize>),
    /// A value.
    Value(ValueRef, Encoding),
    /// The length of the body.
    Length,
    /// The line with the user's cookies, if it has any for this path.
    Cookies,
    /// User and password in the form of basic authentication, by their number.
    Basic(u16),
}

/// A text with values in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Template(pub(super) Box<[Piece]>);

/// A template while it is compiled.
#[derive(Debug, Default)]
pub(super) struct Draft(Vec<Part>);

#[derive(Debug)]
enum Part {
    Bytes(Vec<u8>),
    Piece(Piece),
}

impl Draft {
    /// Appends bytes. They join the bytes before them, if any.
    pub(super) fn literal(&mut self, bytes: impl AsRef<[u8]>) {
        match self.0.last_mut() {
            Some(Part::Bytes(before)) => before.extend_from_slice(bytes.as_ref()),
            _ => self.0.push(Part::Bytes(bytes.as_ref().to_vec())),
        }
    }

    pub(super) fn piece(&mut self, piece: Piece) {
        self.0.push(Part::Piece(piece));
    }

    /// Its length in bytes, if it has no values.
    pub(super) fn length(&self) -> Option<usize> {
        match &*self.0 {
            [] => Some(0),
            [Part::Bytes(bytes)] => Some(bytes.len()),
            _ => None,
        }
    }

    /// Appends the bytes to the pool of all templates, and returns the template.
    pub(super) fn finish(self, pool: &mut Vec<u8>) -> Template {
        let pieces = self.0.into_iter().map(|part| match part {
            Part::Bytes(bytes) => {
                let start = pool.len();
                pool.extend_from_slice(&bytes);
                Piece::Bytes(start..pool.len())
            }
            Part::Piece(piece) => piece,
        });
        Template(pieces.collect())
    }
}

impl Template {
    /// True if it has no values.
    pub(super) fn is_fixed(&self) -> bool {
        self.0.iter().all(|piece| matches!(piece, Piece::Bytes(_)))
    }

    /// True if it begins with a captured link.
    pub(super) fn begins_with_link(&self) -> bool {
        matches!(self.0.first(), Some(Piece::Value(_, Encoding::Link)))
    }

    /// The length of its fixed bytes.
    pub(super) fn fixed_length(&self) -> usize {
        self.0.iter().map(|piece| if let Piece::Bytes(range) = piece { range.len() } else { 0 }).sum()
    }
}

/// The values of a user and its surroundings, from which templates are written.
pub(super) struct TemplateContext<'a> {
    pub(super) pool: &'a [u8],
    pub(super) names: &'a [String],
    pub(super) tables: &'a [Table],
    pub(super) values: &'a [Value],
    /// The row of each feed.
    pub(super) rows: &'a [u32],
    /// The user's number and that of its iteration, from 1.
    pub(super) user: u64,
    pub(super) iteration: u64,
    /// Milliseconds since 1970.
    pub(super) now: i64,
    /// The seed of the UUIDs of this request.
    pub(super) uuids: u128,
    /// The number of what it carries.
    pub(super) message: MessageNumber,
}

impl<'a> TemplateContext<'a> {
    /// The value of a reference. A UUID and the number of a message have none until they are written.
    pub(super) fn view(&self, place: ValueRef) -> ValueView<'a> {
        match place {
            ValueRef::Kept(slot) => self.values[slot as usize].view(),
            ValueRef::Cell { feed, column, .. } => {
                let row = self.rows[feed as usize];
                if row == u32::MAX {
                    return ValueView::Absent;
                }
                ValueView::of_cell(self.tables[feed as usize].cell(row as usize, column as usize))
            }
            ValueRef::User => ValueView::Integer(self.user as i64),
            ValueRef::Iteration => ValueView::Integer(self.iteration as i64),
            ValueRef::Now => ValueView::Integer(self.now),
            ValueRef::Uuid | ValueRef::Message => ValueView::Absent,
        }
    }

    /// Checks that a template can be written: all its values are present, and fit their encoding.
    pub(super) fn check(&self, template: &Template) -> Result<(), Failure> {
        template.0.iter().try_for_each(|piece| match piece {
            Piece::Value(place, encoding) => self.check_value(*place, *encoding),
            Piece::Bytes(_) | Piece::Length | Piece::Cookies | Piece::Basic(_) => Ok(()),
        })
    }

    pub(super) fn check_value(&self, place: ValueRef, encoding: Encoding) -> Result<(), Failure> {
        let fits = |fit: fn(char) -> bool| self.view(place).text().chars().all(fit);
        match encoding {
            _ if matches!(place, ValueRef::Uuid | ValueRef::Message) => Ok(()),
            _ if self.view(place) == ValueView::Absent => Err(self.absent(place)),
            Encoding::Link if !fits(|c| c.is_ascii_graphic()) => {
                Err(self.unfit(place, "a link without spaces, control characters and letters beyond ASCII"))
            }
            Encoding::Line if !fits(|c| !c.is_control() || c == '\t') => {
                Err(self.unfit(place, "one line, as it is part of a header"))
            }
            _ => Ok(()),
        }
    }

    /// Writes a checked template of bytes and values. Only the heads of requests have other pieces.
    pub(super) fn write(&mut self, template: &Template, out: &mut Vec<u8>) {
        for piece in &*template.0 {
            match piece {
                Piece::Bytes(range) => out.extend_from_slice(&self.pool[range.clone()]),
                Piece::Value(place, encoding) => self.write_value(*place, *encoding, out),
                Piece::Length | Piece::Cookies | Piece::Basic(_) => unreachable!("only heads of requests have these"),
            }
        }
    }

    /// Checks a template, and returns its text.
    pub(super) fn render(&mut self, template: &Template) -> Result<Vec<u8>, Failure> {
        self.check(template)?;
        let mut out = Vec::new();
        self.write(template, &mut out);
        Ok(out)
    }

    pub(super) fn write_value(&mut self, place: ValueRef, encoding: Encoding, out: &mut Vec<u8>) {
        let uuid;
        let view = match place {
            ValueRef::Uuid => {
                uuid = random_uuid(self.uuids);
                self.uuids = self.uuids.wrapping_add(1);
                ValueView::Text(&uuid)
            }
            ValueRef::Message => {
                uuid = self.message.to_string();
                ValueView::Text(&uuid)
            }
            place => self.view(place),
        };
        match (view, encoding) {
            (ValueView::Integer(number), _) => drop(write!(out, "{number}")),
            (view, Encoding::Json) => {
                let mut json = String::new();
                view.write_json(&mut json);
                out.extend_from_slice(json.as_bytes());
            }
            (view, encoding) => write_text(&view.text(), encoding, out),
        }
    }

    fn absent(&self, place: ValueRef) -> Failure {
        let name = self.name(place);
        Failure::new(ErrorKind::Capture, format!("expected a value for `{{${name}}}`, found none captured so far"))
    }

    fn unfit(&self, place: ValueRef, expected: &str) -> Failure {
        let (name, text) = (self.name(place), excerpt(self.view(place).text().as_bytes()));
        Failure::new(ErrorKind::Capture, format!("expected `{{${name}}}` to be {expected}, found `{text}`"))
    }

    /// The name of a value in the study, without `$`.
    pub(super) fn name(&self, place: ValueRef) -> &str {
        match place {
            ValueRef::Kept(name) | ValueRef::Cell { name, .. } => &self.names[name as usize],
            ValueRef::User => "user",
            ValueRef::Iteration => "iteration",
            ValueRef::Uuid => "uuid",
            ValueRef::Now => "now",
            ValueRef::Message => "message",
        }
    }
}

fn write_text(text: &str, encoding: Encoding, out: &mut Vec<u8>) {
    match encoding {
        Encoding::Component => percent::component(text).for_each(|part| out.extend_from_slice(part.as_bytes())),
        Encoding::Form => form::write(text, out),
        Encoding::InString => {
            let quoted = serde_json::Value::from(text).to_string();
            out.extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
        }
        Encoding::Plain | Encoding::Link | Encoding::Line | Encoding::Json => out.extend_from_slice(text.as_bytes()),
    }
}

/// The most bytes of a body or value in an error message.
pub(super) const LONGEST_EXCERPT: usize = 300;

/// The beginning of a text, in one line, for error messages.
pub fn excerpt(bytes: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_EXCERPT)]);
    let more = if bytes.len() > LONGEST_EXCERPT { "…" } else { "" };
    let mut text = String::new();
    for c in shown.chars() {
        if c.is_control() { text.extend(c.escape_debug()) } else { text.push(c) }
    }
    text + more
}
