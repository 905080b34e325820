//! Ends what a server does for a caller who has given up: one that has lost its connection goes on
//! until it has something to say.

use crate::wire::Wire;
use crate::{Connection, Patience, SqlError};
use bytes::BytesMut;
use plimsoll_model::database::Endpoint;
use plimsoll_model::record::ErrorKind;
use postgres_protocol::message::frontend;
use std::time::{Duration, Instant};

/// The number of the error by which MySQL and MariaDB say that a session is over.
const NO_SUCH_THREAD: &str = "1094";

/// What a server knows a session by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Session {
    /// PostgreSQL: the process, and the key that allows to interrupt it.
    Process {
        /// Its number.
        number: i32,
        /// Known to the session's client alone.
        key: i32,
    },
    /// MariaDB and MySQL: the number of the thread.
    Thread(u32),
}

impl Session {
    /// Asks the server, by a connection of its own, to end the statement that this session is running;
    /// nothing happens where it runs none. The session itself ends when its connection does.
    ///
    /// # Errors
    /// The server cannot be asked within that time; it may go on.
    pub fn cancel(self, endpoint: &Endpoint, within: Duration) -> Result<(), SqlError> {
        let patience = Patience { until: Some(Instant::now() + within), ..Patience::of(within) };
        let asked = match self {
            Session::Process { number, key } => interrupt(endpoint, patience, number, key),
            Session::Thread(number) => kill_query(endpoint, patience, number),
        };
        asked.map_err(|error| error.during("have the server end a statement that nobody waits for"))
    }
}

/// The server reads the request, passes it on, and closes the connection without a word.
fn interrupt(endpoint: &Endpoint, patience: Patience, process: i32, key: i32) -> Result<(), SqlError> {
    let mut wire = Wire::open(&endpoint.address, patience)?;
    let mut request = BytesMut::new();
    frontend::cancel_request(process, key, &mut request);
    wire.begin();
    wire.send(&request)?;
    match wire.take(1) {
        Err(error) if error.kind == ErrorKind::Closed => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(SqlError::protocol("the server answers a request to cancel, which has no answer")),
    }
}

fn kill_query(endpoint: &Endpoint, patience: Patience, thread: u32) -> Result<(), SqlError> {
    match Connection::open(endpoint, patience)?.batch(&format!("KILL QUERY {thread}")) {
        Err(error) if error.code == NO_SUCH_THREAD => Ok(()),
        done => done,
    }
}
