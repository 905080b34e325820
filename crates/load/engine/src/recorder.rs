//! Records the work of one thread in histograms, which are passed on once a second.

use plimsoll_model::record::{
    Account, ErrorKind, Exchange, GeneratorSecond, Interval, LONGEST, METRIC_SCALE, Outcome, Part, RecordedPhase,
    SequenceRecorder, Subject, TICK, TICKS, Tally, Tick,
};
use plimsoll_model::units::{Instant, Nanos};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError, RwLock};

const SECOND: i64 = 1_000_000_000;

/// The most names of each kind, discovered while load runs, that are recorded separately.
const MOST_NAMES: usize = 500;

/// The name under which all further names are recorded.
const OTHERS: &str = "(others)";

/// A report of a thread, while it runs or at its end.
#[derive(Debug)]
pub enum ThreadReport {
    /// A second is over for the thread of this index.
    Interval(usize, Box<Interval>),
    /// The thread of this index has finished; this is its last report.
    Finished(usize, Box<Findings>),
}

/// The findings of a thread over the whole trial, beside its intervals.
#[derive(Debug, Default)]
pub struct Findings {
    /// When its last iteration of the measure phase ended.
    pub last_done: Option<Instant>,
    /// The numbers seen in replies, by step.
    pub sequences: Vec<SequenceRecorder>,
    /// The first text that came with each kind of error, by subject.
    pub examples: BTreeMap<String, BTreeMap<ErrorKind, String>>,
    /// What became of everything that was sent, by subject.
    pub accounts: BTreeMap<String, Account>,
    /// True if every user had nothing more to do before the load was over.
    pub all_stopped: bool,
    /// Faults that kept the generator from doing its work.
    pub faults: Vec<String>,
    /// Warnings for the reader of the results.
    pub warnings: Vec<String>,
}

/// A recorded series, as a cheap index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubjectIndex(usize);

/// The series of iterations.
pub const ITERATION: SubjectIndex = SubjectIndex(0);
/// The series of connection attempts.
pub const CONNECT: SubjectIndex = SubjectIndex(1);

/// The series of a step.
#[inline]
pub fn request(step: usize) -> SubjectIndex {
    SubjectIndex(2 + step)
}

/// The series of a part of a step, one of `steps`, of users whose calls block.
#[inline]
pub fn part(step: usize, steps: usize, part: Part) -> SubjectIndex {
    SubjectIndex(2 + steps + step * Part::ALL.len() + part as usize)
}

/// The names that were discovered while load ran, on all threads. Their number is limited, because each is a row of a
/// report.
#[derive(Debug, Default)]
pub struct Names(RwLock<Named>);

#[derive(Debug, Default)]
struct Named {
    subjects: HashSet<Subject>,
    /// One subject of each kind that has reached the limit.
    full: Vec<Subject>,
}

impl Names {
    /// Returns true if a name is recorded separately; adds it if the limit allows.
    fn admit(&self, subject: &Subject) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).knows(subject);
        known.unwrap_or_else(|| self.0.write().unwrap_or_else(PoisonError::into_inner).add(subject))
    }
}

impl Named {
    /// Whether a name is recorded separately; none if that is not decided yet.
    fn knows(&self, subject: &Subject) -> Option<bool> {
        let is_full = || self.full.iter().any(|full| full.is_like(subject));
        if self.subjects.contains(subject) { Some(true) } else { is_full().then_some(false) }
    }

    fn add(&mut self, subject: &Subject) -> bool {
        if let Some(known) = self.knows(subject) {
            return known;
        }
        let has_room = self.subjects.iter().filter(|known| known.is_like(subject)).count() < MOST_NAMES;
        if has_room {
            self.subjects.insert(subject.clone());
        } else {
            self.full.push(subject.clone());
        }
        has_room
    }
}

/// The records of one thread, or of users whose calls block.
pub struct Recorder {
    subjects: Vec<Subject>,
    /// The names that all threads have discovered while load ran.
    names: Arc<Names>,
    /// Those of them that this thread has used.
    named: HashMap<Subject, SubjectIndex>,
    /// The series under which the names beyond the limit are recorded, one of each kind.
    others: Vec<(Subject, SubjectIndex)>,
    warmup: Vec<Slot>,
    measure: Vec<Slot>,
    /// What became of everything that was sent so far.
    accounts: Vec<Account>,
    ticks: [Tick; TICKS],
    open_load: bool,
    /// False if only the generator's own state is recorded.
    keeps_exchanges: bool,
    /// The present second, and the instant at which it is over.
    second: i64,
    begun: Instant,
    boundary: Instant,
    /// End of the measure phase, at the latest.
    window_end: Instant,
    /// The generator's own state in the present second; the engine sets its gauges.
    pub generator: GeneratorSecond,
    processor: CpuTime,
    /// The findings so far, beside the intervals.
    pub findings: Findings,
    thread: usize,
    /// None once the last report is sent: whoever listens then knows that no other comes.
    reports: Option<Sender<ThreadReport>>,
}

/// The tally of one subject and phase, with its errors in an array.
#[derive(Default)]
struct Slot {
    tally: Tally,
    errors: [u64; ErrorKind::ALL.len()],
}

impl Recorder {
    /// A recorder for the steps of these names that starts at `first`, in warm-up or at zero.
    pub fn new(
        steps: &[&str],
        open_load: bool,
        first: Instant,
        window_end: Instant,
        thread: usize,
        reports: Sender<ThreadReport>,
    ) -> Recorder {
        let requests = steps.iter().map(|name| Subject::Request((*name).to_owned()));
        let subjects: Vec<Subject> = [Subject::Iteration, Subject::Connect].into_iter().chain(requests).collect();
        let slots = || subjects.iter().map(|_| Slot::default()).collect();
        let sequences = steps.iter().map(|_| SequenceRecorder::default()).collect();
        let mut recorder = Recorder {
            warmup: slots(),
            measure: slots(),
            accounts: vec![Account::default(); subjects.len()],
            subjects,
            names: Arc::default(),
            named: HashMap::new(),
            others: Vec::new(),
            ticks: [Tick::default(); TICKS],
            open_load,
            keeps_exchanges: true,
            second: first.second(),
            begun: first,
            boundary: first,
            window_end,
            generator: GeneratorSecond::default(),
            processor: CpuTime::OwnThread(own_time()),
            findings: Findings { sequences, ..Findings::default() },
            thread,
            reports: Some(reports),
        };
        recorder.boundary = recorder.end_of(recorder.second);
        recorder
    }

    /// The same recorder, which records the generator's own state alone, because exchanges are counted elsewhere.
    pub fn for_generator_only(self) -> Recorder {
        Recorder { keeps_exchanges: false, ..self }
    }

    /// True if exchanges are recorded.
    #[inline]
    pub fn keeps_exchanges(&self) -> bool {
        self.keeps_exchanges
    }

    /// The same recorder for users whose calls block: with the parts of their calls, and with the
    /// processor time of these threads.
    pub fn of_blocking_users(mut self, threads: Vec<i32>) -> Recorder {
        let names: Vec<Subject> = self.subjects[2..].to_vec();
        for subject in names {
            let Subject::Request(name) = subject else { continue };
            self.subjects.extend(Part::ALL.map(|part| Subject::Part(part, name.clone())));
        }
        for slots in [&mut self.warmup, &mut self.measure] {
            slots.resize_with(self.subjects.len(), Slot::default);
        }
        self.accounts.resize(self.subjects.len(), Account::default());
        let times = threads.into_iter().map(|thread| (thread, user_time(&task(thread)))).collect();
        Recorder { processor: CpuTime::UserTimes(user_time(PROCESS), times), ..self }
    }

    /// The same recorder, sharing `names` with others.
    pub fn sharing(self, names: &Arc<Names>) -> Recorder {
        Recorder { names: Arc::clone(names), ..self }
    }

    /// The series of a subject that was not known before load ran: a request, check or metric that a script names.
    pub fn subject(&mut self, subject: &Subject) -> SubjectIndex {
        if let Some(known) = self.named.get(subject) {
            return *known;
        }
        if self.names.admit(subject) {
            return self.name(subject.clone());
        }
        if let Some((_, others)) = self.others.iter().find(|(others, _)| others.is_like(subject)) {
            return *others;
        }
        let others = subject.renamed(OTHERS);
        let index = self.name(others.clone());
        let tag = others.to_string();
        self.findings.warnings.push(format!(
            "more than {MOST_NAMES} different names of {}: those that came later are told together, as `{OTHERS}` (where \
             numbers of things stand in the names of requests, give these a name of their own: `tags.name`, or http.url)",
            tag.split(':').next().unwrap_or_default()
        ));
        self.others.push((others, index));
        index
    }

    fn name(&mut self, subject: Subject) -> SubjectIndex {
        let index = SubjectIndex(self.subjects.len());
        self.subjects.push(subject.clone());
        self.named.insert(subject, index);
        self.warmup.push(Slot::default());
        self.measure.push(Slot::default());
        self.accounts.push(Account::default());
        index
    }

    /// Records that a check was made at `at`, and whether it passed.
    pub fn record_check(&mut self, subject: SubjectIndex, phase: RecordedPhase, held: bool, at: Instant) {
        self.roll(at);
        let slot = self.slot(subject, phase);
        put(&mut slot.tally.service, 0);
        slot.errors[ErrorKind::Check as usize] += u64::from(!held);
    }

    /// Records a value of a metric at `at`. Values below zero count as zero, because a histogram has no negative
    /// values.
    pub fn record_value(&mut self, subject: SubjectIndex, phase: RecordedPhase, value: f64, at: Instant) {
        self.roll(at);
        let scaled = value * METRIC_SCALE;
        let tally = &mut self.slot(subject, phase).tally;
        tally.saturated += u64::from(!(0.0..=LONGEST as f64).contains(&scaled));
        put(&mut tally.service, scaled.round() as u64);
    }

    /// The instant at which the present second is over.
    #[inline]
    pub fn boundary(&self) -> Instant {
        self.boundary
    }

    /// Counts requests, or attempts to connect, at their hand-over to the socket or to the library that does the work.
    /// Each is to end in [`Recorder::record`] or [`Recorder::count_abandoned`], or to be under way at the end.
    #[inline]
    pub fn count_sent(&mut self, subject: SubjectIndex, sent: u64) {
        self.accounts[subject.0].sent += sent;
    }

    /// Counts one that was sent and whose end nobody waits for.
    pub fn count_abandoned(&mut self, subject: SubjectIndex) {
        self.accounts[subject.0].abandoned += 1;
    }

    /// Counts those that were sent and are under way when the load ends.
    pub fn count_in_flight(&mut self, subject: SubjectIndex, sent: u64) {
        let account = &mut self.accounts[subject.0];
        account.sent += sent;
        account.in_flight += sent;
    }

    /// Counts one that is under way at the begin of the load.
    pub fn count_carried(&mut self, subject: SubjectIndex) {
        self.accounts[subject.0].carried += 1;
    }

    /// Closes the accounts: `under_way` has an element for each exchange and attempt that is under way. What is counted
    /// later belongs to none.
    pub fn close_accounts(&mut self, under_way: &[SubjectIndex]) {
        under_way.iter().for_each(|subject| self.accounts[subject.0].in_flight += 1);
        let is_sent = |subject: &Subject| {
            matches!(subject, Subject::Request(_) | Subject::Connect | Subject::Part(Part::Delivery, _))
        };
        let all = self.subjects.iter().zip(&self.accounts);
        let kept = all.filter(|(subject, account)| is_sent(subject) && !account.is_empty());
        self.findings.accounts = kept.map(|(subject, account)| (subject.to_string(), account.clone())).collect();
    }

    /// Records an exchange that was never sent.
    pub fn record_unsent(&mut self, subject: SubjectIndex, phase: RecordedPhase, exchange: &Exchange) {
        self.add(subject, phase, exchange);
    }

    /// Records an exchange that was sent (or a connection attempt, a part of an exchange, or an iteration).
    #[inline]
    pub fn record(&mut self, subject: SubjectIndex, phase: RecordedPhase, exchange: &Exchange) {
        self.accounts[subject.0].ended(exchange.outcome);
        self.add(subject, phase, exchange);
    }

    #[inline]
    fn add(&mut self, subject: SubjectIndex, phase: RecordedPhase, exchange: &Exchange) {
        self.roll(exchange.done);
        if !self.keeps_exchanges {
            return;
        }
        let open_load = self.open_load;
        let slot = self.slot(subject, phase);
        let tally = &mut slot.tally;
        tally.bytes_out += exchange.bytes_out;
        tally.bytes_in += exchange.bytes_in;
        let service = exchange.done.since(exchange.sent).0;
        tally.saturated += u64::from(service > LONGEST);
        put(&mut tally.service, service);
        if open_load {
            put(&mut tally.response, exchange.done.since(exchange.scheduled).0);
        }
        if let Some(first_byte) = exchange.first_byte {
            put(&mut tally.first_byte, first_byte.since(exchange.sent).0);
        }
        if let Outcome::Failed(kind) = exchange.outcome {
            slot.errors[kind as usize] += 1;
        }
        if subject == ITERATION {
            let tick = self.tick_of(exchange.done);
            self.ticks[tick].merge(Tick { iterations: 1, total: service });
            if phase == RecordedPhase::Measure {
                self.findings.last_done = self.findings.last_done.max(Some(exchange.done));
            }
        }
    }

    /// The tick of the present second that an instant lies in. Work that ends in the rest of a second that was cut
    /// short is filed under the next second, in its first tick.
    #[inline]
    fn tick_of(&self, at: Instant) -> usize {
        let into_second = (at.0 - self.second * SECOND).max(0);
        (into_second as usize / TICK.0 as usize).min(TICKS - 1)
    }

    /// Adds bytes that belong to no exchange: the remaining bytes of a closing connection.
    #[inline]
    pub fn add_bytes(&mut self, phase: RecordedPhase, bytes_out: u64, bytes_in: u64) {
        let tally = &mut self.slot(CONNECT, phase).tally;
        tally.bytes_out += bytes_out;
        tally.bytes_in += bytes_in;
    }

    /// Records how late due work was started although a user was free.
    #[inline]
    pub fn record_lateness(&mut self, lateness: Nanos) {
        put(&mut self.generator.lateness, lateness.0);
    }

    /// Keeps the first text of each kind of error.
    pub fn keep_example(&mut self, subject: SubjectIndex, kind: ErrorKind, detail: String) {
        let subject = self.subjects[subject.0].to_string();
        self.findings.examples.entry(subject).or_default().entry(kind).or_insert(detail);
    }

    /// Passes on the seconds that are over at `now`.
    #[inline]
    pub fn roll(&mut self, now: Instant) {
        while now >= self.boundary {
            self.hand_over(self.boundary);
        }
    }

    /// Passes on the present second, which may be incomplete, and the findings. It is the last call.
    pub fn finish(&mut self, now: Instant) {
        self.hand_over(now);
        let findings = std::mem::take(&mut self.findings);
        self.report(ThreadReport::Finished(self.thread, Box::new(findings)));
        self.reports = None;
    }

    #[cold]
    fn hand_over(&mut self, until: Instant) {
        let (cpu, cpu_busiest) = self.processor.used();
        let next = GeneratorSecond {
            users: self.generator.users,
            in_flight: self.generator.in_flight,
            backlog: self.generator.backlog,
            sockets: self.generator.sockets,
            ..GeneratorSecond::default()
        };
        let generator = GeneratorSecond { cpu, cpu_busiest, ..std::mem::replace(&mut self.generator, next) };
        let length = until.since(self.begun);
        let ticks = std::mem::take(&mut self.ticks);
        let interval = Interval { second: self.second, length, tallies: self.take_tallies(), ticks, generator };
        self.report(ThreadReport::Interval(self.thread, Box::new(interval)));
        self.second += 1;
        self.begun = until;
        self.boundary = self.end_of(self.second);
    }

    fn report(&self, report: ThreadReport) {
        // Nobody may listen any more.
        let _ = self.reports.as_ref().map(|reports| reports.send(report));
    }

    fn take_tallies(&mut self) -> BTreeMap<(RecordedPhase, Subject), Tally> {
        let mut tallies = BTreeMap::new();
        for (phase, slots) in [(RecordedPhase::Warmup, &mut self.warmup), (RecordedPhase::Measure, &mut self.measure)] {
            for (subject, slot) in self.subjects.iter().zip(slots) {
                if slot.tally.count() > 0 || slot.tally.bytes_in > 0 || slot.tally.bytes_out > 0 {
                    tallies.insert((phase, subject.clone()), std::mem::take(slot).into_tally());
                }
            }
        }
        tallies
    }

    #[inline]
    fn slot(&mut self, subject: SubjectIndex, phase: RecordedPhase) -> &mut Slot {
        match phase {
            RecordedPhase::Warmup => &mut self.warmup[subject.0],
            RecordedPhase::Measure => &mut self.measure[subject.0],
        }
    }

    /// The end of a second. If the measure phase is not a whole number of seconds, its last second is cut short, so
    /// that no second lies both inside and outside it. Work that ends in the rest of that second is filed under the
    /// next one.
    #[inline]
    fn end_of(&self, second: i64) -> Instant {
        match self.window_end {
            end if end.second() == second && end.0 % SECOND != 0 => end,
            _ => Instant((second + 1) * SECOND),
        }
    }
}

impl Slot {
    fn into_tally(mut self) -> Tally {
        for (kind, count) in ErrorKind::ALL.into_iter().zip(self.errors) {
            if count > 0 {
                self.tally.errors.insert(kind, count);
            }
        }
        self.tally
    }
}

#[inline]
fn put(histogram: &mut hdrhistogram::Histogram<u64>, value: u64) {
    histogram.record(value.min(LONGEST)).expect("a growing histogram takes every value up to one hour");
}

/// The processor time that counts as the generator's, with its value at the start of the present second.
#[derive(Debug)]
enum CpuTime {
    /// All time of the calling thread, which generates the load.
    OwnThread(Nanos),
    /// The user time of the whole process, and that of the threads of these numbers. Time inside the kernel, for a file
    /// system or a socket, is the very work that is measured. Each of many threads may use less than a tick of the
    /// kernel's clock; the time of the process includes that too.
    UserTimes(Nanos, Vec<(i32, Nanos)>),
}

impl CpuTime {
    /// The time of all threads since the last call, and that of the busiest.
    fn used(&mut self) -> (Nanos, Nanos) {
        match self {
            CpuTime::OwnThread(before) => {
                let used = advance(before, own_time());
                (used, used)
            }
            CpuTime::UserTimes(process, threads) => {
                let used = threads.iter_mut().map(|(thread, before)| advance(before, user_time(&task(*thread))));
                let busiest = used.max().unwrap_or(Nanos(0));
                (advance(process, user_time(PROCESS)), busiest)
            }
        }
    }
}

/// Sets `before` to a new reading of a clock; returns the difference.
fn advance(before: &mut Nanos, now: Nanos) -> Nanos {
    let before = std::mem::replace(before, now);
    Nanos(now.0.saturating_sub(before.0))
}

/// The processor time of the calling thread.
fn own_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The kernel's file about this process.
const PROCESS: &str = "/proc/self/stat";

/// The kernel's file about a thread of this process.
fn task(thread: i32) -> String {
    format!("/proc/self/task/{thread}/stat")
}

/// The user time of a process or thread; zero when it has ended.
fn user_time(path: &str) -> Nanos {
    let read = || {
        let stat = std::fs::read_to_string(path).ok()?;
        // The name of the program, in brackets, may contain any character (proc_pid_stat(5)).
        stat.rsplit_once(')')?.1.split_whitespace().nth(11)?.parse::<u64>().ok()
    };
    Nanos(read().unwrap_or(0) * 1_000_000_000 / rustix::param::clock_ticks_per_second())
}

#[cfg(test)]
mod tests;
