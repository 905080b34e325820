//! The study file as a document: TOML whose values know where they stand, the faults that are found
//! in it, and how tables are declared. It knows no table.

mod declare;
mod diagnostic;
mod faults;
mod from_toml;
mod node;
pub(crate) mod profile;
mod redact;
mod schema;

pub(crate) use declare::{Key, key_name, table};
pub use diagnostic::{Diagnostic, Severity, Span, Style, render};
pub(crate) use diagnostic::{Fault, Source};
pub(crate) use faults::{Faults, all_of, did_you_mean, nearest, one_of, unknown};
pub(crate) use from_toml::{FromToml, OneOrMore, Section};
pub(crate) use node::{Node, TableNode, level_in_words};
pub(crate) use schema::Schemas;
