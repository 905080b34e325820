//! For tests of single tables: reads one from the text of its keys.

use crate::document::{Faults, FromToml, Node, Source};
use crate::table::location_of_key;
use toml::de::{DeTable, DeValue};

/// A collector for what must not collect anything.
pub(crate) fn no_faults() -> Faults {
    Faults::new(Source::new("table.toml", ""))
}

/// The table that `text` holds, which must be without faults.
pub(crate) fn read_table<T: FromToml>(text: &str) -> T {
    let (table, faults) = read(text);
    assert!(faults.is_empty(), "{faults:?}");
    table.expect("a table without faults")
}

/// The faults in the table that `text` holds, a line each.
pub(crate) fn faults_of<T: FromToml>(text: &str) -> Vec<String> {
    read::<T>(text).1
}

fn read<T: FromToml>(text: &str) -> (Option<T>, Vec<String>) {
    let mut faults = Faults::new(Source::new("table.toml", text));
    let document = DeValue::Table(DeTable::parse(text).expect("TOML").into_inner());
    let table = T::from_toml(&Node { path: "table".to_owned(), ..Node::root(&document, location_of_key) }, &mut faults);
    (table, faults.into_diagnostics().iter().map(ToString::to_string).collect())
}
