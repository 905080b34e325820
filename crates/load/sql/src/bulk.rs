//! Loading many rows.

use crate::connection::Server;
use crate::value::wrong_count;
use crate::{Connection, SqlError, Value};

/// A load of rows under way; it ends with [`Bulk::finish`].
///
/// PostgreSQL takes all rows or none. MariaDB takes them by the megabyte, each of which stays unless
/// a transaction is around them. Dropped without an end, a load is given up.
#[derive(Debug)]
pub struct Bulk<'a> {
    connection: &'a mut Connection,
    table: String,
    columns: usize,
    is_open: bool,
}

impl<'a> Bulk<'a> {
    pub(crate) fn begin(connection: &'a mut Connection, table: &str, columns: &[&str]) -> Result<Bulk<'a>, SqlError> {
        let names = columns.join(", ");
        let mut bulk = Bulk { connection, table: table.to_owned(), columns: columns.len(), is_open: false };
        bulk.attempt(|server| match server {
            Server::Postgresql(server) => server.copy_begin(table, &names),
            Server::Mariadb(server) => server.insert_begin(table, &names),
        })?;
        bulk.is_open = true;
        Ok(bulk)
    }

    /// One more row.
    ///
    /// # Errors
    /// As for [`Connection::execute`]. What is wrong with a row may come out with a later one, or at
    /// the end.
    pub fn row(&mut self, values: &[Value<'_>]) -> Result<(), SqlError> {
        let columns = self.columns;
        self.attempt(|server| match server {
            _ if values.len() != columns => Err(wrong_count(columns, values.len())),
            Server::Postgresql(server) => server.copy_row(values),
            Server::Mariadb(server) => server.insert_row(values),
        })
    }

    /// All rows are there; gives how many.
    ///
    /// # Errors
    /// As for [`Connection::execute`].
    pub fn finish(mut self) -> Result<u64, SqlError> {
        self.is_open = false;
        self.attempt(|server| match server {
            Server::Postgresql(server) => server.copy_end(),
            Server::Mariadb(server) => server.insert_end(),
        })
    }

    fn attempt<T>(&mut self, work: impl FnOnce(&mut Server) -> Result<T, SqlError>) -> Result<T, SqlError> {
        let table = &self.table;
        self.connection.attempt(work).map_err(|error| error.during(format_args!("load rows into `{table}`")))
    }
}

impl Drop for Bulk<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // If this fails, the connection is known to be broken, and the next call says so.
            let _ = self.attempt(|server| match server {
                Server::Postgresql(server) => server.copy_fail(),
                Server::Mariadb(_) => Ok(()),
            });
        }
    }
}
