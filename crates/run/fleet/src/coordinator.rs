//! The coordinator of a run: has agents work for it, and is a [`Generator`] whose load they generate.

use crate::broker::{self, Broker};
use crate::files;
use crate::host::AgentHost;
use crate::job::FleetJob;
use crate::member::{Desk, FromAgent, Member, Topic};
use crate::message::{AgentFacts, Answer, Order};
use crate::search::{FleetError, HostMember, POLL_EVERY, Search, Wanted};
use async_nats::Client;
use async_nats::jetstream::object_store::ObjectStore;
use plimsoll_model::database::Address;
use plimsoll_model::job::Job;
use plimsoll_model::workload::{Connect, Steps, Workload};
use plimsoll_runner::generator::{Generator, JobUnderWay, NotReady, PreparedWorkload};
use plimsoll_runner::host::Host;
use plimsoll_study::LostAgent;
use plimsoll_system::{Interrupt, random_text};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Milliseconds by which the begin of the first load is told ahead, beside the way of the message.
const FIRST_LEAD: u32 = 50;

/// The longest time for which the end of a run waits for the broker to take its last messages.
const RELEASE_WITHIN: Duration = Duration::from_secs(2);

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

    /// The reason why the agents cannot do a workload together, or one of them may not, as far as its target has an address
    /// before anything has started. A name is looked up here, as it is when the load begins. Of one that is not known yet,
    /// nothing is said.
    #[must_use]
    pub fn refusal(&self, workload: &Workload) -> Option<String> {
        if let Err(why) = check_shared_work(workload, self.shared.members.len()) {
            return Some(why);
        }
        let target = workload.target.as_ref();
        let address = target.and_then(|target| (target.host.as_str(), target.port).to_socket_addrs().ok()?.next());
        self.agents().find_map(|(name, facts)| {
            let why = facts.permits.check(workload, address).err()?;
            Some(cannot_work(name, &why))
        })
    }

    /// The names of the agents that generate load, with what each said of itself.
    pub fn agents(&self) -> impl Iterator<Item = (&str, &AgentFacts)> {
        self.shared.members.iter().map(|member| (member.name.as_str(), &member.facts))
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
                    return Err(NotReady::Workload(cannot_work(&fleet.shared.members[index].name, &why)));
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

fn cannot_work(agent: &str, why: &str) -> String {
    format!("agent `{agent}` cannot do this work: {why}")
}

/// Refuses what only users of one process can do together.
fn check_shared_work(workload: &Workload, agents: usize) -> Result<(), String> {
    if let Connect::Shared(connections) = workload.connect
        && (connections as usize) < agents
    {
        return Err(format!(
            "the users share {connections} connections, and each of {agents} agents needs one of its own: use fewer agents, or \
             let them share more (`connect = \"shared {agents}\"`)"
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
