//! Deliveries: what a request of one user carries comes to the sockets of others, each of whom must get it once.
//!
//! All threads share the account of a flow. A request that is sent says to what it goes ("topic": a channel, a room); the
//! users that listen to that topic at this moment are those to whom it must come. Each of them is counted once: as
//! delivered, as lost after a time, as lost with its socket, or as under way at the end.

use super::uuid::MessageNumber;
use plimsoll_engine::sockets::SocketEnd;
use plimsoll_model::units::{Instant, Nanos};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A delivery to one user: the step whose request carried it, and when that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) step: usize,
    pub(super) sent: Instant,
}

/// The account of all deliveries of a flow.
#[derive(Debug, Default)]
pub(super) struct Deliveries(Mutex<Account>);

#[derive(Debug, Default)]
struct Account {
    /// The users that listen to each topic, in order.
    listeners: HashMap<Box<str>, Arc<Vec<u64>>>,
    /// The topics of each user that listens.
    topics: HashMap<u64, Vec<Box<str>>>,
    under_way: HashMap<u64, UnderWay>,
    /// Deliveries that came to the same user once more.
    repeated: u64,
}

/// Something that is being delivered. It stays until its time is over, so that what comes twice is seen.
#[derive(Debug)]
struct UnderWay {
    delivery: Delivery,
    /// The users to whom it must come, in order, and the state of each delivery.
    listeners: Arc<Vec<u64>>,
    states: Vec<Arrival>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    Awaited,
    Arrived,
    /// Nobody waits for it any more.
    Over,
}

impl Deliveries {
    /// Nothing that panics while it holds the lock leaves the account half changed.
    fn account(&self) -> MutexGuard<'_, Account> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The user listens to these topics from now on.
    pub(super) fn listen(&self, user: u64, topics: Vec<Box<str>>) {
        let mut account = self.account();
        account.stop_listening(user);
        for topic in &topics {
            let listeners = account.listeners.entry(topic.clone()).or_default();
            if let Err(place) = listeners.binary_search(&user) {
                Arc::make_mut(listeners).insert(place, user);
            }
        }
        account.topics.insert(user, topics);
    }

    /// The user listens no more. Returns what was under way to it and is lost, if it lost its socket; what it left by
    /// itself is waited for no more.
    pub(super) fn leave(&self, user: u64, end: SocketEnd) -> Vec<Delivery> {
        let mut account = self.account();
        account.stop_listening(user);
        let left = account.under_way.values_mut().filter_map(|under_way| under_way.give_up(user));
        let left: Vec<Delivery> = left.collect();
        if end == SocketEnd::Lost { left } else { Vec::new() }
    }

    /// The user is to get nothing that is sent from now on. What is under way to it goes on.
    pub(super) fn stop_listening(&self, user: u64) {
        self.account().stop_listening(user);
    }

    /// True if something is under way to the user.
    pub(super) fn is_awaited(&self, user: u64) -> bool {
        self.account().under_way.values().any(|under_way| under_way.awaits(user))
    }

    /// True if something is under way to somebody.
    pub(super) fn has_any_awaited(&self) -> bool {
        self.account().under_way.values().any(|one| one.states.contains(&Arrival::Awaited))
    }

    /// A user sends something to all others that listen to a topic.
    pub(super) fn begin(&self, message: MessageNumber, sender: u64, topic: &str, delivery: Delivery) {
        let mut account = self.account();
        let Some(listeners) = account.listeners.get(topic).map(Arc::clone) else { return };
        let state = |user: &u64| if *user == sender { Arrival::Over } else { Arrival::Awaited };
        let states = listeners.iter().map(state).collect();
        account.under_way.insert(message.bits(), UnderWay { delivery, listeners, states });
    }

    /// Forgets what a request carried, because the request failed.
    pub(super) fn cancel(&self, message: MessageNumber) {
        self.account().under_way.remove(&message.bits());
    }

    /// A message with this number came to a user. Returns the delivery that it completes.
    pub(super) fn arrive(&self, number: u64, user: u64) -> Option<Delivery> {
        let mut account = self.account();
        let under_way = account.under_way.get_mut(&number)?;
        let place = under_way.listeners.binary_search(&user).ok()?;
        match std::mem::replace(&mut under_way.states[place], Arrival::Arrived) {
            Arrival::Awaited => Some(under_way.delivery),
            Arrival::Arrived => {
                account.repeated += 1;
                None
            }
            Arrival::Over => {
                under_way.states[place] = Arrival::Over;
                None
            }
        }
    }

    /// Ends what was under way with these numbers. Returns the deliveries that have not come, one for each user.
    pub(super) fn end(&self, numbers: impl IntoIterator<Item = u64>) -> Vec<Delivery> {
        let mut account = self.account();
        let ended = numbers.into_iter().filter_map(|number| account.under_way.remove(&number));
        let missing = |under_way: UnderWay| {
            let count = under_way.states.iter().filter(|state| **state == Arrival::Awaited).count();
            std::iter::repeat_n(under_way.delivery, count)
        };
        ended.flat_map(missing).collect()
    }

    /// The number of repeated deliveries since the last call.
    pub(super) fn take_repeated(&self) -> u64 {
        std::mem::take(&mut self.account().repeated)
    }
}

impl Account {
    fn stop_listening(&mut self, user: u64) {
        for topic in self.topics.remove(&user).unwrap_or_default() {
            if let Some(listeners) = self.listeners.get_mut(&topic)
                && let Ok(place) = listeners.binary_search(&user)
            {
                Arc::make_mut(listeners).remove(place);
            }
        }
    }
}

impl UnderWay {
    fn awaits(&self, user: u64) -> bool {
        self.listeners.binary_search(&user).is_ok_and(|place| self.states[place] == Arrival::Awaited)
    }

    /// The user waits for it no more. Returns the delivery if it had not come.
    fn give_up(&mut self, user: u64) -> Option<Delivery> {
        let place = self.listeners.binary_search(&user).ok()?;
        let awaited = self.states[place] == Arrival::Awaited;
        if awaited {
            self.states[place] = Arrival::Over;
        }
        awaited.then_some(self.delivery)
    }
}

/// The deliveries that one thread has begun, until their time is over.
#[derive(Debug, Default)]
pub(super) struct OwnDeliveries(std::collections::VecDeque<(Instant, u64)>);

impl OwnDeliveries {
    /// Adds what was just sent.
    pub(super) fn add(&mut self, message: MessageNumber, sent: Instant, within: Nanos) {
        self.0.push_back((sent.after(within), message.bits()));
    }

    /// Takes those whose time is over at `now`.
    pub(super) fn take_overdue(&mut self, now: Instant) -> Vec<u64> {
        let count = self.0.iter().take_while(|(due, _)| *due <= now).count();
        self.0.drain(..count).map(|(_, number)| number).collect()
    }

    /// Takes all of them.
    pub(super) fn take_all(&mut self) -> Vec<u64> {
        self.0.drain(..).map(|(_, number)| number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: u64 = 1_795_700_000_123_456_789;

    fn number_of(user: u64, request: u64) -> MessageNumber {
        MessageNumber::new(RUN, user, request)
    }

    fn topics(names: &[&str]) -> Vec<Box<str>> {
        names.iter().map(|name| (*name).into()).collect()
    }

    #[test]
    fn who_listens_to_something_else_is_waited_for_there_alone() {
        let deliveries = Deliveries::default();
        deliveries.listen(1, topics(&["town"]));
        deliveries.listen(1, topics(&["market"]));
        let delivery = Delivery { step: 5, sent: Instant(70) };
        deliveries.begin(number_of(2, 1), 2, "town", delivery);
        assert!(!deliveries.has_any_awaited());
        deliveries.begin(number_of(2, 2), 2, "market", delivery);
        assert!(deliveries.has_any_awaited());
        assert_eq!(deliveries.end([1, 2].map(|request| number_of(2, request).bits())), [delivery]);
    }

    #[test]
    fn every_listener_but_the_sender_gets_it_once() {
        let deliveries = Deliveries::default();
        for user in [3, 1, 2, 4] {
            deliveries.listen(user, topics(if user == 4 { &["other"] } else { &["town", "other"] }));
        }
        let delivery = Delivery { step: 5, sent: Instant(70) };
        deliveries.begin(number_of(1, 9), 1, "town", delivery);
        let number = number_of(1, 9).bits();
        assert_eq!(deliveries.arrive(number, 2), Some(delivery));
        assert_eq!(deliveries.arrive(number, 2), None, "once more");
        assert_eq!(deliveries.arrive(number, 1), None, "the sender");
        assert_eq!(deliveries.arrive(number, 4), None, "one that does not listen");
        assert_eq!(deliveries.arrive(number + 1, 3), None, "nobody has sent it");
        assert_eq!((deliveries.take_repeated(), deliveries.take_repeated()), (1, 0));
        assert_eq!(deliveries.end([number]), [delivery], "that to user 3");
        assert_eq!(deliveries.arrive(number, 3), None, "too late");
    }

    #[test]
    fn who_leaves_is_waited_for_no_more_and_who_loses_its_socket_has_lost_it() {
        let deliveries = Deliveries::default();
        for user in 0..4 {
            deliveries.listen(user, topics(&["town"]));
        }
        let delivery = Delivery { step: 0, sent: Instant(1) };
        deliveries.begin(number_of(0, 1), 0, "town", delivery);
        assert_eq!(deliveries.leave(1, SocketEnd::Closed), []);
        assert_eq!(deliveries.leave(2, SocketEnd::Lost), [delivery]);
        // It listens again: only to what is sent from now on.
        deliveries.listen(2, topics(&["town"]));
        assert_eq!(deliveries.arrive(number_of(0, 1).bits(), 2), None);
        deliveries.begin(number_of(0, 2), 0, "town", delivery);
        assert_eq!(deliveries.arrive(number_of(0, 2).bits(), 2), Some(delivery));
        assert_eq!(deliveries.end([number_of(0, 1).bits(), number_of(0, 2).bits()]), [delivery, delivery], "user 3");
    }

    #[test]
    fn what_a_failed_request_carried_is_not_waited_for() {
        let deliveries = Deliveries::default();
        (0..3).for_each(|user| deliveries.listen(user, topics(&["town"])));
        deliveries.begin(number_of(0, 1), 0, "town", Delivery { step: 0, sent: Instant(1) });
        deliveries.cancel(number_of(0, 1));
        assert_eq!(deliveries.end([number_of(0, 1).bits()]), []);
    }

    #[test]
    fn a_thread_gives_up_what_is_overdue_in_the_order_of_sending() {
        let mut own = OwnDeliveries::default();
        for (request, sent) in [(1, 10), (2, 20), (3, 30)] {
            own.add(number_of(0, request), Instant(sent), Nanos(5));
        }
        assert!(own.take_overdue(Instant(14)).is_empty());
        assert_eq!(own.take_overdue(Instant(25)), [number_of(0, 1).bits(), number_of(0, 2).bits()]);
        assert_eq!(own.take_all(), [number_of(0, 3).bits()]);
    }
}
