//! The WebSocket that a user of a flow holds, and its messages.

use super::{Body, Capture, Checks, ValueId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The WebSocket of a user (RFC 6455).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSocket {
    /// The request that opens it, as an index into [`Flow::requests`](super::Flow::requests). Its name is that of openings.
    pub opening: usize,
    /// The subprotocols of which the server may choose one.
    pub subprotocols: Vec<String>,
    /// Whether compression of messages is offered.
    pub compression: bool,
    /// The message that is sent as soon as it is open, if there is one.
    pub greeting: Option<Body>,
    /// The message with which it is ready; ready at once if there is none.
    pub ready: Option<Checks>,
    /// How often a ping is sent. The socket is lost when nothing came since the last one.
    pub ping: Option<Duration>,
    /// The waits before it is opened again after it was lost; `None` to leave it closed.
    pub reconnect: Option<Backoff>,
    /// The deliveries on it, if they are looked at.
    pub deliveries: Option<Deliveries>,
    /// The messages of the flow; instructions refer to them by index.
    pub messages: Vec<FlowMessage>,
}

/// Waits that double from attempt to attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// The first. Each is drawn from half of its length to the whole.
    pub first: Duration,
    /// The longest.
    pub most: Duration,
}

/// Deliveries of what requests carry with [`Reference::Message`](super::Reference::Message).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deliveries {
    /// The value that says what a user listens to while its socket is open: each item of a list, or one text.
    pub listens_to: ValueId,
    /// Checks of a message, beside that it carries the number of a request.
    pub of: Checks,
    /// Later than this after the request, a delivery counts as lost.
    pub within: Duration,
}

/// A message on a socket: sent, awaited, or sent and answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowMessage {
    /// Name in the results, if something is awaited.
    pub name: String,
    /// The text or JSON that is sent, if any.
    pub send: Option<Body>,
    /// The message that is awaited, if one is.
    pub awaits: Option<AwaitedMessage>,
}

/// A message that is awaited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AwaitedMessage {
    /// The checks that it passes; messages that do not are passed over.
    pub checks: Checks,
    /// The values that are kept of it.
    pub captures: Vec<Capture>,
}
