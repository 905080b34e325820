//! Reads the results of a statement, each with rows or a count of changed rows.

use super::packet::{self, Reader};
use super::{Capabilities, capability};
use crate::socket::Socket;
use crate::{SqlError, TextRows};

/// Another result follows.
const MORE_RESULTS: u16 = 1 << 3;

/// First bytes of packets.
const OK: u8 = 0x00;
const LOCAL_FILE: u8 = 0xfb;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;

/// Handles the parts of results as they are read. Parts are ignored by default.
pub(super) trait ResultHandler {
    /// A result with rows begins. `with_metadata` is true if a description of each column follows.
    fn begin(&mut self, _columns: usize, _are_new: bool) -> Result<(), SqlError> {
        Ok(())
    }

    /// The description of a column.
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

/// Reads all results of a statement; returns the server's status flags after the last.
#[inline]
pub(super) fn results(
    socket: &mut Socket,
    capabilities: Capabilities,
    handler: &mut impl ResultHandler,
) -> Result<u16, SqlError> {
    loop {
        let (_, content) = packet::next(socket)?;
        let mut reader = Reader::new(socket.input(), content.clone());
        let state = match socket.input()[content.start..content.end].first() {
            Some(&OK) => {
                let (changed, state) = outcome(reader)?;
                handler.changed(changed);
                state
            }
            Some(&ERROR) => return Err(packet::error(socket.input(), content)),
            Some(&LOCAL_FILE) => return Err(SqlError::protocol("the server asks for a file of the client's")),
            _ => {
                let columns = reader.number()? as usize;
                let with_metadata = !capabilities.has(capability::CACHE_METADATA) || reader.u8()? != 0;
                rows(socket, capabilities, columns, with_metadata, handler)?
            }
        };
        if state & MORE_RESULTS == 0 {
            return Ok(state);
        }
    }
}

#[inline]
fn rows(
    socket: &mut Socket,
    capabilities: Capabilities,
    columns: usize,
    with_metadata: bool,
    handler: &mut impl ResultHandler,
) -> Result<u16, SqlError> {
    handler.begin(columns, with_metadata)?;
    if with_metadata {
        descriptions(socket, capabilities, columns, |description| handler.column(description))?;
    }
    loop {
        let (_, content) = packet::next(socket)?;
        let reader = Reader::new(socket.input(), content.clone());
        match socket.input()[content.start..content.end].first() {
            Some(&END) if capabilities.has(capability::DEPRECATE_EOF) => {
                return outcome(reader).map(|(_, state)| state);
            }
            Some(&END) if content.len() < 9 => return end(reader),
            Some(&ERROR) => return Err(packet::error(socket.input(), content)),
            _ => handler.row(reader)?,
        }
    }
}

/// Reads the descriptions of `count` columns or parameters.
pub(super) fn descriptions(
    socket: &mut Socket,
    capabilities: Capabilities,
    count: usize,
    mut each: impl FnMut(Reader<'_>) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    for _ in 0..count {
        let (_, content) = packet::next(socket)?;
        each(Reader::new(socket.input(), content))?;
    }
    if count > 0 && !capabilities.has(capability::DEPRECATE_EOF) {
        packet::next(socket)?;
    }
    Ok(())
}

/// Reads the number of changed rows, and the server's status flags.
#[inline]
fn outcome(mut reader: Reader<'_>) -> Result<(u64, u16), SqlError> {
    reader.u8()?;
    let changed = reader.number()?;
    let _last_inserted = reader.number()?;
    Ok((changed, reader.u16()?))
}

/// The status flags in the EOF packet that older servers send after the rows.
fn end(mut reader: Reader<'_>) -> Result<u16, SqlError> {
    reader.u8()?;
    let _warnings = reader.u16()?;
    reader.u16()
}

/// Ignores all results.
pub(super) struct DiscardResults;

impl ResultHandler for DiscardResults {}

/// Keeps the last result that has rows.
impl ResultHandler for TextRows {
    fn begin(&mut self, _columns: usize, _are_new: bool) -> Result<(), SqlError> {
        *self = TextRows::default();
        Ok(())
    }

    fn column(&mut self, mut description: Reader<'_>) -> Result<(), SqlError> {
        // Catalogue, database, table and its own name.
        for _ in 0..4 {
            description.length_prefixed()?;
        }
        self.columns.push(text(description.length_prefixed()?));
        Ok(())
    }

    fn row(&mut self, mut row: Reader<'_>) -> Result<(), SqlError> {
        let cells = (0..self.columns.len()).map(|_| Ok(row.length_prefixed_or_null()?.map(text)));
        self.add(cells.collect::<Result<_, SqlError>>()?)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
