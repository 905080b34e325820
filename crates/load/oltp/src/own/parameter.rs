//! What the parameters of a transaction are, each time anew.

use super::feed::Feed;
use crate::distribution::{Numbers, letters};
use crate::terminal::Draw;
use plimsoll_model::sql::Parameter;
use plimsoll_sql::Value;

/// Where the value of a parameter comes from.
pub(super) enum Source {
    Number(Numbers),
    /// So many letters and digits.
    Text(u32),
    Constant(String),
    /// Another parameter of the transaction, from 0.
    Same(usize),
    /// A column of a feed.
    Feed {
        feed: usize,
        column: usize,
    },
}

/// The values of one transaction.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// A number or a text for each parameter that is drawn.
    drawn: Vec<(i64, String)>,
    /// The row of each feed.
    rows: Vec<usize>,
}

impl Source {
    /// `number` is that of the parameter in its transaction, from 1. Feeds that are not known yet are
    /// read.
    pub(super) fn new(parameter: &Parameter, number: usize, feeds: &mut Vec<Feed>) -> Result<Source, String> {
        Ok(match parameter {
            Parameter::Number { low, high, distribution } => {
                Source::Number(Numbers::of_study(*low, *high, *distribution)?)
            }
            Parameter::Text(length) => Source::Text(*length),
            Parameter::Constant(text) => Source::Constant(text.clone()),
            Parameter::Same(other) => {
                let before = number - 1;
                let other = usize::try_from(*other).unwrap_or(usize::MAX);
                if other == 0 || other > before {
                    return Err(format!("expected one of the {before} parameters before it, found number {other}"));
                }
                Source::Same(other - 1)
            }
            Parameter::Feed { file, column } => {
                let feed = match feeds.iter().position(|feed| feed.file() == *file) {
                    Some(known) => known,
                    None => {
                        feeds.push(Feed::read(file)?);
                        feeds.len() - 1
                    }
                };
                Source::Feed { feed, column: feeds[feed].column(column)? }
            }
        })
    }
}

impl Values {
    /// Draws the values of a transaction. Columns of a feed come from one row.
    pub(super) fn draw(&mut self, sources: &[Source], feeds: &[Feed], draw: &mut dyn Draw) {
        self.drawn.resize_with(self.drawn.len().max(sources.len()), Default::default);
        self.rows.resize(feeds.len(), usize::MAX);
        self.rows.fill(usize::MAX);
        for (source, (number, text)) in sources.iter().zip(&mut self.drawn) {
            match source {
                Source::Number(numbers) => *number = numbers.draw(draw),
                Source::Text(length) => {
                    text.clear();
                    letters(text, *length, draw);
                }
                Source::Feed { feed, .. } if self.rows[*feed] == usize::MAX => self.rows[*feed] = feeds[*feed].take(),
                Source::Feed { .. } | Source::Constant(_) | Source::Same(_) => {}
            }
        }
    }

    /// The value of a parameter.
    pub(super) fn get<'a>(&'a self, number: usize, sources: &'a [Source], feeds: &'a [Feed]) -> Value<'a> {
        match &sources[number] {
            Source::Number(_) => Value::Int(self.drawn[number].0),
            Source::Text(_) => Value::Text(&self.drawn[number].1),
            Source::Constant(text) => Value::Text(text),
            Source::Same(other) => self.get(*other, sources, feeds),
            Source::Feed { feed, column } => Value::Text(feeds[*feed].cell(self.rows[*feed], *column)),
        }
    }
}
