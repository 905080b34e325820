//! The search for the agents of a run: asks at the broker who is there, and has those work for the run that it needs.

use crate::broker::{Broker, BrokerError};
use crate::member::{Desk, Member, NewMember};
use crate::message::{AgentFacts, Engagement, FORM, from_bytes, to_bytes};
use crate::subjects;
use async_nats::{Client, Message};
use bytes::Bytes;
use futures_util::StreamExt;
use plimsoll_model::shell;
use plimsoll_study::LostAgent;
use plimsoll_system::{Interrupt, random_text};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Agents are asked again after this time whether they are there, until enough are.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// An agent with several of the labels of systems runs the systems of all of them, if no other agent has come by then.
const ONE_FOR_ALL_AFTER: Duration = Duration::from_secs(2);

/// The longest time in which an agent says whether it works for the run.
const ENGAGE_WITHIN: Duration = Duration::from_secs(5);

/// An interruption is noticed after at most this time while agents are waited for.
pub(crate) const POLL_EVERY: Duration = Duration::from_millis(50);

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

/// An agent that runs systems.
pub(crate) struct HostMember {
    pub(crate) member: Member,
    /// The labels of the study that it stands for.
    pub(crate) labels: BTreeSet<String>,
    /// The folder there for files of this run.
    pub(crate) folder: PathBuf,
    /// Its answers alone.
    pub(crate) desk: Arc<Desk>,
}

/// The search for agents.
pub(crate) struct Search<'a> {
    pub(crate) client: &'a Client,
    pub(crate) wanted: &'a Wanted,
    pub(crate) desk: &'a Arc<Desk>,
    /// The agents that have answered, by id.
    pub(crate) known: BTreeMap<String, AgentFacts>,
    pub(crate) members: Vec<Member>,
    pub(crate) hosts: Vec<HostMember>,
}

impl Search<'_> {
    pub(crate) async fn run(
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
            // Hosts of systems first: any agent may generate load, and few have the labels of systems.
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
        // Agents that may run systems are kept for that as long as there are others.
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
            "; start one on the host of the system with `plimsoll agent --nats URL --label {} --systems FOLDER`, or wait \
             longer (`--wait`)",
            shell::word(&label)
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
        let left = self.members.iter().filter(|member| member.lost().is_none());
        let names: Vec<String> = left
            .map(|member| &member.name)
            .chain(there.iter().map(|(facts, _)| &facts.name))
            .map(|name| format!("`{name}`"))
            .collect();
        let named = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        let (found, waited) = (names.len(), wait.as_secs_f64().round());
        let mut text = format!("expected {agents} agent{plural}, found {found}{named} after {waited} s");
        for (facts, why) in others {
            text += &format!("; `{}` {}", facts.name, why.unwrap_or_default());
        }
        text + "; start more with `plimsoll agent --nats URL`, ask for fewer (`--agents`), or wait longer (`--wait`)"
    }
}
