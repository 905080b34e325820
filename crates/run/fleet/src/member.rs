//! An agent as the coordinator sees it: a task for each sends it orders, takes its answers, and notices when it is lost.

use crate::clock::{self, Clock, Offset};
use crate::delivery::{Inbox, Outbox};
use crate::message::{AgentFacts, Answer, Beat, Line, Order, Pulse, to_bytes};
use crate::subjects::{self, BEAT_EVERY, COORDINATOR_WAITS, FIRST_BEATS, FIRST_BEATS_EVERY};
use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use plimsoll_model::units::{Nanos, UnixTime};
use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::sleep_until;

/// A message from an agent, beside the agent's index.
#[derive(Debug)]
pub(crate) enum FromAgent {
    Answer(Answer),
    /// It is lost, for this reason.
    Lost(String),
}

/// The subject of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    Workload(u32),
    Job(u32),
    /// A build, a system or a sampling on an agent's host.
    Host(u32),
}

/// Brings the answers of all agents to those who wait for them.
#[derive(Debug, Default)]
pub(crate) struct Desk(Mutex<HashMap<Topic, Sender<(usize, FromAgent)>>>);

impl Desk {
    fn listeners(&self) -> MutexGuard<'_, HashMap<Topic, Sender<(usize, FromAgent)>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn listen(&self, topic: Topic, sender: Sender<(usize, FromAgent)>) {
        self.listeners().insert(topic, sender);
    }

    pub(crate) fn leave(&self, topic: Topic) {
        self.listeners().remove(&topic);
    }

    /// An answer to which nobody listens any more is about something that is over.
    fn bring(&self, agent: usize, answer: Answer) {
        let topic = match &answer {
            Answer::Prepared { workload, .. } => Topic::Workload(*workload),
            Answer::Ready { job, .. }
            | Answer::ObjectsPlaced { job, .. }
            | Answer::Console { job, .. }
            | Answer::SetUp { job, .. }
            | Answer::OwnLoad { job, .. }
            | Answer::Second { job, .. }
            | Answer::Ended { job, .. } => Topic::Job(*job),
            Answer::Host { about, .. } => Topic::Host(*about),
            // Its member is lost then.
            Answer::Leaves => return,
        };
        if let Some(listener) = self.listeners().get(&topic) {
            let _ = listener.send((agent, FromAgent::Answer(answer)));
        }
    }

    fn lose(&self, agent: usize, why: &str) {
        for listener in self.listeners().values() {
            let _ = listener.send((agent, FromAgent::Lost(why.to_owned())));
        }
    }
}

/// An agent that works for this run.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its name, which no other agent of the run has.
    pub(crate) name: String,
    pub(crate) facts: AgentFacts,
    orders: UnboundedSender<Bytes>,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    clock: Clock,
    lost: Option<String>,
    /// Bytes of its messages.
    received: u64,
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The line to an agent, before its task runs.
pub(crate) struct NewMember {
    /// The agent's place among those of the run.
    pub(crate) index: usize,
    pub(crate) name: String,
    pub(crate) facts: AgentFacts,
    pub(crate) session: String,
    /// Its messages, from before it was asked to work.
    pub(crate) messages: Subscriber,
}

impl Member {
    /// Attends to an agent from now on, until the member is dropped or the agent is lost.
    pub(crate) fn attend(client: &Client, new: NewMember, desk: &Arc<Desk>) -> Member {
        let NewMember { index, name, facts, session, messages } = new;
        let (orders, queue) = unbounded_channel();
        let state = Arc::new(Mutex::new(State::default()));
        let now = Instant::now();
        let line = MemberLine {
            index,
            client: client.clone(),
            subject: subjects::to_agent(&session),
            outbox: Outbox::new(subjects::most_of_frame(client.max_payload()), now),
            inbox: Inbox::default(),
            heard: now,
            state: Arc::clone(&state),
            desk: Arc::clone(desk),
        };
        let task = tokio::spawn(line.run(messages, queue));
        Member { name, facts, orders, state, task }
    }

    /// Sends an order. One to an agent that is lost goes nowhere.
    pub(crate) fn order(&self, order: &Order) {
        let _ = self.orders.send(to_bytes(order));
    }

    /// Lets the agent go. The task that does so ends then.
    pub(crate) fn release(self) -> JoinHandle<()> {
        self.task
    }

    /// The reason why it is lost, if it is.
    pub(crate) fn lost(&self) -> Option<String> {
        locked(&self.state).lost.clone()
    }

    /// The lead of its clock; none before it has answered once.
    pub(crate) fn offset(&self) -> Option<Offset> {
        locked(&self.state).clock.offset()
    }

    /// The longest of the last ways to it and back.
    pub(crate) fn longest_way(&self) -> Nanos {
        locked(&self.state).clock.longest_way()
    }

    /// Bytes of its messages until now.
    pub(crate) fn received(&self) -> u64 {
        locked(&self.state).received
    }
}

/// The coordinator's end of the line to an agent.
struct MemberLine {
    index: usize,
    client: Client,
    subject: String,
    outbox: Outbox,
    inbox: Inbox,
    /// When the agent last gave a sign of life.
    heard: Instant,
    state: Arc<Mutex<State>>,
    desk: Arc<Desk>,
}

impl MemberLine {
    async fn run(mut self, mut messages: Subscriber, mut orders: UnboundedReceiver<Bytes>) {
        let (mut beats, mut next_beat) = (0, tokio::time::Instant::now());
        let why = loop {
            tokio::select! {
                message = messages.next() => match message {
                    Some(message) => if self.take(&message.payload) { break "it was told to end".to_owned() },
                    None => break "the connection to NATS has ended".to_owned(),
                },
                order = orders.recv() => match order {
                    Some(order) => self.send_message(order).await,
                    None => {
                        self.send_message(to_bytes(&Order::Release)).await;
                        let _ = self.client.flush().await;
                        return;
                    }
                },
                () = sleep_until(next_beat) => {
                    if self.heard.elapsed() > COORDINATOR_WAITS {
                        break format!("nothing was heard of it for {} s", COORDINATOR_WAITS.as_secs());
                    }
                    self.beat().await;
                    beats += 1;
                    let pause = if beats < FIRST_BEATS { FIRST_BEATS_EVERY } else { BEAT_EVERY };
                    next_beat = tokio::time::Instant::now() + pause;
                }
            }
        };
        locked(&self.state).lost = Some(why.clone());
        self.desk.lose(self.index, &why);
    }

    async fn send_message(&mut self, message: Bytes) {
        for frame in self.outbox.frames(message, Instant::now()) {
            self.publish(&Line::Frame(frame)).await;
        }
    }

    async fn beat(&mut self) {
        for frame in self.outbox.overdue(Instant::now()) {
            self.publish(&Line::Frame(frame)).await;
        }
        let beat = Beat { sent: UnixTime::of(SystemTime::now()), confirmed: self.inbox.confirmed() };
        self.publish(&Line::Sign(beat)).await;
    }

    async fn publish(&self, line: &Line<Beat>) {
        // What is lost with the connection is sent again.
        let _ = self.client.publish(self.subject.clone(), line.to_bytes()).await;
    }

    /// Takes a message of the agent. Returns true if it is the last.
    fn take(&mut self, message: &Bytes) -> bool {
        locked(&self.state).received += message.len() as u64;
        match Line::<Pulse>::read(message) {
            Some(Line::Sign(pulse)) => self.take_pulse(pulse),
            Some(Line::Frame(frame)) => match self.inbox.take(frame).as_ref().and_then(Answer::read) {
                Some(Answer::Leaves) => return true,
                Some(answer) => self.desk.bring(self.index, answer),
                None => {}
            },
            None => {}
        }
        false
    }

    fn take_pulse(&mut self, pulse: Pulse) {
        let (now, returned) = (Instant::now(), UnixTime::of(SystemTime::now()));
        self.heard = now;
        self.outbox.confirm(pulse.confirmed, now);
        let Pulse { beat: sent, received, answered, .. } = pulse;
        locked(&self.state).clock.take(clock::Beat { sent, received, answered, returned });
    }
}
