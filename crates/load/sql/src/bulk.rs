//! Loading many rows at once.

use crate::connection::Server;
use crate::value::wrong_parameter_count;
use crate::{Connection, SqlError, Value};

/// A bulk load under way. It ends with [`BulkLoad::finish`].
///
/// PostgreSQL keeps all rows or none. MariaDB and MySQL commit about a megabyte at a time, unless the
/// load runs in a transaction. Dropping the value without [`BulkLoad::finish`] cancels the load.
#[derive(Debug)]
pub struct BulkLoad<'a> {
    connection: &'a mut Connection,
    table: String,
    columns: usize,
    is_open: bool,
}

impl Connection {
    /// Loads rows into a table as fast as the server takes them: COPY, or INSERT of many rows. The
    /// names of table and columns go into the SQL as they are.
    ///
    /// # Errors
    /// As for [`Connection::execute`].
    pub fn bulk<'a>(&'a mut self, table: &str, columns: &[&str]) -> Result<BulkLoad<'a>, SqlError> {
        BulkLoad::begin(self, table, columns)
    }
}

impl<'a> BulkLoad<'a> {
    fn begin(connection: &'a mut Connection, table: &str, columns: &[&str]) -> Result<BulkLoad<'a>, SqlError> {
        let names = columns.join(", ");
        let mut bulk = BulkLoad { connection, table: table.to_owned(), columns: columns.len(), is_open: false };
        bulk.attempt(|server| match server {
            Server::Postgresql(server) => server.copy_begin(table, &names),
            Server::Mariadb(server) => server.insert_begin(table, &names),
        })?;
        bulk.is_open = true;
        Ok(bulk)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// As for [`Connection::execute`]. The server may report the error of a row at a later one, or at
    /// the end.
    pub fn row(&mut self, values: &[Value<'_>]) -> Result<(), SqlError> {
        let columns = self.columns;
        self.attempt(|server| match server {
            _ if values.len() != columns => Err(wrong_parameter_count(columns, values.len())),
            Server::Postgresql(server) => server.copy_row(values),
            Server::Mariadb(server) => server.insert_row(values),
        })
    }

    /// Ends the load; returns the number of rows.
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

impl Drop for BulkLoad<'_> {
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
