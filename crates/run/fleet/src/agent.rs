//! An agent: waits at the broker until a run asks it to work, works for it, and is free again when the run is over or is not
//! heard any more.

use crate::broker::{self, Broker};
use crate::delivery::{Inbox, Outbox};
use crate::files;
use crate::message::{
    AgentFacts, Answer, Beat, Engagement, FORM, FromHost, HostOrder, Line, Order, PlaceForSystems, Pulse, Refusal,
    SentFile, from_bytes, to_bytes,
};
use crate::own_folder::{self, OwnFolder};
use crate::permit::Permits;
use crate::search::VERSION;
use crate::subjects::{self, AGENT_WAITS};
use crate::systems::Systems;
use crate::worker::Worker;
use async_nats::{Client, Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use plimsoll_model::units::UnixTime;
use plimsoll_system::{Interrupt, Launcher, random_text};
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tokio::io::AsyncReadExt;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// The time after which an agent looks again whether the coordinator is still heard, and whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The longest time in which the files of a workload come.
const FETCH_WITHIN: Duration = Duration::from_secs(300);

/// The longest in which the last messages of an agent that is told to end reach the broker, which may be away.
const GOODBYE_WITHIN: Duration = Duration::from_secs(1);

/// The pause before another attempt to reach a broker that is not there.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// An agent, as whoever starts it describes it.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its name in reports.
    pub name: String,
    /// Words that runs may ask for.
    pub labels: BTreeSet<String>,
    /// The hosts and folders that it may use.
    pub permits: Permits,
    /// Threads that generate load.
    pub threads: usize,
    /// The place and the means for systems on its host; none if it only generates load.
    pub systems: Option<SystemsHere>,
}

/// How an agent runs systems of studies on its host.
#[derive(Clone, Debug)]
pub struct SystemsHere {
    /// The folder that stands for those of studies.
    pub folder: PathBuf,
    /// The address at which others reach the host; none for that by which the host reaches the broker.
    pub address: Option<IpAddr>,
    /// The launcher that starts them.
    pub launcher: Launcher,
    /// This program: `{plimsoll}` in systems.
    pub program: PathBuf,
}

/// The reason why an agent cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// This machine refuses what is needed.
    #[error("failed to set up the line to the broker: {0}")]
    Machine(#[from] io::Error),
    /// The connection has ended for good.
    #[error("the connection to NATS at {0} has ended")]
    Ended(String),
    /// It is not known how others reach this host.
    #[error("failed to find the address of this host at which its systems are reached ({0}): name it with `--address`")]
    NoAddress(io::Error),
}

impl Agent {
    /// Works for runs, one after the other, until it is interrupted. `tell` gets a sentence for each change: connected,
    /// working for a run, free.
    ///
    /// # Errors
    /// The machine refuses a thread or a folder.
    pub fn run(&self, broker: &Broker, interrupt: &Interrupt, tell: &mut dyn FnMut(&str)) -> Result<(), AgentError> {
        own_folder::remove_leftovers();
        if self.systems.is_some() {
            plimsoll_database::remove_all_leftovers();
        }
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("coordinator").enable_all().build()?;
        runtime.block_on(async {
            let Some(client) = self.connect(broker, interrupt, tell).await else { return Ok(()) };
            self.wait_for_runs(&client, broker, interrupt, tell).await
        })
    }

    /// Connects to the broker, which may come later than the agent. None if the agent is interrupted.
    async fn connect(&self, broker: &Broker, interrupt: &Interrupt, tell: &mut dyn FnMut(&str)) -> Option<Client> {
        let mut told = String::new();
        while !interrupt.is_set() {
            match broker.connect(&format!("plimsoll agent {}", self.name)).await {
                Ok(client) => return Some(client),
                Err(error) => {
                    let error = error.to_string();
                    if error != told {
                        tell(&format!("{error}; trying again every second"));
                        told = error;
                    }
                }
            }
            sleep(RETRY_AFTER).await;
        }
        None
    }

    async fn wait_for_runs(
        &self,
        client: &Client,
        broker: &Broker,
        interrupt: &Interrupt,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), AgentError> {
        let id = random_text(16)?;
        let place = self.systems.as_ref().map(|systems| systems.place(broker)).transpose()?;
        let ended = || AgentError::Ended(broker.shown());
        let mut questions = client.subscribe(subjects::WHO).await.map_err(|_| ended())?;
        let mut requests = client.subscribe(subjects::of_agent(&id)).await.map_err(|_| ended())?;
        tell(&format!("agent `{}` waits for runs at {}", self.name, broker.shown()));
        let mut session: Option<JoinHandle<&'static str>> = None;
        let mut looks = interval(LOOK_EVERY);
        loop {
            tokio::select! {
                question = questions.next() => {
                    let question = question.ok_or_else(ended)?;
                    let facts = self.facts(&id, place.as_ref(), session.is_some());
                    answer(client, &question, to_bytes(&facts)).await;
                }
                request = requests.next() => {
                    let request = request.ok_or_else(ended)?;
                    let Some(engagement) = from_bytes::<Engagement>(&request.payload) else { continue };
                    let mut folder = None;
                    if session.is_none() {
                        tell(&format!("working for {}", engagement.run));
                        let (line, messages, answers) = self.session(client, &engagement, interrupt).await?;
                        folder = Some(line.work.folder.path().to_owned());
                        session = Some(tokio::spawn(line.run(messages, answers)));
                    }
                    answer(client, &request, to_bytes(&folder)).await;
                }
                _ = looks.tick() => {
                    if interrupt.is_set() {
                        // A session ends by itself then.
                        if let Some(session) = session.take() {
                            let _ = session.await;
                        }
                        return Ok(());
                    }
                    if session.as_ref().is_some_and(JoinHandle::is_finished)
                        && let Some(session) = session.take()
                    {
                        tell(&format!("free again: {}", session.await.unwrap_or("it broke off")));
                    }
                }
            }
        }
    }

    fn facts(&self, id: &str, place: Option<&PlaceForSystems>, is_busy: bool) -> AgentFacts {
        AgentFacts {
            name: self.name.clone(),
            id: id.to_owned(),
            version: VERSION.to_owned(),
            form: FORM,
            labels: self.labels.clone(),
            processors: plimsoll_telemetry::allowed_processors().len(),
            threads: self.threads,
            permits: self.permits.clone(),
            memory: plimsoll_telemetry::memory_available(),
            open_files: plimsoll_telemetry::most_open_files(),
            network: plimsoll_telemetry::network(),
            is_busy,
            systems: place.cloned(),
        }
    }

    /// The work for a run, with what comes from its coordinator and from its worker. It listens already, so that no message
    /// is missed.
    async fn session(
        &self,
        client: &Client,
        engagement: &Engagement,
        interrupt: &Interrupt,
    ) -> Result<(AgentLine, Subscriber, UnboundedReceiver<Bytes>), AgentError> {
        let Engagement { session, .. } = engagement;
        let messages = client.subscribe(subjects::to_agent(session)).await.map_err(io::Error::other)?;
        let folder = Arc::new(OwnFolder::make()?);
        let (answers, from_worker) = unbounded_channel();
        let (orders, to_worker) = channel();
        let (permits, path) = (self.permits.clone(), folder.path().to_owned());
        let worker = Worker { permits, threads: self.threads, folder: path, answers: answers.clone() };
        let thread = thread::Builder::new().name("worker".to_owned()).spawn(move || worker.run(&to_worker))?;
        let systems = self.systems.as_ref().map(|here| SystemsAtWork::begin(&self.name, here, folder.path(), &answers));
        let systems = systems.transpose()?;
        let now = Instant::now();
        let line = AgentLine {
            client: client.clone(),
            subject: subjects::to_coordinator(session),
            outbox: Outbox::new(subjects::most_of_frame(client.max_payload()), now),
            inbox: Inbox::default(),
            heard: now,
            work: Work { orders: Some(orders), thread: Some(thread), systems, folder },
            fetches: JoinSet::new(),
            answers,
            interrupt: interrupt.clone(),
        };
        Ok((line, messages, from_worker))
    }
}

async fn answer(client: &Client, question: &Message, answer: Bytes) {
    if let Some(reply) = question.reply.clone() {
        // Whoever asked asks again.
        let _ = client.publish(reply, answer).await;
    }
}

impl SystemsHere {
    /// The description of the place that runs get.
    fn place(&self, broker: &Broker) -> Result<PlaceForSystems, AgentError> {
        let address = self.address.map_or_else(|| broker.own_address().map_err(AgentError::NoAddress), Ok)?;
        let (folder, program) = (self.folder.clone(), self.program.clone());
        Ok(PlaceForSystems { address, folder, program, processors: plimsoll_telemetry::allowed_processors() })
    }
}

/// The worker's thread, what runs systems, and their folder. Dropping it ends all load and all systems. The folder is removed
/// then, or after the file that is being written.
struct Work {
    orders: Option<Sender<Order>>,
    thread: Option<thread::JoinHandle<()>>,
    systems: Option<SystemsAtWork>,
    folder: Arc<OwnFolder>,
}

/// The thread that runs systems. Dropping it kills them.
struct SystemsAtWork {
    orders: Option<Sender<(u32, HostOrder)>>,
    thread: Option<thread::JoinHandle<()>>,
    interrupt: Interrupt,
}

impl SystemsAtWork {
    fn begin(
        name: &str,
        here: &SystemsHere,
        folder: &Path,
        answers: &UnboundedSender<Bytes>,
    ) -> io::Result<SystemsAtWork> {
        let (interrupt, (orders, to_systems)) = (Interrupt::new(), channel());
        let systems = Systems {
            name: name.to_owned(),
            launcher: here.launcher.clone(),
            folder: folder.to_owned(),
            answers: answers.clone(),
            interrupt: interrupt.clone(),
        };
        let thread = thread::Builder::new().name("systems".to_owned()).spawn(move || systems.run(&to_systems))?;
        Ok(SystemsAtWork { orders: Some(orders), thread: Some(thread), interrupt })
    }
}

impl Drop for SystemsAtWork {
    fn drop(&mut self) {
        self.interrupt.set();
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Work {
    /// True if the thread has ended although there are orders to come.
    fn has_broken_off(&self) -> bool {
        let of_systems = self.systems.as_ref().and_then(|systems| systems.thread.as_ref());
        self.thread.iter().chain(of_systems).any(thread::JoinHandle::is_finished)
    }

    /// Gives an order about systems. Returns why it is not followed, if it is not.
    fn order_of_host(&self, about: u32, order: HostOrder) -> Result<(), String> {
        let orders = self.systems.as_ref().and_then(|systems| systems.orders.as_ref());
        let orders = orders.ok_or("it runs no systems: start it with `--systems FOLDER`")?;
        orders.send((about, order)).map_err(|_| "what ran its systems broke off".to_owned())
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The agent's end of the line to the coordinator of a run.
struct AgentLine {
    client: Client,
    subject: String,
    outbox: Outbox,
    inbox: Inbox,
    /// When the coordinator last gave a sign of life.
    heard: Instant,
    work: Work,
    /// Workloads whose files are on their way.
    fetches: JoinSet<()>,
    answers: UnboundedSender<Bytes>,
    interrupt: Interrupt,
}

impl AgentLine {
    /// Works until the run is over; returns why it is.
    async fn run(mut self, mut messages: Subscriber, mut answers: UnboundedReceiver<Bytes>) -> &'static str {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looked = Instant::now();
        let why = loop {
            tokio::select! {
                biased;
                _ = looks.tick() => {
                    // An agent that was stopped, or did not run for another reason, finds old signs of life waiting: by
                    // now the coordinator has given it up.
                    let stood_still = std::mem::replace(&mut looked, Instant::now()).elapsed() > AGENT_WAITS;
                    if stood_still || self.heard.elapsed() > AGENT_WAITS {
                        break "its coordinator is not heard any more";
                    }
                    if self.interrupt.is_set() {
                        break "it was interrupted";
                    }
                    if self.work.has_broken_off() {
                        break "its worker broke off";
                    }
                    for frame in self.outbox.overdue(Instant::now()) {
                        self.publish(&Line::Frame(frame)).await;
                    }
                }
                message = messages.next() => match message {
                    Some(message) => if self.take(&message.payload).await { break "the run is over" },
                    None => break "the connection to NATS has ended",
                },
                answer = answers.recv() => if let Some(answer) = answer {
                    for frame in self.outbox.frames(answer, Instant::now()) {
                        self.publish(&Line::Frame(frame)).await;
                    }
                },
            }
        };
        if self.interrupt.is_set() {
            let frames = self.outbox.frames(Answer::Leaves.to_bytes(), Instant::now());
            let goodbye = async {
                for frame in frames {
                    self.publish(&Line::Frame(frame)).await;
                }
                let _ = self.client.flush().await;
            };
            // Load and systems go on until then, also where the broker is away.
            let _ = timeout(GOODBYE_WITHIN, goodbye).await;
        }
        let AgentLine { work, mut fetches, .. } = self;
        // A fetch holds the orders of the worker.
        fetches.shutdown().await;
        // Threads that generate load end within one time-out.
        let _ = tokio::task::spawn_blocking(move || drop(work)).await;
        why
    }

    async fn publish(&self, line: &Line<Pulse>) {
        // What is lost with the connection is sent again.
        let _ = self.client.publish(self.subject.clone(), line.to_bytes()).await;
    }

    /// Takes a message of the coordinator. Returns true if it is the last.
    async fn take(&mut self, message: &Bytes) -> bool {
        let received = UnixTime::of(SystemTime::now());
        match Line::<Beat>::read(message) {
            Some(Line::Sign(Beat { sent, confirmed })) => {
                let now = Instant::now();
                self.heard = now;
                self.outbox.confirm(confirmed, now);
                let answered = UnixTime::of(SystemTime::now());
                let pulse = Pulse { beat: sent, received, answered, confirmed: self.inbox.confirmed() };
                self.publish(&Line::Sign(pulse)).await;
            }
            Some(Line::Frame(frame)) => match self.inbox.take(frame).as_deref().and_then(from_bytes::<Order>) {
                Some(Order::Release) => return true,
                Some(Order::Prepare { workload, files, bucket, what, address, secrets }) => {
                    let order =
                        Order::Prepare { workload, files: Vec::new(), bucket: String::new(), what, address, secrets };
                    self.fetch(order, workload, files, bucket);
                }
                Some(Order::Host { about, what }) => {
                    if let Err(why) = self.work.order_of_host(about, what) {
                        let what = FromHost::Reply(Err(Refusal::Failed(why)));
                        let _ = self.answers.send(Answer::Host { about, what }.to_bytes());
                    }
                }
                Some(Order::Interrupt) => {
                    if let Some(systems) = &self.work.systems {
                        systems.interrupt.set();
                    }
                }
                Some(order) => self.work.order(order),
                None => {}
            },
            None => {}
        }
        false
    }

    /// Fetches the files of a workload, then has the worker compile it.
    fn fetch(&mut self, order: Order, workload: u32, files: Vec<SentFile>, bucket: String) {
        let (client, answers, folder) = (self.client.clone(), self.answers.clone(), Arc::clone(&self.work.folder));
        let orders = self.work.orders.clone();
        self.fetches.spawn(async move {
            let fetched = timeout(FETCH_WITHIN, fetch(&client, &folder, &files, &bucket)).await;
            match fetched.unwrap_or_else(|_| Err("its files did not come from the broker in time".to_owned())) {
                Ok(()) => {
                    if let Some(orders) = orders {
                        let _ = orders.send(order);
                    }
                }
                Err(why) => {
                    let _ = answers.send(Answer::Prepared { workload, result: Err(why) }.to_bytes());
                }
            }
        });
    }
}

/// Writes the files of a workload below `folder`, with their content from the broker.
async fn fetch(client: &Client, folder: &Arc<OwnFolder>, files: &[SentFile], bucket: &str) -> Result<(), String> {
    let mut store = None;
    for file in files {
        let Some(sha256) = &file.sha256 else {
            files::write(folder.path(), file, None)?;
            continue;
        };
        if store.is_none() {
            store = Some(broker::find_bucket(client, bucket).await?);
        }
        let shown = file.path.display();
        let failed = |error: String| format!("{shown} cannot be had from the broker: {error}");
        let bucket = store.as_ref().expect("found above");
        let mut object = bucket.get(sha256.as_str()).await.map_err(|error| failed(error.to_string()))?;
        let mut content = Vec::new();
        object.read_to_end(&mut content).await.map_err(|error| failed(error.to_string()))?;
        write(folder, file, content).await.map_err(|error| error.to_string())??;
    }
    Ok(())
}

/// Writes a file on a thread that may wait for the disk. Nobody can hold it back, so the folder stays until it is done: what is
/// written later would be left behind.
fn write(folder: &Arc<OwnFolder>, file: &SentFile, content: Vec<u8>) -> JoinHandle<Result<(), String>> {
    let (folder, file) = (Arc::clone(folder), file.clone());
    tokio::task::spawn_blocking(move || files::write(folder.path(), &file, Some(&content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_written_after_the_end_of_the_work_goes_with_its_folder() {
        let runtime = Builder::new_current_thread().max_blocking_threads(1).build().expect("a runtime");
        let path = runtime.block_on(async {
            let folder = Arc::new(OwnFolder::make().expect("a folder"));
            let path = folder.path().to_owned();
            let (go_on, busy) = channel::<()>();
            let waits = tokio::task::spawn_blocking(move || busy.recv().is_ok());
            let file = SentFile { path: "/a/x".into(), sha256: Some(files::hash(b"x")) };
            let written = write(&folder, &file, b"x".to_vec());
            drop(folder);
            go_on.send(()).expect("its thread waits");
            assert!(waits.await.expect("no panic"));
            written.await.expect("no panic").expect("a disk");
            path
        });
        assert!(!path.exists());
    }
}
