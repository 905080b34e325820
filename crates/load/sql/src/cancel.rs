//! Cancels the statement of a session whose client has stopped waiting. Otherwise the server goes on with
//! it, and notices only when it sends the result that the client is gone.

use crate::socket::Socket;
use crate::{CallLimits, Connection, SessionId, SqlError};
use bytes::BytesMut;
use plimsoll_model::database::Endpoint;
use plimsoll_model::record::ErrorKind;
use postgres_protocol::message::frontend;
use std::time::{Duration, Instant};

/// The error number of MySQL and MariaDB for a session that has ended.
const NO_SUCH_THREAD: &str = "1094";

impl SessionId {
    /// Asks the server over a separate connection to end the statement that this session runs, if any. The
    /// session itself ends when its connection does.
    ///
    /// # Errors
    /// The request fails or takes longer than `within`; the statement may go on.
    pub fn cancel(self, endpoint: &Endpoint, within: Duration) -> Result<(), SqlError> {
        let limits = CallLimits { deadline: Some(Instant::now() + within), ..CallLimits::timeout(within) };
        let cancelled = match self {
            SessionId::Process { number, key } => send_cancel_request(endpoint, limits, number, key),
            SessionId::Thread(number) => kill_query(endpoint, limits, number),
        };
        cancelled.map_err(|error| error.during("have the server end a statement that nobody waits for"))
    }
}

/// Sends a cancel request. The server closes the connection without a reply.
fn send_cancel_request(endpoint: &Endpoint, limits: CallLimits, process: i32, key: i32) -> Result<(), SqlError> {
    let mut socket = Socket::open(&endpoint.address, limits)?;
    let mut request = BytesMut::new();
    frontend::cancel_request(process, key, &mut request);
    socket.begin();
    socket.send(&request)?;
    match socket.take(1) {
        Err(error) if error.kind == ErrorKind::Closed => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(SqlError::protocol("the server answers a request to cancel, which has no answer")),
    }
}

fn kill_query(endpoint: &Endpoint, limits: CallLimits, thread: u32) -> Result<(), SqlError> {
    match Connection::open(endpoint, limits)?.batch(&format!("KILL QUERY {thread}")) {
        Err(error) if error.code == NO_SUCH_THREAD => Ok(()),
        done => done,
    }
}
