//! The values of the parameters of a transaction, drawn anew each time.

use super::feed::Feed;
use plimsoll_feed::RandomSource;
use plimsoll_feed::{IntegerSampler, push_alphanumeric};
use plimsoll_model::sql::Parameter;
use plimsoll_sql::Value;

/// Where the value of a parameter comes from.
pub(super) enum Source {
    Number(IntegerSampler),
    /// This many random letters and digits.
    Text(u32),
    Constant(String),
    /// The same value as another parameter of the transaction, counted from 0.
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
    /// For each parameter, the number or text that was drawn.
    drawn: Vec<(i64, String)>,
    /// The row of each feed; `usize::MAX` for a feed that was not used yet.
    rows: Vec<usize>,
}

impl Source {
    /// Compiles a parameter; `number` is its number in the transaction, from 1. Reads feeds that are
    /// not in `feeds` yet, and adds them.
    pub(super) fn new(parameter: &Parameter, number: usize, feeds: &mut Vec<Feed>) -> Result<Source, String> {
        Ok(match parameter {
            Parameter::Number { low, high, distribution } => {
                Source::Number(IntegerSampler::checked(*low, *high, *distribution)?)
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
    /// Draws the values of one transaction. All columns of a feed come from one row.
    pub(super) fn draw(&mut self, sources: &[Source], feeds: &[Feed], random: &mut dyn RandomSource) {
        self.drawn.resize_with(self.drawn.len().max(sources.len()), Default::default);
        self.rows.resize(feeds.len(), usize::MAX);
        self.rows.fill(usize::MAX);
        for (source, (number, text)) in sources.iter().zip(&mut self.drawn) {
            match source {
                Source::Number(sampler) => *number = sampler.sample(random),
                Source::Text(length) => {
                    text.clear();
                    push_alphanumeric(text, *length, random);
                }
                Source::Feed { feed, .. } if self.rows[*feed] == usize::MAX => self.rows[*feed] = feeds[*feed].take(),
                Source::Feed { .. } | Source::Constant(_) | Source::Same(_) => {}
            }
        }
    }

    /// The value of the parameter `number`, from 0.
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
