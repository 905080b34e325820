//! The identity of a session on its server.

/// The identity of a session on its server, by which another connection can cancel its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionId {
    /// PostgreSQL: the backend process, and the key that a cancel request must carry.
    Process {
        /// The number of the process.
        number: i32,
        /// The secret key, which the server sent to this client alone.
        key: i32,
    },
    /// MariaDB and MySQL: the number of the thread.
    Thread(u32),
}
