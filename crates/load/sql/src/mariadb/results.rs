//! What comes back of a statement: results, one after the other, each with rows or a count.

use super::packet::{self, Reader};
use super::{Abilities, capability};
use crate::wire::Wire;
use crate::{SqlError, Table};

/// Another result follows.
const MORE_RESULTS: u16 = 1 << 3;

/// First bytes of packets.
const OK: u8 = 0x00;
const LOCAL_FILE: u8 = 0xfb;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;

/// Takes results as they come, and of each what it cares for.
pub(super) trait Sink {
    /// A result with rows of so many columns. `are_new` is whether each of them is described.
    fn begin(&mut self, _columns: usize, _are_new: bool) -> Result<(), SqlError> {
        Ok(())
    }

    /// What a column is.
    fn column(&mut self, _description: Reader<'_>) -> Result<(), SqlError> {
        Ok(())
    }

    /// A row.
    fn row(&mut self, _row: Reader<'_>) -> Result<(), SqlError> {
        Ok(())
    }

    /// A result without rows.
    fn changed(&mut self, _rows: u64) {}
}

/// Reads everything that a statement gives; gives the server's state after it.
#[inline]
pub(super) fn results(wire: &mut Wire, abilities: Abilities, sink: &mut impl Sink) -> Result<u16, SqlError> {
    loop {
        let (_, content) = packet::next(wire)?;
        let mut reader = Reader::new(wire.input(), content.clone());
        let state = match wire.input()[content.start..content.end].first() {
            Some(&OK) => {
                let (changed, state) = outcome(reader)?;
                sink.changed(changed);
                state
            }
            Some(&ERROR) => return Err(packet::error(wire.input(), content)),
            Some(&LOCAL_FILE) => return Err(SqlError::protocol("the server asks for a file of the client's")),
            _ => {
                let columns = reader.number()? as usize;
                let are_new = !abilities.can(capability::CACHE_METADATA) || reader.u8()? != 0;
                rows(wire, abilities, columns, are_new, sink)?
            }
        };
        if state & MORE_RESULTS == 0 {
            return Ok(state);
        }
    }
}

#[inline]
fn rows(
    wire: &mut Wire,
    abilities: Abilities,
    columns: usize,
    are_new: bool,
    sink: &mut impl Sink,
) -> Result<u16, SqlError> {
    sink.begin(columns, are_new)?;
    if are_new {
        descriptions(wire, abilities, columns, |description| sink.column(description))?;
    }
    loop {
        let (_, content) = packet::next(wire)?;
        let reader = Reader::new(wire.input(), content.clone());
        match wire.input()[content.start..content.end].first() {
            Some(&END) if abilities.can(capability::DEPRECATE_EOF) => return outcome(reader).map(|(_, state)| state),
            Some(&END) if content.len() < 9 => return end(reader),
            Some(&ERROR) => return Err(packet::error(wire.input(), content)),
            _ => sink.row(reader)?,
        }
    }
}

/// Reads what so many columns, or parameters, are.
pub(super) fn descriptions(
    wire: &mut Wire,
    abilities: Abilities,
    count: usize,
    mut each: impl FnMut(Reader<'_>) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    for _ in 0..count {
        let (_, content) = packet::next(wire)?;
        each(Reader::new(wire.input(), content))?;
    }
    if count > 0 && !abilities.can(capability::DEPRECATE_EOF) {
        packet::next(wire)?;
    }
    Ok(())
}

/// The number of changed rows, and the server's state.
#[inline]
fn outcome(mut reader: Reader<'_>) -> Result<(u64, u16), SqlError> {
    reader.u8()?;
    let changed = reader.number()?;
    let _last_inserted = reader.number()?;
    Ok((changed, reader.u16()?))
}

/// The server's state at the end of rows, as older servers say it.
fn end(mut reader: Reader<'_>) -> Result<u16, SqlError> {
    reader.u8()?;
    let _warnings = reader.u16()?;
    reader.u16()
}

/// Cares for nothing.
pub(super) struct Nothing;

impl Sink for Nothing {}

/// Of several results, the last that has rows.
impl Sink for Table {
    fn begin(&mut self, _columns: usize, _are_new: bool) -> Result<(), SqlError> {
        *self = Table::default();
        Ok(())
    }

    fn column(&mut self, mut description: Reader<'_>) -> Result<(), SqlError> {
        // Catalogue, database, table and its own name.
        for _ in 0..4 {
            description.counted()?;
        }
        self.columns.push(text(description.counted()?));
        Ok(())
    }

    fn row(&mut self, mut row: Reader<'_>) -> Result<(), SqlError> {
        let cells = (0..self.columns.len()).map(|_| Ok(row.counted_or_null()?.map(text)));
        self.rows.push(cells.collect::<Result<_, SqlError>>()?);
        Ok(())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
