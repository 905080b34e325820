//! A job that agents run together: begun at one instant, its seconds and records merged into those of one generator.

use crate::coordinator::Shared;
use crate::member::{FromAgent, Member, Topic};
use crate::message::{Answer, HostDuring, Order};
use crate::records::{self, AgentWatch};
use crate::seconds;
use plimsoll_model::agent::AgentRecord;
use plimsoll_model::job::{Begin, Job, JobError, JobRecord, Report, SetUp};
use plimsoll_model::load::{LoadModel, Share};
use plimsoll_model::record::MergedSeconds;
use plimsoll_model::units::{Nanos, UnixTime};
use plimsoll_runner::generator::{JobMessage, JobUnderWay};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime};

/// The longest time by which the begin of a load is told ahead.
const LONGEST_LEAD: u32 = 2_000;

/// A job under way on several agents.
pub(crate) struct FleetJob {
    shared: Arc<Shared>,
    number: u32,
    workload: u32,
    job: Job,
    answers: Receiver<(usize, FromAgent)>,
    parts: Vec<Part>,
    merger: MergedSeconds,
    /// The begin of the measure phase, once it is known.
    zero: Option<UnixTime>,
    /// Messages for the caller.
    ahead: VecDeque<JobMessage>,
    /// The reasons why the load does not count.
    faults: Vec<String>,
    /// The error for which an agent broke off.
    error: Option<JobError>,
    /// True once all agents are to stop, also those that begin later.
    is_stopping: bool,
    /// The last number of users that a control loop asked for.
    users: Option<u32>,
    /// True once a control loop has ended the load: no more iterations begin.
    is_closing: bool,
    /// Set if the users of the job do not stay as they are: it was stopped, or failed.
    spoilt: Arc<AtomicBool>,
    is_over: bool,
}

/// One agent's part of a job.
struct Part {
    /// The agent's place among those of the run.
    member: usize,
    share: Share,
    watch: AgentWatch,
    /// True once the agent was told of the job.
    has_begun: bool,
    is_ready: bool,
    /// True if nothing more comes of it.
    has_ended: bool,
    round_trip: Option<Nanos>,
    host: HostDuring,
    /// The place of its objects, if it keeps any.
    objects: Option<String>,
    /// None before it has ended, or if it ended without one.
    record: Option<JobRecord>,
    /// Bytes of the agent's messages before this job.
    received_before: u64,
    /// The reason why the agent was lost, if it was.
    lost: Option<String>,
}

impl FleetJob {
    /// Has the agents get the users of a job ready. They have its workload. If the job `sets_up` a script, the first agent
    /// does that, and the others begin with what comes of it.
    pub(crate) fn begin(
        shared: &Arc<Shared>,
        workload: u32,
        members: &[usize],
        job: &Job,
        sets_up: bool,
        spoilt: &Arc<AtomicBool>,
    ) -> FleetJob {
        let (shared, number) = (Arc::clone(shared), shared.next_number());
        let (sender, answers) = channel();
        shared.desk.listen(Topic::Job(number), sender);
        let limit = job.load.stop.limit().into();
        let part = |(index, member): (usize, &usize)| Part {
            member: *member,
            share: Share { index, of: members.len() },
            watch: AgentWatch::new(limit),
            has_begun: false,
            is_ready: false,
            has_ended: false,
            round_trip: None,
            host: HostDuring::default(),
            objects: None,
            record: None,
            received_before: shared.members[*member].received(),
            lost: None,
        };
        let parts: Vec<Part> = members.iter().enumerate().map(part).collect();
        let mut fleet = FleetJob {
            number,
            workload,
            job: job.clone(),
            answers,
            merger: MergedSeconds::of(parts.len()),
            parts,
            zero: None,
            ahead: VecDeque::new(),
            faults: Vec::new(),
            error: None,
            is_stopping: false,
            users: None,
            is_closing: false,
            spoilt: Arc::clone(spoilt),
            is_over: false,
            shared,
        };
        if let LoadModel::Open { max_users, .. } = job.load.model
            && (max_users as usize) < members.len()
        {
            fleet.end_unbegun(&format!(
                "`max_users` is {max_users}, and each of {} agents needs a user for its arrivals: use fewer agents, or allow more",
                members.len()
            ));
            return fleet;
        }
        if spoilt.load(Ordering::Relaxed) {
            fleet.end_unbegun("its users ended early in an earlier load on this start");
            return fleet;
        }
        fleet.begin_part(0, SetUp::Here);
        if !sets_up {
            fleet.begin_others(&SetUp::Elsewhere(None));
        }
        fleet
    }

    fn begin_part(&mut self, place: usize, set_up: SetUp) {
        let share = self.parts[place].share;
        let what = Box::new(Job { share, begin: Begin::WhenTold, set_up, ..self.job.clone() });
        self.parts[place].has_begun = true;
        let job = self.number;
        self.member(place).order(&Order::Begin { job, workload: self.workload, what });
        // It has missed what was decided before.
        if let Some(users) = self.users {
            self.member(place).order(&Order::SetUsers { job, users });
        }
        if self.is_closing {
            self.member(place).order(&Order::End { job });
        }
        if self.is_stopping {
            self.member(place).order(&Order::Stop { job });
        }
        // One that was lost before its answers were listened to.
        if let Some(why) = self.member(place).lost() {
            self.lose(place, &why);
        }
    }

    /// Has all agents but the first get ready, with what `setup` returned there.
    fn begin_others(&mut self, set_up: &SetUp) {
        for place in 1..self.parts.len() {
            if !self.parts[place].has_begun {
                self.begin_part(place, set_up.clone());
            }
        }
    }

    /// Ends the job without a load, which is void.
    fn end_unbegun(&mut self, why: &str) {
        self.faults.push(why.to_owned());
        for place in 0..self.parts.len() {
            (self.parts[place].has_begun, self.parts[place].has_ended) = (true, true);
            self.merger.ended(place);
        }
        self.is_over = true;
        let record = Box::new(self.merged());
        self.ahead.push_back(JobMessage::Ended(Ok(record)));
    }

    fn member(&self, place: usize) -> &Member {
        &self.shared.members[self.parts[place].member]
    }

    /// Sends an order to every agent that works on the job.
    fn order_all(&self, order: &Order) {
        let works = |place: &usize| self.parts[*place].has_begun && !self.parts[*place].has_ended;
        (0..self.parts.len()).filter(works).for_each(|place| self.member(place).order(order));
    }

    fn take(&mut self, member: usize, event: FromAgent) {
        let Some(place) = self.parts.iter().position(|part| part.member == member) else { return };
        match event {
            FromAgent::Lost(why) => self.lose(place, &why),
            FromAgent::Answer(Answer::Ready { round_trip, .. }) => {
                (self.parts[place].is_ready, self.parts[place].round_trip) = (true, round_trip);
                self.begin_if_ready();
            }
            FromAgent::Answer(Answer::ObjectsPlaced { place: objects, .. }) => {
                self.parts[place].objects = Some(objects.clone());
                self.ahead.push_back(JobMessage::Report(Report::ObjectsPlaced(objects)));
            }
            FromAgent::Answer(Answer::Console { lines, .. }) => {
                self.ahead.push_back(JobMessage::Report(Report::Console(lines)));
            }
            FromAgent::Answer(Answer::SetUp { data, .. }) => self.begin_others(&SetUp::Elsewhere(data)),
            FromAgent::Answer(Answer::OwnLoad { report, .. }) => {
                self.ahead.push_back(JobMessage::Report(Report::OwnLoad(report)));
            }
            FromAgent::Answer(Answer::Second { bytes, .. }) => match seconds::take(&bytes, place, &mut self.merger) {
                Ok(second) => {
                    self.parts[place].watch.observe(&second);
                    self.pass_seconds_on();
                }
                Err(unreadable) => self.fault(place, &unreadable.to_string()),
            },
            FromAgent::Answer(Answer::Ended { result, host, .. }) => {
                self.parts[place].host = host;
                match result {
                    Ok(record) => self.parts[place].record = Some(*record),
                    Err(JobError::Late(late)) => {
                        // The others have begun, or will: there is no load of a part.
                        self.double_lead();
                        self.fault(place, &JobError::Late(late).to_string());
                    }
                    // The load is void, so it was told to stop: a `setup` that is cut short ends with an error.
                    Err(_) if !self.faults.is_empty() => {}
                    Err(error) => {
                        self.error.get_or_insert(error);
                        self.stop();
                    }
                }
                self.part_has_ended(place);
            }
            FromAgent::Answer(Answer::Prepared { .. } | Answer::Host { .. } | Answer::Leaves) => {}
        }
    }

    /// Loses an agent: without its part the load is another one, so the others stop too.
    fn lose(&mut self, place: usize, why: &str) {
        if !self.parts[place].has_ended {
            self.parts[place].lost = Some(why.to_owned());
            self.shared.tell_lost(self.parts[place].member);
            if let Some(reason) = self.shared.reason_to_stop() {
                self.error.get_or_insert(JobError::Lost(reason));
            }
            self.fault(place, &format!("it was lost: {why}"));
            self.part_has_ended(place);
        }
    }

    fn fault(&mut self, place: usize, what: &str) {
        self.faults.push(format!("agent `{}`: {what}", self.member(place).name));
        self.stop();
    }

    fn part_has_ended(&mut self, place: usize) {
        self.parts[place].has_ended = true;
        self.merger.ended(place);
        if place == 0 {
            // Where the first has not set up the script, there is nothing to do for the others.
            let left_out: Vec<usize> = (1..self.parts.len()).filter(|place| !self.parts[*place].has_begun).collect();
            for place in left_out {
                self.parts[place].has_begun = true;
                self.parts[place].has_ended = true;
                self.merger.ended(place);
            }
        } else if self.parts[1..].iter().all(|part| part.has_ended) {
            self.tell_others_ended();
        }
        self.pass_seconds_on();
        self.begin_if_ready();
        if self.parts.iter().all(|part| part.has_ended) && !self.is_over {
            self.is_over = true;
            let ended = match self.error.take() {
                Some(error) => Err(error),
                None => Ok(Box::new(self.merged())),
            };
            self.ahead.push_back(JobMessage::Ended(ended));
        }
    }

    fn tell_others_ended(&self) {
        if !self.parts[0].has_ended {
            self.member(0).order(&Order::OthersEnded { job: self.number });
        }
    }

    fn pass_seconds_on(&mut self) {
        while let Some(interval) = self.merger.take() {
            let zero = self.zero.unwrap_or_default();
            self.ahead.push_back(JobMessage::Report(Report::Second { zero, interval: Box::new(interval) }));
        }
    }

    /// Begins the load when the users of all agents are ready.
    fn begin_if_ready(&mut self) {
        if self.zero.is_some() || !self.parts.iter().all(|part| part.is_ready && !part.has_ended) {
            return;
        }
        match self.job.begin {
            Begin::WhenTold => self.ahead.push_back(JobMessage::Ready),
            Begin::WhenReady => {
                let longest = self.parts.iter().map(|part| self.shared.members[part.member].longest_way()).max();
                let lead = Duration::from_millis(self.shared.lead.load(Ordering::Relaxed).into())
                    + 2 * Duration::from(longest.unwrap_or_default());
                self.tell_begin(UnixTime::of(SystemTime::now() + lead));
            }
        }
    }

    fn tell_begin(&mut self, begin: UnixTime) {
        self.zero = Some(UnixTime(begin.0 + Nanos::from(self.job.load.warmup).0 as i64));
        for place in 0..self.parts.len() {
            let member = self.member(place);
            let at = member.offset().unwrap_or_default().on_agent(begin);
            member.order(&Order::Go { job: self.number, at });
        }
    }

    /// The way to an agent takes longer than it did: the next load is told further ahead.
    fn double_lead(&self) {
        let lead = &self.shared.lead;
        lead.store(lead.load(Ordering::Relaxed).saturating_mul(2).min(LONGEST_LEAD), Ordering::Relaxed);
    }

    /// The record of the whole load.
    fn merged(&mut self) -> JobRecord {
        let zero = self.zero.unwrap_or_default();
        let is_whole = self.parts.iter().all(|part| part.record.is_some());
        let mut records = Vec::new();
        for part in &mut self.parts {
            records.extend(part.record.take().map(|record| (self.shared.members[part.member].name.as_str(), record)));
        }
        let mut whole = JobRecord { zero, ..records::merge(records) };
        if !is_whole {
            // Numbers in replies to a lost agent are no gaps.
            whole.sequences.clear();
        }
        whole.faults.append(&mut self.faults);
        whole.warnings.extend(self.lost_before());
        whole.warnings.extend(self.left_behind());
        whole.agents = self.parts.iter().map(|part| self.agent_record(part, whole.window)).collect();
        whole
    }

    /// A warning for each agent that was lost before this load, if no load has had it.
    fn lost_before(&self) -> Vec<String> {
        let members = self.shared.members.iter().enumerate();
        let others = members.filter(|(index, _)| self.parts.iter().all(|part| part.member != *index));
        let lost = others.filter_map(|(index, member)| Some((index, &member.name, member.lost()?)));
        let untold = lost.filter(|(index, ..)| self.shared.tell_lost(*index));
        let left = self.parts.len();
        let warning = |name: &str, why: &str| {
            format!("agent `{name}` was lost before this load ({why}): from here on the load is that of {left} agents")
        };
        untold.map(|(_, name, why)| warning(name, &why)).collect()
    }

    /// A warning for each agent that was lost and kept objects. Nobody is left to say whether it has removed them.
    fn left_behind(&self) -> Vec<String> {
        let lost = self.parts.iter().filter(|part| part.lost.is_some());
        let kept = lost.filter_map(|part| Some((&self.shared.members[part.member].name, part.objects.as_ref()?)));
        kept.map(|(name, place)| format!("left behind: maybe what agent `{name}` kept in {place}")).collect()
    }

    fn agent_record(&self, part: &Part, window: Nanos) -> AgentRecord {
        let member = &self.shared.members[part.member];
        let offset = member.offset().unwrap_or_default();
        let Part { share, round_trip, host: HostDuring { retransmitted, sockets }, .. } = *part;
        let record = AgentRecord {
            name: member.name.clone(),
            share,
            sockets,
            round_trip,
            retransmitted,
            clock_ahead: offset.ahead,
            clock_error: offset.error,
            reported: member.received() - part.received_before,
            lost: part.lost.clone(),
            ..AgentRecord::default()
        };
        part.watch.record(window, record)
    }
}

impl JobUnderWay for FleetJob {
    fn next(&mut self, wait: Duration) -> Option<JobMessage> {
        let deadline = Instant::now() + wait;
        loop {
            if let Some(message) = self.ahead.pop_front() {
                return Some(message);
            }
            match self.answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((member, event)) => self.take(member, event),
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => {
                    self.is_over = true;
                    return Some(JobMessage::Ended(Err(JobError::Loop("the job is over".to_owned()))));
                }
            }
        }
    }

    fn begin_at(&mut self, begin: UnixTime) {
        self.tell_begin(begin);
    }

    fn stop(&mut self) {
        self.is_stopping = true;
        self.spoilt.store(true, Ordering::Relaxed);
        self.order_all(&Order::Stop { job: self.number });
    }

    fn set_users(&mut self, users: u32) {
        self.users = Some(users);
        self.order_all(&Order::SetUsers { job: self.number, users });
    }

    fn end(&mut self) {
        self.is_closing = true;
        self.order_all(&Order::End { job: self.number });
    }

    /// The agents are all the generators that there are.
    fn others_ended(&mut self) {}
}

impl Drop for FleetJob {
    fn drop(&mut self) {
        if !self.is_over {
            self.stop();
            while !self.is_over {
                self.next(Duration::from_secs(1));
            }
        }
        self.shared.desk.leave(Topic::Job(self.number));
    }
}
