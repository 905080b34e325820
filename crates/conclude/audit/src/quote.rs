//! Finds a quotation mark that opens a cell and never closes it: all following lines would be read
//! as one cell.

/// A cell that never ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unclosed<'a> {
    /// Line of the quotation mark, from 1.
    pub(crate) line: u64,
    /// The begin of its record: everything before it can be read.
    pub(crate) record: usize,
    /// The text after the mark on its line.
    pub(crate) text: &'a str,
}

/// The state of the CSV reader.
#[derive(Clone, Copy)]
enum State {
    StartOfRecord,
    StartOfCell,
    Plain,
    Quoted,
    /// After a quotation mark within a quoted cell: it ends the cell, unless a second one follows.
    Quote,
    Comment,
}

/// The cell that a quotation mark opens and none closes, by the rules of the row reader: a mark
/// opens a cell only as its first character, and two of them inside it stand for one.
pub(crate) fn unclosed(text: &str, delimiter: u8) -> Option<Unclosed<'_>> {
    let mut state = State::StartOfRecord;
    let (mut line, mut record, mut opened) = (1, 0, (1, 0));
    for (at, byte) in text.bytes().enumerate() {
        if matches!(state, State::StartOfRecord) {
            record = at;
        }
        state = match state {
            State::Quoted if byte == b'"' => State::Quote,
            State::Quoted => State::Quoted,
            State::Quote if byte == b'"' => State::Quoted,
            State::Comment if byte != b'\n' => State::Comment,
            _ if matches!(byte, b'\n' | b'\r') => State::StartOfRecord,
            State::StartOfRecord if byte == b'#' => State::Comment,
            State::StartOfRecord | State::StartOfCell if byte == b'"' => {
                opened = (line, at + 1);
                State::Quoted
            }
            _ if byte == delimiter => State::StartOfCell,
            _ => State::Plain,
        };
        line += u64::from(byte == b'\n');
    }
    let (line, start) = opened;
    let text = text[start..].lines().next().unwrap_or_default();
    matches!(state, State::Quoted).then_some(Unclosed { line, record, text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cell_that_never_ends_is_found_where_it_begins() {
        for (text, expected) in [
            ("a,b\n1,\"2\n3,4\n", Some((2, 4, "2"))),
            ("# \"no cell\na,b\n\"1,2\n", Some((3, 15, "1,2"))),
            ("a,b\n\"1\n\",\"2\n", Some((3, 4, "2"))),
            ("a,b\r\n1,\"2\r\n", Some((2, 5, "2"))),
            ("a\n\"1\"\"", Some((2, 2, "1\"\""))),
            ("\"", Some((1, 0, ""))),
            ("a,b\n\"1\",\"2\"", None),
            ("a,b\n\"say \"\"hi\"\"\",2\n", None),
            ("a,b\n5\" disk,2\n", None),
            ("a,b\n \"1,2\n", None),
            ("", None),
        ] {
            let found = unclosed(text, b',').map(|one| (one.line, one.record, one.text));
            assert_eq!(found, expected, "{text:?}");
        }
    }

    proptest! {
        /// A line that follows is a record of its own, for the reader of the rows, exactly where no
        /// cell is open.
        #[test]
        fn the_reader_of_rows_agrees(text in "[,\"\n\r#a ]{0,16}") {
            let more = format!("{text}\nlast");
            let mut reader = csv::ReaderBuilder::new();
            let mut reader = reader.comment(Some(b'#')).flexible(true).has_headers(false).from_reader(more.as_bytes());
            let last = reader.records().last().expect("a record").expect("text");
            prop_assert_eq!(last == vec!["last"], unclosed(&text, b',').is_none());
        }
    }
}
