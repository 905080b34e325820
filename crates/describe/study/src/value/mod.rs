//! The kinds of value that a study is written in, and what fills in their placeholders: factors for
//! each trial, values of users for each request.

mod bytes;
mod command;
mod entries;
mod json;
mod login;
mod measure;
mod number;
mod processors;
mod scalar;
mod scope;
mod share;
mod template;
mod templated;
mod text;
mod time_span;
mod user_template;
mod user_values;

pub(crate) use bytes::{Block, Bytes, PartSize, Size, aligned_instead, shown};
pub(crate) use command::Command;
pub(crate) use entries::{Entries, Pairs};
pub(crate) use json::{AnyJson, Json};
pub(crate) use login::{Login, NO_LOGINS, SECRET_OF_LOGIN};
pub(crate) use number::*;
pub(crate) use processors::{CpuSet, Usable};
pub(crate) use scalar::{Literal, Problem, Scalar, keyword, number_after};
pub use scope::{Bindings, Place};
pub(crate) use scope::{Known, SECRET, Scope, instance_name, place_of, unknown_placeholder};
pub(crate) use share::{Margin, Share};
pub(crate) use template::{Template, UserValue, is_name};
pub(crate) use templated::{Templated, resolve_all, resolve_optional, written_or};
pub(crate) use text::{Text, Word};
pub(crate) use time_span::{Length, PositiveTimeSpan};
pub(crate) use user_template::{UserTemplate, literal};
pub(crate) use user_values::{BUILT_IN, ValueNames, ValueUse, misplaced_value};

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::factor::Level;
    use plimsoll_model::measure::Measure;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,12}") {
            let level = Level::Text(text);
            let _ = (Length::from_level(&level), Share::from_level(&level), Measure::from_level(&level));
            let _ = Margin::from_level(&level).map(|margin| (margin.share(), margin.number()));
            let _ = (Users::from_level(&level), Rate::from_level(&level), bool::from_level(&level));
        }
    }
}
