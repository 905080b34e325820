//! Sockets that users hold beside their connections: what the event loop does with them, and what a protocol decides.
//!
//! A user has one socket at most. It is opened by a step, carries messages in both directions, and stays until a step or
//! the end of the load closes it. When it is lost the loop opens it again, while the user goes on with other steps.

use crate::protocol::{Failure, Signal};
use plimsoll_model::units::{Instant, Nanos};

/// An action of a user on its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketAction {
    /// It opens the socket, and waits until that is ready.
    Open,
    /// It sends a message that nothing answers.
    Send,
    /// It sends the message of a step, if that has one, and awaits another.
    Exchange(usize),
    /// It closes the socket.
    Close,
}

/// Why a socket ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEnd {
    /// The user, or the end of the load, has closed it.
    Closed,
    /// The peer or the network has.
    Lost,
}

/// Messages since the last count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// Sent.
    pub sent: u64,
    /// Received.
    pub received: u64,
}

/// The sockets of a protocol whose connections are `C` and whose users are `U`.
///
/// Bytes of a socket go through [`Protocol::receive`](crate::protocol::Protocol::receive) as those of any connection; its
/// capacity is 0 until it is ready.
pub trait Sockets<C, U> {
    /// The step under which openings are recorded.
    fn step(&self) -> usize;

    /// The name of a step, for the records of deliveries.
    fn name(&self, step: usize) -> &str;

    /// How often a ping is sent, if pings are.
    fn ping_every(&self) -> Option<Nanos>;

    /// The wait before the next attempt to open a lost socket, after so many that failed; none to leave it closed.
    fn wait_before_attempt(&self, user: &mut U, failed: u32) -> Option<Nanos>;

    /// A new socket of a user. Writes its opening bytes to `out`.
    ///
    /// # Errors
    /// The opening cannot be made of the user's values.
    fn open_socket(&self, user: &mut U, now: Instant, out: &mut Vec<u8>) -> Result<C, Failure>;

    /// The socket of a user is ready.
    fn opened(&self, user: &mut U);

    /// Writes a message that nothing answers.
    ///
    /// # Errors
    /// The message cannot be made of the user's values.
    fn send_message(&self, socket: &mut C, user: &mut U, now: Instant, out: &mut Vec<u8>) -> Result<(), Failure>;

    /// Ends an exchange whose message had come before it was awaited.
    fn settle(&self, socket: &mut C, signals: &mut Vec<Signal>);

    /// Writes a ping. Returns false if nothing has come since the last one.
    fn ping(&self, socket: &mut C, out: &mut Vec<u8>) -> bool;

    /// A socket that was ready has ended.
    fn ended(&self, user: &mut U, end: SocketEnd, now: Instant, signals: &mut Vec<Signal>);

    /// Gives up deliveries that are overdue.
    fn give_up_overdue(&self, now: Instant, signals: &mut Vec<Signal>);

    /// The user is to get nothing that is sent from now on. Returns true if something is under way to it.
    fn stop_listening(&self, user: &mut U) -> bool;

    /// The user is gone: it is to get nothing any more.
    fn forget_listener(&self, user: &mut U);

    /// True if something is under way to the user.
    fn is_awaited(&self, user: &U) -> bool;

    /// True if something is under way, whichever thread has sent it: it may be on its way to users of this one.
    fn has_deliveries(&self) -> bool;

    /// Counts of messages since the last call.
    fn take_counts(&self) -> MessageCounts;

    /// Forgets the deliveries of this thread that are under way, and returns the step of each.
    fn forget_deliveries(&self) -> Vec<usize>;
}
