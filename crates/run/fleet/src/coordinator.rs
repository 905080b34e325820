//! The coordinator of a run: finds agents, has them work for the run, and is a [`Generator`] whose load they generate.

use crate::broker::{self, Broker, BrokerError};
use crate::files;
use crate::host::AgentHost;
use crate::job::FleetJob;
use crate::member::{Desk, FromAgent, Member, NewMember, Topic};
use crate::message::{AgentFacts, Answer, Engagement, FORM, Order, from_bytes, to_bytes};
use crate::subjects;
use async_nats::jetstream::object_store::ObjectStore;
use async_nats::{Client, Message};
use bytes::Bytes;
use futures_util::StreamExt;
use plimsoll_model::database::Address;
use plimsoll_model::job::Job;
use plimsoll_model::workload::{Connect, Steps, Workload};
use plimsoll_runner::generator::{Generator, JobUnderWay, NotReady, PreparedWorkload};
use plimsoll_runner::host::Host;
use plimsoll_study::LostAgent;
use plimsoll_system::{Interrupt, random_text};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// Agents are asked again after this time whether they are there, until enough are.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// An agent with several of the labels of systems runs the systems of all of them, if no other agent has come by then.
const ONE_FOR_ALL_AFTER: Duration = Duration::from_secs(2);

/// The longest time in which an agent says whether it works for the run.
const ENGAGE_WITHIN: Duration = Duration::from_secs(5);

/// Milliseconds by which the begin of the first load is told ahead, beside the way of the message.
const FIRST_LEAD: u32 = 50;

/// The longest time for which the end of a run waits for the broker to take its last messages.
const RELEASE_WITHIN: Duration = Duration::from_secs(2);

/// An interruption is noticed after at most this time while agents are waited for.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The agents that a run is to have.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The number of those that generate load; none where the run does that itself.
    pub agents: usize,
    /// Labels that each of them must have.
    pub labels: BTreeSet<String>,
    /// The labels of those on whose hosts systems run, one for each.
    pub hosts: BTreeSet<String>,
    /// The longest time to wait for them.
    pub wait: Duration,
    /// The consequence of one that is lost.
    pub when_lost: LostAgent,
    /// The run, as agents name it to people.
    pub run: String,
}

/// The reason why a run has no fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The broker cannot be reached.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// Too few agents came in time.
    #[error("{0}")]
    TooFew(String),
    /// The run was interrupted while it waited for agents.
    #[error("interrupted while waiting for agents")]
    Interrupted,
    /// This machine refuses what is needed.
    #[error("failed to set up the line to the agents: {0}")]
    Machine(#[from] std::io::Error),
}

/// Agents that work for a run: they generate its load together, or run its systems. Dropping it lets them go.
pub struct Fleet {
    shared: Arc<Shared>,
}

/// The state that the fleet, its workloads and its jobs share.
pub(crate) struct Shared {
    /// The agents that generate load.
    pub(crate) members: Vec<Member>,
    /// The agents that run systems.
    pub(crate) hosts: Vec<HostMember>,
    pub(crate) desk: Arc<Desk>,
    client: Client,
    /// The name of the bucket with files for the agents, and the files in it by their SHA-256; none before the first file.
    bucket: String,
    stored: Mutex<Option<(ObjectStore, BTreeSet<String>)>>,
    /// The number of the next workload or job.
    next: AtomicU32,
    /// The consequence of an agent that is lost.
    pub(crate) when_lost: LostAgent,
    /// The agents of which a load has said that they were lost.
    told_lost: Mutex<BTreeSet<usize>>,
    /// Milliseconds by which the begin of a load is told ahead, beside the way of the message.
    pub(crate) lead: AtomicU32,
    interrupt: Interrupt,
    runtime: Runtime,
}

/// An agent that runs systems.
pub(crate) struct HostMember {
    pub(crate) member: Member,
    /// The labels of the study that it stands for.
    labels: BTreeSet<String>,
    /// The folder there for files of this run.
    pub(crate) folder: PathBuf,
    /// Its answers alone.
    pub(crate) desk: Arc<Desk>,
}

impl Fleet {
    /// Waits for agents and has them work for the run. `tell` gets a sentence whenever the number of those that are there
    /// has changed.
    ///
    /// # Errors
    /// The broker cannot be reached, too few agents come, or the run is interrupted.
    pub fn gather(
        broker: &Broker,
        wanted: &Wanted,
        interrupt: &Interrupt,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Fleet, FleetError> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("agents").enable_all().build()?;
        let client = runtime.block_on(broker.connect(&format!("plimsoll run {}", wanted.run)))?;
        let desk = Arc::new(Desk::default());
        let (known, members, hosts) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut search = Search { client: &client, wanted, desk: &desk, known, members, hosts };
        runtime.block_on(search.run(broker, interrupt, tell))?;
        let Search { members, hosts, .. } = search;
        let bucket = format!("plimsoll-{}", random_text(20)?);
        let shared = Shared {
            members,
            hosts,
            desk,
            client,
            bucket,
            stored: Mutex::new(None),
            next: AtomicU32::new(1),
            when_lost: wanted.when_lost,
            told_lost: Mutex::default(),
            lead: AtomicU32::new(FIRST_LEAD),
            interrupt: interrupt.clone(),
            runtime,
        };
        Ok(Fleet { shared: Arc::new(shared) })
    }

    /// The hosts on which systems run, by the labels of the study.
    #[must_use]
    pub fn hosts(&self) -> BTreeMap<String, Box<dyn Host>> {
        let host = |index| Box::new(AgentHost { shared: Arc::clone(&self.shared), index }) as Box<dyn Host>;
        let labels = self.shared.hosts.iter().enumerate().flat_map(|(index, host)| {
            let labels = host.labels.iter().cloned();
            labels.map(move |label| (label, index))
        });
        labels.map(|(label, index)| (label, host(index))).collect()
    }

    /// The names of the agents that generate load, with what each said of itself.
    pub fn agents(&self) -> impl Iterator<Item = (&str, &AgentFacts)> {
        self.shared.members.iter().map(|member| (member.name.as_str(), &member.facts))
    }
}

/// The search for agents.
struct Search<'a> {
    client: &'a Client,
    wanted: &'a Wanted,
    desk: &'a Arc<Desk>,
    /// The agents that have answered, by id.
    known: BTreeMap<String, AgentFacts>,
    members: Vec<Member>,
    hosts: Vec<HostMember>,
}

impl Search<'_> {
    async fn run(
        &mut self,
        broker: &Broker,
        interrupt: &Interrupt,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), FleetError> {
        let lost = |error: String| FleetError::Broker(BrokerError { url: broker.shown(), why: error });
        let inbox = self.client.new_inbox();
        let mut answers = self.client.subscribe(inbox.clone()).await.map_err(|error| lost(error.to_string()))?;
        let (begun, mut told, mut told_missing) = (Instant::now(), None, None);
        let mut asked: Option<Instant> = None;
        loop {
            if interrupt.is_set() {
                return Err(FleetError::Interrupted);
            }
            if asked.is_none_or(|asked| asked.elapsed() >= ASK_EVERY) {
                asked = Some(Instant::now());
                let sent = self.client.publish_with_reply(subjects::WHO, inbox.clone(), Bytes::new()).await;
                sent.map_err(|error| lost(error.to_string()))?;
            }
            if let Ok(Some(answer)) = tokio::time::timeout(POLL_EVERY, answers.next()).await {
                if let Some(facts) = from_bytes::<AgentFacts>(&answer.payload) {
                    self.known.insert(facts.id.clone(), facts);
                }
                // All that have answered are looked at together, so that names decide and not the fastest.
                continue;
            }
            // Those that load may come from any agent.
            self.engage_hosts(begun.elapsed() >= ONE_FOR_ALL_AFTER).await.map_err(lost)?;
            if let Some(missing) = self.missing_hosts().first() {
                if begun.elapsed() >= self.wanted.wait {
                    return Err(FleetError::TooFew(self.no_host()));
                }
                if told_missing.as_ref() != Some(missing) && begun.elapsed() >= ASK_EVERY {
                    tell(&format!("waiting for an agent with the label `{missing}` that runs systems"));
                    told_missing = Some(missing.clone());
                }
                continue;
            }
            let suitable: Vec<AgentFacts> =
                self.known.values().filter(|facts| self.unsuitable(facts).is_none()).cloned().collect();
            let there = self.left() + suitable.len();
            if there >= self.wanted.agents {
                self.engage(suitable).await.map_err(lost)?;
            }
            if self.left() >= self.wanted.agents {
                return Ok(());
            }
            if begun.elapsed() >= self.wanted.wait {
                return Err(FleetError::TooFew(self.too_few()));
            }
            if told != Some(there) && begun.elapsed() >= ASK_EVERY {
                told = Some(there);
                tell(&format!("waiting for agents: {there} of {} are there", self.wanted.agents));
            }
        }
    }

    /// Has agents work for the run, in the order of their names, until there are enough.
    async fn engage(&mut self, mut suitable: Vec<AgentFacts>) -> Result<(), String> {
        // Those that may run systems last.
        suitable.sort_by(|one, other| {
            let key = |facts: &AgentFacts| (facts.systems.is_some(), facts.name.clone(), facts.id.clone());
            key(one).cmp(&key(other))
        });
        for facts in suitable {
            if self.left() == self.wanted.agents {
                break;
            }
            let index = self.members.len();
            if let Some((new, _)) = self.engage_one(index, facts).await? {
                self.members.push(Member::attend(self.client, new, self.desk));
            }
        }
        Ok(())
    }

    /// Has agents run the systems of the labels for which there is none yet: another one for each label, those with fewer of
    /// the labels first. `may_share` lets one that works for this run already have a label for which there is no other.
    async fn engage_hosts(&mut self, may_share: bool) -> Result<(), String> {
        // One that was lost while others were waited for.
        self.hosts.retain(|host| host.member.lost().is_none());
        for label in self.missing_hosts() {
            let mut suitable: Vec<AgentFacts> =
                self.known.values().filter(|facts| self.unsuitable_host(facts, &label).is_none()).cloned().collect();
            let wanted = |facts: &AgentFacts| self.wanted.hosts.intersection(&facts.labels).count();
            suitable.sort_by_key(|facts| (wanted(facts), facts.name.clone(), facts.id.clone()));
            for facts in suitable {
                if let Some((new, folder)) = self.engage_one(0, facts).await? {
                    let desk = Arc::new(Desk::default());
                    let member = Member::attend(self.client, new, &desk);
                    self.hosts.push(HostMember { member, labels: [label.clone()].into(), folder, desk });
                    break;
                }
            }
            if may_share
                && self.missing_hosts().contains(&label)
                && let Some(host) = self.hosts.iter_mut().find(|host| host.member.facts.labels.contains(&label))
            {
                host.labels.insert(label);
            }
        }
        Ok(())
    }

    /// Has an agent work for the run; returns the line to it, and its folder for the run. None if it does not.
    async fn engage_one(&mut self, index: usize, facts: AgentFacts) -> Result<Option<(NewMember, PathBuf)>, String> {
        let session = random_text(24).map_err(|error| error.to_string())?;
        let subscribed = self.client.subscribe(subjects::to_coordinator(&session)).await;
        let messages = subscribed.map_err(|error| error.to_string())?;
        let engagement = Engagement { session: session.clone(), run: self.wanted.run.clone() };
        let asked = self.client.request(subjects::of_agent(&facts.id), to_bytes(&engagement));
        let answer = tokio::time::timeout(ENGAGE_WITHIN, asked).await;
        // One that does not accept is gone, or works for another run by now: if it is there, it says so again. One that does is
        // ours from now on, and not busy with another run.
        self.known.remove(&facts.id);
        let accepted = |message: Message| from_bytes::<Option<PathBuf>>(&message.payload).flatten();
        let folder = answer.ok().and_then(Result::ok).and_then(accepted);
        let name = self.name_of(&facts);
        Ok(folder.map(|folder| (NewMember { index, name, facts, session, messages }, folder)))
    }

    /// The labels for which no agent runs systems yet.
    fn missing_hosts(&self) -> Vec<String> {
        let is_there = |label: &&String| self.hosts.iter().any(|host| host.labels.contains(*label));
        self.wanted.hosts.iter().filter(|label| !is_there(label)).cloned().collect()
    }

    /// The reason why an agent cannot run the systems of a label, if there is one.
    fn unsuitable_host(&self, facts: &AgentFacts, label: &str) -> Option<String> {
        let general = self.unfit(facts);
        let no_label = || (!facts.labels.contains(label)).then(|| format!("has no label `{label}`"));
        let no_place = || {
            let Some(place) = &facts.systems else {
                return Some(
                    "runs no systems: start it with `--systems FOLDER`, the folder with the files of studies"
                        .to_owned(),
                );
            };
            let is_own = place.address.is_loopback() && facts.network != plimsoll_telemetry::network();
            (is_own || place.address.is_unspecified()).then(|| {
                format!(
                    "would run systems at {}, which only its own host reaches: start it with `--address`, the address at \
                     which others reach that host",
                    place.address
                )
            })
        };
        general.or_else(no_label).or_else(no_place)
    }

    fn no_host(&self) -> String {
        let (missing, wait) = (self.missing_hosts(), self.wanted.wait.as_secs_f64().round());
        let label = missing.first().map_or("", String::as_str);
        let mut text =
            format!("expected an agent with the label `{label}` that runs systems (`on`), found none after {wait} s");
        for facts in self.known.values() {
            if let Some(why) = self.unsuitable_host(facts, label) {
                text += &format!("; `{}` {why}", facts.name);
            }
        }
        text + &format!(
            "; start one on the host of the system with `plimsoll agent --nats URL --label {label} --systems FOLDER`, or wait \
             longer (`--wait`)"
        )
    }

    /// The number of agents that work for the run and are not lost.
    fn left(&self) -> usize {
        self.members.iter().filter(|member| member.lost().is_none()).count()
    }

    /// A name that no other agent of the run has: several agents of a host have the same one unless they are named.
    fn name_of(&self, facts: &AgentFacts) -> String {
        let is_free = |name: &str| self.all().all(|member| member.name != name);
        let numbered = (2..).map(|number| format!("{}-{number}", facts.name));
        std::iter::once(facts.name.clone()).chain(numbered).find(|name| is_free(name)).expect("numbers have no end")
    }

    /// All agents that work for the run.
    fn all(&self) -> impl Iterator<Item = &Member> {
        self.hosts.iter().map(|host| &host.member).chain(&self.members)
    }

    /// The reason why an agent cannot generate load for the run, if there is one.
    fn unsuitable(&self, facts: &AgentFacts) -> Option<String> {
        let lacks = || self.wanted.labels.difference(&facts.labels).next();
        self.unfit(facts).or_else(|| lacks().map(|label| format!("has no label `{label}`")))
    }

    /// The reason why an agent cannot work for the run at all, if there is one.
    fn unfit(&self, facts: &AgentFacts) -> Option<String> {
        match () {
            () if self.all().any(|member| member.facts.id == facts.id) => Some("works for this run".to_owned()),
            () if (facts.version.as_str(), facts.form) != (VERSION, FORM) => {
                Some(format!("has another version of Plimsoll: {}, and this is {VERSION}", facts.version))
            }
            () if facts.is_busy => Some("works for another run".to_owned()),
            () => None,
        }
    }

    fn too_few(&self) -> String {
        let Wanted { agents, wait, .. } = self.wanted;
        let is_ours = |facts: &&AgentFacts| self.all().any(|member| member.facts.id == facts.id);
        let known = self.known.values().filter(|facts| !is_ours(facts));
        let (there, others): (Vec<_>, Vec<_>) =
            known.map(|facts| (facts, self.unsuitable(facts))).partition(|(_, why)| why.is_none());
        let plural = if *agents == 1 { "" } else { "s" };
        let mut text = format!(
            "expected {agents} agent{plural}, found {} after {} s",
            self.left() + there.len(),
            wait.as_secs_f64().round()
        );
        for (facts, why) in others {
            text += &format!("; `{}` {}", facts.name, why.unwrap_or_default());
        }
        text + "; start more with `plimsoll agent --nats URL`, ask for fewer (`--agents`), or wait longer (`--wait`)"
    }
}

impl Shared {
    pub(crate) fn next_number(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The agents that are not lost.
    fn left(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|index| self.members[*index].lost().is_none()).collect()
    }

    /// The reason why the run ends, if an agent is lost and the study says that it ends then.
    pub(crate) fn reason_to_stop(&self) -> Option<String> {
        let stops = self.when_lost == LostAgent::Stop;
        let (name, why) = self.members.iter().find_map(|member| Some((&member.name, member.lost()?)))?;
        stops.then(|| {
            format!(
                "agent `{name}` was lost ({why}), and the study says that the run stops then (`generator.lost_agent`)"
            )
        })
    }

    /// Notes that a load says of an agent that it was lost. Returns false if one has said so before.
    pub(crate) fn tell_lost(&self, agent: usize) -> bool {
        self.told_lost.lock().unwrap_or_else(PoisonError::into_inner).insert(agent)
    }

    /// Puts contents that are not there yet into the bucket.
    fn store(&self, contents: &BTreeMap<String, std::path::PathBuf>) -> Result<(), String> {
        if contents.is_empty() {
            return Ok(());
        }
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        // A broker that was restarted has kept nothing.
        let is_there = || self.runtime.block_on(broker::find_bucket(&self.client, &self.bucket)).is_ok();
        if stored.is_none() || !is_there() {
            *stored = Some((self.runtime.block_on(broker::make_bucket(&self.client, &self.bucket))?, BTreeSet::new()));
        }
        let (bucket, known) = stored.as_mut().expect("made above");
        for (sha256, path) in contents {
            if known.contains(sha256) {
                continue;
            }
            let shown = path.display();
            let content =
                std::fs::read(path).map_err(|error| format!("failed to read {shown} for the agents: {error}"))?;
            let put = self.runtime.block_on(bucket.put(sha256.as_str(), &mut content.as_slice()));
            put.map_err(|error| format!("failed to send {shown} to the agents: {error}"))?;
            known.insert(sha256.clone());
        }
        Ok(())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let stored = self.stored.get_mut().unwrap_or_else(PoisonError::into_inner);
        let has_bucket = stored.take().is_some();
        // Each member's task releases its agent when nobody gives it orders any more.
        let hosts = self.hosts.drain(..).map(|host| host.member);
        let released: Vec<_> = hosts.chain(self.members.drain(..)).map(Member::release).collect();
        let end = async {
            for task in released {
                let _ = task.await;
            }
            if has_bucket {
                broker::remove_bucket(&self.client, &self.bucket).await;
            }
        };
        // Agents that are not reached are free when they have heard nothing for a while.
        let _ = self.runtime.block_on(async { tokio::time::timeout(RELEASE_WITHIN, end).await });
    }
}

impl Generator for Fleet {
    fn prepare(&self, workload: &Workload, address: Option<SocketAddr>) -> Result<Box<dyn PreparedWorkload>, NotReady> {
        let shared = Arc::clone(&self.shared);
        let mut what = Box::new(workload.clone());
        let members = shared.left();
        check_shared_work(&what, members.len()).map_err(NotReady::Workload)?;
        let own = plimsoll_telemetry::network();
        let elsewhere = members.iter().map(|index| &shared.members[*index]).find(|member| member.facts.network != own);
        if let Some(member) = elsewhere {
            check_reach(&what, address, &member.name).map_err(NotReady::Workload)?;
        }
        let gathered = files::gather(&mut what).map_err(NotReady::Workload)?;
        shared.store(&gathered.contents).map_err(NotReady::Generator)?;
        let secrets = what.secrets_mut().into_iter().map(|secret| secret.0.clone()).collect();
        let number = shared.next_number();
        let (sender, answers) = channel();
        shared.desk.listen(Topic::Workload(number), sender);
        let bucket = shared.bucket.clone();
        let order = Order::Prepare { workload: number, what, address, files: gathered.files, bucket, secrets };
        members.iter().for_each(|index| shared.members[*index].order(&order));
        let mut waited_for: BTreeSet<usize> = members.iter().copied().collect();
        let is_script = matches!(workload.steps, Steps::Script(_));
        let spoilt = Arc::default();
        let mut fleet = FleetWorkload { shared, number, members, is_script, users_stay: false, spoilt };
        // One that was lost before its answers were listened to.
        waited_for.retain(|index| fleet.shared.members[*index].lost().is_none());
        let mut ready = Vec::new();
        while !waited_for.is_empty() {
            if fleet.shared.interrupt.is_set() {
                return Err(NotReady::Interrupted);
            }
            // The desk keeps the other end.
            let Ok((index, answer)) = answers.recv_timeout(POLL_EVERY) else { continue };
            if !waited_for.remove(&index) {
                continue;
            }
            match answer {
                FromAgent::Answer(Answer::Prepared { result: Err(why), .. }) => {
                    let name = &fleet.shared.members[index].name;
                    return Err(NotReady::Workload(format!("agent `{name}` cannot do this work: {why}")));
                }
                FromAgent::Answer(_) => ready.push(index),
                FromAgent::Lost(_) => {}
            }
        }
        ready.sort_unstable();
        fleet.members = ready;
        if let Some(reason) = fleet.shared.reason_to_stop() {
            return Err(NotReady::Generator(reason));
        }
        if fleet.members.is_empty() {
            let lost =
                fleet.shared.members.iter().filter_map(|member| Some(format!("`{}`: {}", member.name, member.lost()?)));
            let lost: Vec<String> = lost.collect();
            return Err(NotReady::Generator(format!("no agent is left ({})", lost.join("; "))));
        }
        Ok(Box::new(fleet))
    }
}

/// Refuses what only users of one process can do together.
fn check_shared_work(workload: &Workload, agents: usize) -> Result<(), String> {
    if let Connect::Shared(connections) = workload.connect
        && (connections as usize) < agents
    {
        return Err(format!(
            "the users share {connections} connections, and each of {agents} agents needs one of its own: use fewer agents, or \
             let them share more (`connections`)"
        ));
    }
    let Steps::Flow(flow) = &workload.steps else { return Ok(()) };
    if agents > 1 && flow.socket.as_ref().is_some_and(|socket| socket.deliveries.is_some()) {
        return Err(
            "deliveries are matched between users of one generator, so that those to users of other agents would \
                    count as lost: use one agent (`--agents 1`), or leave `deliveries` out"
                .to_owned(),
        );
    }
    Ok(())
}

/// Refuses a target at the loopback of this machine, which is not that of an agent elsewhere.
fn check_reach(workload: &Workload, address: Option<SocketAddr>, agent: &str) -> Result<(), String> {
    let of_database = match &workload.steps {
        Steps::Sql(sql) => sql.endpoint.as_ref().and_then(|endpoint| match &endpoint.address {
            Address::Tcp { host, .. } if host == "localhost" => Some(IpAddr::from([127, 0, 0, 1])),
            Address::Tcp { host, .. } => host.parse().ok(),
            Address::Unix(_) => None,
        }),
        _ => None,
    };
    match address.map(|address| address.ip()).or(of_database) {
        Some(target) if target.to_canonical().is_loopback() => Err(format!(
            "the target is at {target}, the loopback of this machine, and agent `{agent}` is on another: let the system listen \
             on an address that agents reach, and name that as the target and under `allow` (docs/agents.md)"
        )),
        _ => Ok(()),
    }
}

/// A workload that agents have compiled.
struct FleetWorkload {
    shared: Arc<Shared>,
    number: u32,
    /// The agents that have it.
    members: Vec<usize>,
    is_script: bool,
    /// True if the next job has the users of the last one.
    users_stay: bool,
    /// Set if these users ended early: some agents have new ones by then, and others do not.
    spoilt: Arc<AtomicBool>,
}

impl PreparedWorkload for FleetWorkload {
    fn begin(&mut self, job: Job) -> Box<dyn JobUnderWay> {
        // The script of users that stay was set up for their first job.
        let stayed = std::mem::replace(&mut self.users_stay, job.stays);
        if !stayed {
            self.spoilt.store(false, Ordering::Relaxed);
        }
        let sets_up = self.is_script && !stayed;
        Box::new(FleetJob::begin(&self.shared, self.number, &self.members, &job, sets_up, &self.spoilt))
    }
}

impl Drop for FleetWorkload {
    fn drop(&mut self) {
        self.shared.desk.leave(Topic::Workload(self.number));
        let order = Order::Forget { workload: self.number };
        self.members.iter().for_each(|index| self.shared.members[*index].order(&order));
    }
}
