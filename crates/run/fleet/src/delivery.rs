//! Delivery of messages over a line that may lose some: NATS gives a message at most once, and a broker that restarts, or a
//! reader that falls behind, loses what was on its way. So each frame has a number, the other side confirms how far it has
//! all of them, and what is not confirmed in time is sent again. State only: it has neither clock nor line.
//!
//! The broker could confirm in the readers' place (JetStream). That would say that the broker has a message, and what counts
//! is that the reader has it.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Frames that were not confirmed for this long are sent again.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of a frame before its part of a message: its number, and whether more of the message follows.
const HEAD: usize = 9;

/// The messages of one side that the other has not confirmed.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// The most bytes of a frame.
    most: usize,
    /// The number of the next frame, from 1.
    next: u64,
    /// Frames that were sent and not confirmed, with their numbers.
    unconfirmed: VecDeque<(u64, Bytes)>,
    /// When the oldest of them was last sent, or became the oldest.
    since: Instant,
}

impl Outbox {
    /// An outbox for a line that takes frames of at most this many bytes.
    pub(crate) fn new(most: usize, now: Instant) -> Outbox {
        Outbox { most: most.max(HEAD + 1), next: 1, unconfirmed: VecDeque::new(), since: now }
    }

    /// The frames of a message, to be sent in this order.
    pub(crate) fn frames(&mut self, mut message: Bytes, now: Instant) -> Vec<Bytes> {
        if self.unconfirmed.is_empty() {
            self.since = now;
        }
        let mut frames = Vec::new();
        loop {
            let part = message.split_to(message.len().min(self.most - HEAD));
            let mut frame = BytesMut::with_capacity(HEAD + part.len());
            frame.put_u64(self.next);
            frame.put_u8(u8::from(!message.is_empty()));
            frame.extend_from_slice(&part);
            let frame = frame.freeze();
            self.unconfirmed.push_back((self.next, frame.clone()));
            frames.push(frame);
            self.next += 1;
            if message.is_empty() {
                return frames;
            }
        }
    }

    /// The other side has all frames up to this number.
    pub(crate) fn confirm(&mut self, number: u64, now: Instant) {
        let confirmed = self.unconfirmed.partition_point(|(first, _)| *first <= number);
        if confirmed > 0 {
            self.unconfirmed.drain(..confirmed);
            self.since = now;
        }
    }

    /// The frames that are to be sent again: all that are not confirmed, if that has taken too long.
    pub(crate) fn overdue(&mut self, now: Instant) -> Vec<Bytes> {
        if self.unconfirmed.is_empty() || now.saturating_duration_since(self.since) < PATIENCE {
            return Vec::new();
        }
        self.since = now;
        self.unconfirmed.iter().map(|(_, frame)| frame.clone()).collect()
    }

    /// True if the other side has everything.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.unconfirmed.is_empty()
    }
}

/// The messages that come from the other side, in order.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// The number of the last frame that came in order.
    last: u64,
    /// The parts of a message of which more are to come.
    parts: BytesMut,
}

impl Inbox {
    /// Takes a frame; returns the message that it completes. A frame that came before, or that comes after one that is
    /// missing, is dropped: it comes again.
    pub(crate) fn take(&mut self, mut frame: Bytes) -> Option<Bytes> {
        if frame.len() < HEAD || frame.get_u64() != self.last + 1 {
            return None;
        }
        self.last += 1;
        let more = frame.get_u8() != 0;
        if !more && self.parts.is_empty() {
            return Some(frame);
        }
        self.parts.extend_from_slice(&frame);
        (!more).then(|| self.parts.split().freeze())
    }

    /// The number up to which all frames have come, to be confirmed.
    pub(crate) fn confirmed(&self) -> u64 {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the line loses or repeats, all messages arrive once and in order.
        #[test]
        fn messages_arrive_once_and_in_order_over_a_line_that_loses_some(
            sizes in prop::collection::vec(0_usize..40, 1..20),
            lost in prop::collection::vec(any::<bool>(), 1..50),
        ) {
            let mut now = Instant::now();
            let (mut outbox, mut inbox) = (Outbox::new(HEAD + 10, now), Inbox::default());
            let mut lost = lost.into_iter().chain(std::iter::repeat(false));
            let sent: Vec<Bytes> = sizes.iter().map(|size| Bytes::from(vec![*size as u8; *size])).collect();
            let mut received = Vec::new();
            for message in &sent {
                for frame in outbox.frames(message.clone(), now) {
                    if !lost.next().expect("endless") {
                        received.extend(inbox.take(frame));
                    }
                }
            }
            while !outbox.is_empty() {
                now += PATIENCE;
                if !lost.next().expect("endless") {
                    outbox.confirm(inbox.confirmed(), now);
                    now += PATIENCE;
                }
                for frame in outbox.overdue(now) {
                    if !lost.next().expect("endless") {
                        received.extend(inbox.take(frame));
                    }
                }
            }
            prop_assert_eq!(received, sent);
        }
    }

    #[test]
    fn nothing_is_sent_again_while_the_other_side_keeps_up() {
        let start = Instant::now();
        let (mut outbox, mut inbox) = (Outbox::new(100, start), Inbox::default());
        let mut now = start;
        for _ in 0..20 {
            for frame in outbox.frames(Bytes::from_static(b"a message"), now) {
                assert!(inbox.take(frame).is_some());
            }
            now += PATIENCE / 2;
            assert!(outbox.overdue(now).is_empty());
            outbox.confirm(inbox.confirmed(), now);
        }
        assert!(outbox.is_empty());
    }
}
