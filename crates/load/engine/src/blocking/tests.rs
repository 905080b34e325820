use super::*;
use crate::job::Steering;
use plimsoll_model::job::{Begin, SetUp};
use plimsoll_model::load::WHOLE;
use plimsoll_model::load::{Arrivals, LoadProfile, Overflow, Shape, Stage, Stop};
use plimsoll_model::record::{ErrorKind, Part, RecordedPhase, Subject, Tally};
use plimsoll_model::study::GeneratorSpec;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;

/// Calls that sleep, and do what a test asks for.
#[derive(Default)]
struct Sleeps {
    call: Duration,
    before: Duration,
    /// How long a user tries to get ready for an iteration, in vain.
    in_vain: Option<Duration>,
    pauses: (Duration, Duration),
    /// The call of this number, from 1, does not come back before `hangs_for` is over.
    hangs: Option<(u32, Duration)>,
    refuses: bool,
    fails: bool,
    made: AtomicU32,
}

impl BlockingWorkload for Sleeps {
    type User = u32;

    fn user(&self, user: u32, _over: &Arc<AtomicBool>) -> Result<u32, Failure> {
        if self.refuses { Err(Failure::new(ErrorKind::Denied, "failed to open: no permission")) } else { Ok(user) }
    }

    fn begin_iteration(&self, _user: &mut u32, _random: &mut Random) -> Range<usize> {
        std::thread::sleep(self.in_vain.unwrap_or_default());
        0..2
    }

    fn pauses(&self, _user: &u32) -> (Duration, Duration) {
        self.pauses
    }

    fn before_call(&self, _user: &mut u32, _step: usize) -> Result<(), Failure> {
        std::thread::sleep(self.before);
        self.in_vain.map_or(Ok(()), |_| Err(Failure::new(ErrorKind::Connect, "nobody listens")))
    }

    fn call(&self, _user: &mut u32, step: usize, call: &mut Call) -> Result<(), Failure> {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some((hanging, length)) = self.hangs
            && number == hanging
        {
            std::thread::sleep(length);
        }
        call.part(Part::Data, |call| {
            std::thread::sleep(self.call);
            call.sent(100);
            call.go_on()
        })?;
        if self.fails && step == 1 { Err(Failure::new(ErrorKind::Space, "failed to write: full")) } else { Ok(()) }
    }

    fn end_iteration(&self, _user: &mut u32) {}
}

fn closed(users: f64, stop: Stop) -> LoadProfile {
    let model = LoadModel::Closed { users: Profile::constant(users), think: Think::Constant(Duration::ZERO) };
    LoadProfile { model, warmup: Duration::ZERO, stop, drain: Duration::from_secs(2) }
}

fn blocking_users<W: BlockingWorkload>(
    workload: Arc<W>,
    names: Vec<&str>,
    timeout: Duration,
    grace: Duration,
    users: usize,
) -> BlockingUsers<'_, W> {
    let users = (0..users).map(|_| None).collect();
    BlockingUsers { workload, names, timeout, grace, over: Arc::default(), users, waiting: Vec::new() }
}

fn job(load: &LoadProfile) -> Job {
    let generator = GeneratorSpec { threads: 1, cpus: None, max_cpu: 0.7, max_lateness: Duration::from_millis(5) };
    Job {
        load: load.clone(),
        generator,
        seed: 1,
        share: WHOLE,
        begin: Begin::WhenReady,
        set_up: SetUp::Here,
        stays: false,
    }
}

/// The records of the measure phase of a run, and its faults.
fn run_all(
    calls: Sleeps,
    users: usize,
    load: &LoadProfile,
) -> Result<(BTreeMap<Subject, Tally>, Vec<String>), JobError> {
    run_share(WHOLE, &AtomicBool::new(false), calls, users, load)
}

/// The same of a share of the load, unless it is interrupted.
fn run_share(
    share: Share,
    interrupted: &AtomicBool,
    calls: Sleeps,
    users: usize,
    load: &LoadProfile,
) -> Result<(BTreeMap<Subject, Tally>, Vec<String>), JobError> {
    // Only threads that hang never end; the others may be slow on a busy machine.
    let grace = Duration::from_secs(if calls.hangs.is_some() { 1 } else { 60 });
    // Calls are given up in the tests of that alone: on a busy machine any may take this long.
    let short = Duration::from_millis(400);
    let timeout = if calls.hangs.is_some() || calls.call > short { short } else { Duration::from_secs(60) };
    let names = vec!["write", "read"];
    let mut users = blocking_users(Arc::new(calls), names, timeout, grace, users);
    let job = Job { share, ..job(load) };
    let mut tallies: BTreeMap<Subject, Tally> = BTreeMap::new();
    let mut last = i64::MIN;
    let (findings, _) =
        users.run(LocalJob { job: &job, steering: &Steering::default(), interrupted }, &mut |report| {
            let Report::Second { interval, .. } = report else { return };
            assert!(interval.second > last, "seconds come in order, each once");
            last = interval.second;
            for ((phase, subject), tally) in interval.tallies {
                if phase == RecordedPhase::Measure {
                    tallies.entry(subject).or_default().merge(&tally);
                }
            }
        })?;
    for (subject, account) in findings.iter().flat_map(|found| &found.accounts) {
        assert!(account.holds(), "{subject}: {account}");
    }
    Ok((tallies, findings.into_iter().flat_map(|found| found.faults).collect()))
}

fn request(name: &str) -> Subject {
    Subject::Request(name.to_owned())
}

#[test]
fn every_user_does_its_iterations_and_every_part_is_recorded() {
    let stop = Stop::IterationsPerUser { count: 5, limit: Duration::from_secs(20) };
    let calls = Sleeps { call: Duration::from_millis(2), ..Sleeps::default() };
    let (tallies, faults) = run_all(calls, 3, &closed(3.0, stop)).expect("a run");
    assert!(faults.is_empty(), "{faults:?}");
    for subject in [Subject::Iteration, request("write"), request("read"), Subject::Part(Part::Data, "read".to_owned())]
    {
        assert_eq!(tallies[&subject].count(), 15, "{subject}");
    }
    assert_eq!(tallies[&request("write")].bytes_out, 1500);
    assert!(!tallies.contains_key(&Subject::Part(Part::Sync, "read".to_owned())));
}

#[test]
fn a_quota_of_all_is_shared() {
    let stop = Stop::Iterations { count: 10, limit: Duration::from_secs(20) };
    let (tallies, _) = run_all(Sleeps::default(), 4, &closed(4.0, stop)).expect("a run");
    assert_eq!(tallies[&Subject::Iteration].count(), 10);
}

#[test]
fn nothing_is_lost_however_much_is_noted_at_once() {
    let stop = Stop::Iterations { count: 50_000, limit: Duration::from_secs(60) };
    let (tallies, _) = run_all(Sleeps::default(), 8, &closed(8.0, stop)).expect("a run");
    for subject in [Subject::Iteration, request("read"), Subject::Part(Part::Data, "write".to_owned())] {
        assert_eq!(tallies[&subject].count(), 50_000, "{subject}");
    }
}

#[test]
fn what_comes_before_a_call_is_not_timed() {
    let stop = Stop::Iterations { count: 5, limit: Duration::from_secs(20) };
    let calls = Sleeps { before: Duration::from_millis(100), ..Sleeps::default() };
    let (tallies, _) = run_all(calls, 1, &closed(1.0, stop)).expect("a run");
    for subject in [Subject::Iteration, request("write")] {
        assert!(tallies[&subject].service.min() < 100_000_000, "{subject}: {}", tallies[&subject].service.min());
    }
}

/// Arrivals at this rate, for users of this number.
fn arriving(rate: f64, max_users: u32, stop: Stop) -> LoadProfile {
    let (rate, overflow) = (Profile::constant(rate), Overflow::Wait);
    LoadProfile {
        model: LoadModel::Open { rate, arrivals: Arrivals::Constant, max_users, overflow },
        ..closed(0.0, stop)
    }
}

#[test]
fn what_comes_before_a_call_is_in_no_response_time() {
    let calls = Sleeps { before: Duration::from_millis(100), ..Sleeps::default() };
    let load = arriving(2.0, 1, Stop::After(Duration::from_secs(1)));
    let (tallies, _) = run_all(calls, 1, &load).expect("a run");
    for subject in [Subject::Iteration, request("write"), request("read")] {
        assert!(tallies[&subject].response.min() < 100_000_000, "{subject}: {}", tallies[&subject].response.min());
    }
}

#[test]
fn a_call_that_cannot_be_made_takes_the_time_in_which_it_was_tried() {
    for load in [
        closed(1.0, Stop::Iterations { count: 2, limit: Duration::from_secs(20) }),
        arriving(10.0, 1, Stop::Iterations { count: 2, limit: Duration::from_secs(20) }),
    ] {
        let calls = Sleeps { in_vain: Some(Duration::from_millis(150)), ..Sleeps::default() };
        let (tallies, _) = run_all(calls, 1, &load).expect("a run");
        for subject in [Subject::Iteration, request("write")] {
            let tally = &tallies[&subject];
            assert_eq!(tally.errors, BTreeMap::from([(ErrorKind::Connect, 2)]), "{subject}");
            assert!(tally.service.min() >= 149_000_000, "{subject}: {}", tally.service.min());
        }
    }
}

#[test]
fn an_arrival_whose_user_is_not_ready_at_the_end_is_counted() {
    let calls = Sleeps { before: Duration::from_millis(1500), ..Sleeps::default() };
    let load = arriving(10.0, 1, Stop::After(Duration::from_millis(250)));
    let load = LoadProfile { drain: Duration::ZERO, ..load };
    let (tallies, faults) = run_all(calls, 1, &load).expect("a run");
    assert_eq!(tallies[&Subject::Iteration].errors, BTreeMap::from([(ErrorKind::Unsent, 3)]));
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn a_user_waits_before_and_after_an_iteration_and_neither_is_part_of_it() {
    let stop = Stop::After(Duration::from_millis(950));
    let pauses = (Duration::from_millis(100), Duration::from_millis(200));
    let (tallies, _) = run_all(Sleeps { pauses, ..Sleeps::default() }, 1, &closed(1.0, stop)).expect("a run");
    let iterations = &tallies[&Subject::Iteration];
    // Due at 100, 400 and 700 ms, or later; the next one would be due at 1000 ms.
    assert!((1..=3).contains(&iterations.count()), "{}", iterations.count());
    assert!(iterations.service.min() < 100_000_000, "{}", iterations.service.min());
}

#[test]
fn what_is_typed_in_the_warm_up_and_sent_in_the_measure_phase_counts() {
    // Due 600 ms into the measure phase, or later; the next one would be due after its end.
    let calls = || Sleeps { pauses: (Duration::from_millis(800), Duration::ZERO), ..Sleeps::default() };
    let stop = Stop::After(Duration::from_millis(1200));
    let load = LoadProfile { warmup: Duration::from_millis(200), ..closed(1.0, stop) };
    let (tallies, _) = run_all(calls(), 1, &load).expect("a run");
    assert_eq!(tallies[&Subject::Iteration].count(), 1);
    let model = LoadModel::Open {
        rate: Profile::constant(20.0),
        arrivals: Arrivals::Constant,
        max_users: 1,
        overflow: Overflow::Wait,
    };
    let (tallies, _) = run_all(calls(), 1, &LoadProfile { model, ..load }).expect("a run");
    assert_eq!(tallies[&Subject::Iteration].count(), 24, "arrivals do not wait for typing");
}

/// One user that thinks for a quarter of an hour after each iteration.
fn thinking(length: Duration) -> LoadProfile {
    let model = LoadModel::Closed { users: Profile::constant(1.0), think: Think::Constant(Duration::from_secs(900)) };
    LoadProfile { model, drain: Duration::from_secs(900), ..closed(1.0, Stop::After(length)) }
}

#[test]
fn a_user_that_thinks_longer_than_there_is_time_is_not_waited_for() {
    let begun = std::time::Instant::now();
    let (tallies, faults) = run_all(Sleeps::default(), 1, &thinking(Duration::from_secs(2))).expect("a run");
    assert_eq!((tallies[&Subject::Iteration].count(), faults), (1, vec![]));
    assert!((2000..600_000).contains(&begun.elapsed().as_millis()), "it is there until the measure phase ends");
}

#[test]
fn an_interruption_wakes_users_that_think() {
    let (begun, interrupted) = (std::time::Instant::now(), AtomicBool::new(false));
    let (_, faults) = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            interrupted.store(true, Ordering::Relaxed);
        });
        run_share(WHOLE, &interrupted, Sleeps::default(), 1, &thinking(Duration::from_secs(900)))
    })
    .expect("a run");
    assert!(faults.is_empty(), "it came back: {faults:?}");
    assert!(begun.elapsed() < Duration::from_secs(600));
}

#[test]
fn users_begin_when_the_profile_asks_for_them() {
    let hold = |length, target| Stage { length: Duration::from_millis(length), target, shape: Shape::Hold };
    let users = Profile { start: 1.0, stages: vec![hold(1500, 1.0), hold(100, 3.0)], joining: None };
    let model = LoadModel::Closed { users, think: Think::Constant(Duration::ZERO) };
    let stop = Stop::IterationsPerUser { count: 1, limit: Duration::from_secs(60) };
    let begun = std::time::Instant::now();
    let (tallies, _) = run_all(Sleeps::default(), 3, &LoadProfile { model, ..closed(3.0, stop) }).expect("a run");
    assert_eq!(tallies[&Subject::Iteration].count(), 3);
    assert!((1500..30_000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
}

#[test]
fn an_iteration_ends_with_its_first_failure() {
    let stop = Stop::Iterations { count: 3, limit: Duration::from_secs(20) };
    let (tallies, faults) = run_all(Sleeps { fails: true, ..Sleeps::default() }, 1, &closed(1.0, stop)).expect("a run");
    assert_eq!(tallies[&request("write")].failed(), 0);
    assert_eq!(tallies[&request("read")].errors, BTreeMap::from([(ErrorKind::Space, 3)]));
    assert_eq!(tallies[&Subject::Iteration].failed(), 3);
    assert!(faults.is_empty());
}

#[test]
fn a_call_that_takes_too_long_counts_at_its_limit() {
    let stop = Stop::Iterations { count: 1, limit: Duration::from_secs(20) };
    let calls = Sleeps { call: Duration::from_millis(500), ..Sleeps::default() };
    let (tallies, faults) = run_all(calls, 1, &closed(1.0, stop)).expect("a run");
    let writes = &tallies[&request("write")];
    assert_eq!(writes.errors, BTreeMap::from([(ErrorKind::Timeout, 1)]));
    assert!((395_000_000..=401_000_000).contains(&writes.service.max()), "{}", writes.service.max());
    assert!(faults.is_empty(), "it came back: {faults:?}");
}

#[test]
fn a_call_that_does_not_come_back_ends_the_load_and_is_named() {
    let stop = Stop::After(Duration::from_secs(60));
    let hangs = Some((6, Duration::from_secs(30)));
    let calls = Sleeps { call: Duration::from_millis(5), hangs, ..Sleeps::default() };
    let (tallies, faults) = run_all(calls, 2, &closed(2.0, stop)).expect("a run");
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].starts_with("1 of 2 users did not come back from a call"), "{faults:?}");
    let timeouts: u64 = tallies.values().filter_map(|tally| tally.errors.get(&ErrorKind::Timeout)).sum();
    assert!(timeouts >= 2, "the call and its iteration");
    assert!(tallies[&request("write")].count() > 5, "the other user went on");
}

#[test]
fn what_hangs_before_a_call_ends_the_load_too() {
    let stop = Stop::After(Duration::from_secs(60));
    let hangs = Some((u32::MAX, Duration::ZERO));
    let calls = Sleeps { before: Duration::from_millis(1900), hangs, ..Sleeps::default() };
    let (_, faults) = run_all(calls, 2, &closed(2.0, stop)).expect("a run");
    assert!(faults.len() == 1 && faults[0].starts_with("the load ended 5"), "{faults:?}");
}

#[test]
fn a_call_that_comes_back_too_late_has_cut_the_load_short() {
    let stop = Stop::After(Duration::from_secs(60));
    let calls =
        Sleeps { call: Duration::from_millis(5), hangs: Some((6, Duration::from_millis(1900))), ..Sleeps::default() };
    let (_, faults) = run_all(calls, 2, &closed(2.0, stop)).expect("a run");
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].starts_with("the load ended 5"), "{faults:?}");
    assert!(
        faults[0].contains(
            " s early, because a call, or its preparation, had not come back 1 s after the time-out of 0.4 s"
        ),
        "{faults:?}"
    );
}

#[test]
fn a_call_that_hangs_ends_the_load_before_later_arrivals_are_due() {
    let calls = Sleeps { hangs: Some((6, Duration::from_millis(1900))), ..Sleeps::default() };
    let load = arriving(100.0, 2, Stop::After(Duration::from_secs(60)));
    let (tallies, faults) = run_all(calls, 2, &load).expect("a run");
    assert!(faults.len() == 1 && faults[0].starts_with("the load ended 5"), "{faults:?}");
    let arrived = tallies[&Subject::Iteration].count();
    assert!((100..=1100).contains(&arrived), "a hundred come in a second, and it has had ten at most: {arrived}");
}

#[test]
fn a_load_that_time_alone_ends_lasts_that_long_also_after_its_last_arrival() {
    let hold = |length, target| Stage { length: Duration::from_millis(length), target, shape: Shape::Hold };
    let rate = Profile { start: 100.0, stages: vec![hold(200, 100.0), hold(500, 0.0)], joining: None };
    let model = LoadModel::Open { rate, arrivals: Arrivals::Constant, max_users: 2, overflow: Overflow::Wait };
    let load = LoadProfile { model, ..closed(0.0, for_(Duration::from_millis(700))) };
    let begun = std::time::Instant::now();
    let (tallies, faults) = run_all(Sleeps::default(), 2, &load).expect("a run");
    assert!((20..=21).contains(&tallies[&Subject::Iteration].count()) && faults.is_empty(), "{faults:?}");
    assert!(begun.elapsed() >= Duration::from_millis(700), "{:?}", begun.elapsed());
}

#[test]
fn users_that_cannot_get_ready_say_why() {
    let stop = Stop::After(Duration::from_secs(60));
    let refused = run_all(Sleeps { refuses: true, ..Sleeps::default() }, 2, &closed(2.0, stop));
    assert_eq!(refused.err(), Some(JobError::Users("failed to open: no permission".to_owned())));
}

#[test]
fn arrivals_wait_for_a_free_user_and_their_response_time_says_so() {
    let load =
        LoadProfile { drain: Duration::from_secs(20), ..arriving(100.0, 1, Stop::After(Duration::from_millis(200))) };
    let calls = Sleeps { call: Duration::from_millis(10), ..Sleeps::default() };
    let (tallies, _) = run_all(calls, 1, &load).expect("a run");
    let iterations = &tallies[&Subject::Iteration];
    assert_eq!(iterations.count(), 20, "one every 10 ms");
    // Each takes 20 ms, so the last one pauses for nineteen others that each came 10 ms too soon.
    assert!(iterations.response.max() >= 200_000_000, "{}", iterations.response.max());
    assert!(iterations.service.max() < iterations.response.max());
    assert!(tallies[&request("write")].response.max() > 150_000_000);
}

#[test]
fn arrivals_for_which_nobody_is_free_are_counted() {
    let load = LoadProfile { drain: Duration::ZERO, ..arriving(100.0, 1, Stop::After(Duration::from_millis(200))) };
    let calls = Sleeps { call: Duration::from_millis(20), ..Sleeps::default() };
    let (tallies, _) = run_all(calls, 1, &load).expect("a run");
    let iterations = &tallies[&Subject::Iteration];
    assert_eq!(iterations.count(), 20, "none is lost: {:?}", iterations.errors);
    assert!(iterations.errors[&ErrorKind::Unsent] >= 10, "{:?}", iterations.errors);
}

#[test]
fn machines_divide_users_arrivals_and_quotas_among_them() {
    let limit = Duration::from_secs(20);
    for load in [
        closed(5.0, Stop::Iterations { count: 11, limit }),
        closed(5.0, Stop::IterationsPerUser { count: 3, limit }),
        arriving(100.0, 5, Stop::Iterations { count: 11, limit }),
        arriving(100.0, 5, Stop::After(Duration::from_millis(105))),
    ] {
        let all = |share: Share| {
            let users = share.of_first(5) as usize;
            let ran = run_share(share, &AtomicBool::new(false), Sleeps::default(), users, &load).expect("a run");
            ran.0[&Subject::Iteration].count()
        };
        let parts = [0, 1].map(|index| all(Share { index, of: 2 }));
        assert_eq!(parts.iter().sum::<u64>(), all(WHOLE), "{parts:?}");
        assert!(parts[0] > parts[1] && parts[1] > 0, "{parts:?}");
    }
}

/// Users that count: how many there are, and the iterations that each has begun and ended.
#[derive(Default)]
struct Counts {
    made: AtomicU32,
    loads_ended: AtomicU32,
    dropped: Arc<AtomicU32>,
    /// The pause before each iteration.
    wait: Duration,
    begun: AtomicU32,
    called: AtomicU32,
}

struct CountedUser(Arc<AtomicU32>);

impl Drop for CountedUser {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl BlockingWorkload for Counts {
    type User = CountedUser;

    fn user(&self, _number: u32, _over: &Arc<AtomicBool>) -> Result<CountedUser, Failure> {
        self.made.fetch_add(1, Ordering::Relaxed);
        Ok(CountedUser(Arc::clone(&self.dropped)))
    }

    fn begin_iteration(&self, _user: &mut CountedUser, _random: &mut Random) -> Range<usize> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        0..1
    }

    fn pauses(&self, _user: &CountedUser) -> (Duration, Duration) {
        (self.wait, Duration::ZERO)
    }

    fn before_call(&self, _user: &mut CountedUser, _step: usize) -> Result<(), Failure> {
        Ok(())
    }

    fn call(&self, _user: &mut CountedUser, _step: usize, call: &mut Call) -> Result<(), Failure> {
        self.called.fetch_add(1, Ordering::Relaxed);
        call.go_on()
    }

    fn end_iteration(&self, _user: &mut CountedUser) {}

    fn load_ended(&self, _user: &mut CountedUser) {
        self.loads_ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs the load so many times with the same users, and returns the iterations that were measured.
fn run_in_turn(counts: &Arc<Counts>, users: usize, load: &LoadProfile, times: usize) -> u64 {
    let timeout = Duration::from_secs(60);
    let mut users = blocking_users(Arc::clone(counts), vec!["count"], timeout, timeout, users);
    let interrupted = AtomicBool::new(false);
    let mut measured = 0;
    for number in 1..=times {
        let job = Job { stays: number < times, ..job(load) };
        let reports = &mut |report| {
            let Report::Second { interval, .. } = report else { return };
            let tally = interval.tallies.get(&(RecordedPhase::Measure, Subject::Iteration));
            measured += tally.map_or(0, Tally::count);
        };
        let (findings, _) = users
            .run(LocalJob { job: &job, steering: &Steering::default(), interrupted: &interrupted }, reports)
            .expect("a run");
        assert!(findings.iter().all(|found| found.faults.is_empty()), "{findings:?}");
    }
    measured
}

fn for_(length: Duration) -> Stop {
    Stop::After(length)
}

#[test]
fn users_that_stay_are_made_once_and_end_after_the_last_load() {
    let counts = Arc::new(Counts::default());
    let load = closed(3.0, for_(Duration::from_millis(50)));
    let measured = run_in_turn(&counts, 3, &load, 4);
    let count = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
    assert_eq!((count(&counts.made), count(&counts.loads_ended), count(&counts.dropped)), (3, 12, 3));
    assert_eq!(measured, u64::from(count(&counts.called)), "each iteration is of one load");
}

/// The wait before an iteration takes twelve loads, and goes on from one to the next.
#[test]
fn a_wait_longer_than_a_load_goes_on_in_the_next() {
    let counts = Arc::new(Counts { wait: Duration::from_millis(600), ..Counts::default() });
    let load = closed(2.0, for_(Duration::from_millis(50)));
    let measured = run_in_turn(&counts, 2, &load, 14);
    assert_eq!((measured, counts.begun.load(Ordering::Relaxed)), (2, 4), "a second one is begun, and still waits");
}

#[test]
fn a_pause_longer_than_a_load_goes_on_in_the_next() {
    let counts = Arc::new(Counts::default());
    let think = Think::Constant(Duration::from_millis(600));
    let model = LoadModel::Closed { users: Profile::constant(2.0), think };
    let load = LoadProfile { model, ..closed(2.0, for_(Duration::from_millis(50))) };
    assert_eq!(run_in_turn(&counts, 2, &load, 10), 2, "the first load has an iteration of each, the others none");
    assert_eq!(run_in_turn(&counts, 2, &load, 14), 4);
}

/// One user takes 30 ms for each of the arrivals that come every 10 ms.
#[test]
fn arrivals_that_wait_at_the_end_of_a_load_come_first_in_the_next() {
    let calls = Sleeps { call: Duration::from_millis(15), ..Sleeps::default() };
    let timeout = Duration::from_secs(60);
    let mut users = blocking_users(Arc::new(calls), vec!["write", "read"], timeout, timeout, 1);
    let (rate, overflow) = (Profile::constant(100.0), Overflow::Wait);
    let model = LoadModel::Open { rate, arrivals: Arrivals::Constant, max_users: 1, overflow };
    let load = LoadProfile { model, ..closed(1.0, for_(Duration::from_millis(200))) };
    let interrupted = AtomicBool::new(false);
    let mut outcomes = Vec::new();
    for stays in [true, false] {
        let job = Job { stays, ..job(&load) };
        let (mut sent, mut unsent) = (0, 0);
        let reports = &mut |report| {
            let Report::Second { interval, .. } = report else { return };
            for ((_, subject), tally) in &interval.tallies {
                if *subject == Subject::Iteration {
                    let missed = tally.errors.get(&ErrorKind::Unsent).copied().unwrap_or_default();
                    (sent, unsent) = (sent + tally.count() - missed, unsent + missed);
                }
            }
        };
        users
            .run(LocalJob { job: &job, steering: &Steering::default(), interrupted: &interrupted }, reports)
            .expect("a run");
        outcomes.push((sent, unsent));
    }
    let [(first, none), (second, unsent)] = outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!(none, 0, "those that wait are not lost");
    assert!(first <= 8, "one takes 30 ms of the 200 ms, and none begins after these: {outcomes:?}");
    assert_eq!(first + second + unsent, 40, "each arrival is counted once: {outcomes:?}");
}
