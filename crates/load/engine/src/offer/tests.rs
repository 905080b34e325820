//! Tests of an offer without clock and sockets: iterations take as long as a test says.

use super::*;
use crate::clock::nanos;
use crate::job::Steering;
use crate::schedule::ArrivalTimes;
use plimsoll_model::feedback::FeedbackRules;
use plimsoll_model::load::{Arrivals, Joining, Overflow, Profile, Shape, Share, Stage, Think};
use proptest::prelude::*;

const MS: i64 = 1_000_000;

fn closed(users: Profile, think: Duration, stop: Stop) -> Offering {
    let model = LoadModel::Closed { users, think: Think::Constant(think) };
    Offering {
        model,
        stop,
        start: Instant(0),
        warmup: Duration::ZERO,
        drain: Duration::from_secs(1),
        graceful_ramp_down: None,
        k6_arrivals: None,
        steering: None,
        seed: 5,
    }
}

fn open(rate: f64, max_users: u32, overflow: Overflow, stop: Stop) -> Offering {
    let model = LoadModel::Open { rate: Profile::constant(rate), arrivals: Arrivals::Poisson, max_users, overflow };
    Offering { model, ..closed(Profile::constant(0.0), Duration::ZERO, stop) }
}

/// The only thread of the only machine.
const ALONE: ThreadShare = ThreadShare { machine: WHOLE, thread: 0, threads: 1 };

/// One of so many threads of the only machine.
fn part(thread: usize, threads: usize) -> ThreadShare {
    ThreadShare { machine: WHOLE, thread, threads }
}

/// A share of which no other thread has a part.
fn alone(offering: &Offering, share: ThreadShare) -> Offer {
    Offer::new(offering, &SharedQuota::of(offering, WHOLE), share)
}

#[test]
fn what_one_thread_does_not_begin_another_does() {
    let stop = Stop::Iterations { count: 10, limit: ms(100) };
    let offering = closed(Profile::constant(2.0), Duration::ZERO, stop);
    let shared = SharedQuota::of(&offering, WHOLE);
    let mut offers = [0, 1].map(|index| Offer::new(&offering, &shared, part(index, 2)));
    assert!(offers[1].begin(0, Instant(0)));
    for _ in 0..9 {
        assert!(offers[0].begin(0, Instant(0)), "the other thread is slow");
        offers[0].iteration_ended(0, Nanos(0), Instant(1));
    }
    assert!(!offers[0].begin(0, Instant(1)) && offers[0].is_over(Instant(1)));
    offers[1].iteration_ended(0, Nanos(0), Instant(2));
    assert!(!offers[1].begin(0, Instant(2)) && offers[1].is_over(Instant(2)));
}

#[test]
fn machines_with_users_have_all_iterations() {
    let stop = Stop::Iterations { count: 10, limit: ms(100) };
    let begun = |users: f64, of: usize| -> Vec<u64> {
        let offering = closed(Profile::constant(users), Duration::ZERO, stop);
        let of_machine = |index| {
            let machine = Share { index, of };
            let mut offer = Offer::new(
                &offering,
                &SharedQuota::of(&offering, machine),
                ThreadShare { machine, thread: 0, threads: 1 },
            );
            let mut begun = 0;
            while offer.len() > 0 && offer.begin(0, Instant(0)) {
                offer.iteration_ended(0, Nanos(0), Instant(1));
                begun += 1;
            }
            begun
        };
        (0..of).map(of_machine).collect()
    };
    assert_eq!(begun(3.0, 3), [4, 3, 3]);
    assert_eq!(begun(2.0, 3), [5, 5, 0]);
    assert_eq!(begun(1.0, 3), [10, 0, 0]);
}

#[test]
fn a_machine_without_users_that_have_iterations_of_their_own_is_done_at_once() {
    let offering = closed(Profile::constant(1.0), Duration::ZERO, Stop::IterationsPerUser { count: 2, limit: ms(100) });
    let is_over = |index| {
        let machine = Share { index, of: 2 };
        let part = ThreadShare { machine, thread: 0, threads: 1 };
        Offer::new(&offering, &SharedQuota::of(&offering, machine), part).is_over(Instant(0))
    };
    assert_eq!([is_over(0), is_over(1)], [false, true]);
}

#[test]
fn nobody_waits_for_what_another_thread_gives_back() {
    let stop = Stop::Iterations { count: 1, limit: ms(100) };
    let offering = closed(Profile::constant(2.0), Duration::ZERO, stop);
    let shared = SharedQuota::of(&offering, WHOLE);
    let [mut one, mut other] = [0, 1].map(|index| Offer::new(&offering, &shared, part(index, 2)));
    assert!(one.begin(0, Instant(0)) && !other.begin(0, Instant(0)));
    one.stop(0, Instant(0), Instant(1));
    assert!(one.is_over(Instant(1)) && other.is_over(Instant(1)));
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn a_control_loop_adds_users_takes_them_away_and_ends_the_load() {
    let rules = FeedbackRules { step: 1, most: 8, rest: ms(10), over: ms(10), window: ms(10), flat: 0.1 };
    let limit = Duration::from_secs(60);
    let offering = closed(Profile::constant(2.0), Duration::ZERO, Stop::Feedback { rules, limit });
    let steering = Steering::default();
    let offering = offering.steered(steering.clone());
    steering.set_users(2);
    let mut begun = 0;
    // Iterations take 10 ms: 20 of 2 users, then 80 of 5 users, then 30 of the only one that is left.
    let outcome = play(&offering, ALONE, false, &mut || {
        begun += 1;
        match begun {
            20 => steering.set_users(5),
            100 => steering.set_users(1),
            130 => steering.end(),
            _ => {}
        }
        10 * MS
    });
    assert_eq!(outcome.iterations.len(), 8, "there may be as many as the control loop may ask for");
    assert!(outcome.iterations[4] > 10 && outcome.iterations[5..].iter().all(|made| *made == 0), "{outcome:?}");
    assert!(outcome.iterations[0] > outcome.iterations[1] + 20, "the first user goes on alone: {outcome:?}");
    assert_eq!((outcome.most_at_once, outcome.cut_off, begun), (5, 0, 130), "an iteration under way comes to its end");
    assert!(outcome.over < Instant(nanos(Duration::from_secs(2))), "{outcome:?}");
}

#[test]
fn whom_a_control_loop_takes_away_rests_until_the_end() {
    let rules = FeedbackRules { step: 1, most: 4, rest: ms(10), over: ms(10), window: ms(10), flat: 0.1 };
    let limit = Duration::from_secs(60);
    let offering = closed(Profile::constant(4.0), Duration::ZERO, Stop::Feedback { rules, limit });
    let steering = Steering::default();
    let offering = offering.steered(steering.clone());
    steering.set_users(4);
    let mut begun = 0;
    let outcome = play(&offering, ALONE, true, &mut || {
        begun += 1;
        match begun {
            20 => steering.set_users(1),
            60 => steering.set_users(4),
            100 => steering.end(),
            _ => {}
        }
        10 * MS
    });
    assert!(outcome.iterations.iter().all(|made| *made > 10), "those taken away come again: {outcome:?}");
    assert!(outcome.retired.len() == 4, "{outcome:?}");
    assert!(outcome.retired.iter().all(|(at, _)| at.0 + 20 * MS >= outcome.over.0), "{outcome:?}");
}

/// The result of an offer.
#[derive(Debug, Default)]
struct Outcome {
    /// When iterations were due, and when they began.
    begun: Vec<(Instant, Instant)>,
    dropped: Vec<Instant>,
    unsent: u64,
    cut_off: u64,
    retired: Vec<(Instant, u32)>,
    most_at_once: usize,
    /// The iterations of each user.
    iterations: Vec<u64>,
    over: Instant,
}

/// Plays an offer in steps of a millisecond, with iterations that take as long as `takes` says.
struct Play<'a> {
    offer: Offer,
    takes: &'a mut dyn FnMut() -> i64,
    /// When the iteration, or the pause, of each user ends.
    ends: Vec<Option<(Instant, bool)>>,
    outcome: Outcome,
}

fn play(offering: &Offering, share: ThreadShare, retires: bool, takes: &mut dyn FnMut() -> i64) -> Outcome {
    let mut offer = alone(offering, share);
    if retires {
        offer.keep_retirees();
    }
    let users = offer.len();
    let outcome = Outcome { iterations: vec![0; users], ..Outcome::default() };
    let mut play = Play { offer, takes, ends: vec![None; users], outcome };
    let mut now = Instant(offering.start.0 - nanos(offering.warmup));
    loop {
        play.turn(now);
        if play.offer.is_over(now) {
            while play.offer.next_unsent(now).is_some() {
                play.outcome.unsent += 1;
            }
            play.outcome.over = now;
            return play.outcome;
        }
        now.0 += MS;
    }
}

impl Play<'_> {
    fn turn(&mut self, now: Instant) {
        while let Some(start) = self.offer.next_start(now) {
            match start {
                Start::User(user) => self.begin(user, now, now),
                Start::Arrival { user, due, .. } => self.begin(user, due, now),
                Start::Dropped(due) => self.outcome.dropped.push(due),
            }
        }
        for user in 0..self.ends.len() {
            if let Some((_, iterating)) = self.ends[user].filter(|(at, _)| *at <= now) {
                self.ends[user] = None;
                if iterating { self.end(user as u32, now) } else { self.wake(user as u32, now) }
            }
        }
        while let Some(user) = self.offer.next_retiree(now) {
            self.outcome.retired.push((now, user));
            self.offer.retired(user, now);
        }
        for user in self.offer.take_overdue(now) {
            self.outcome.cut_off += 1;
            self.ends[user as usize] = None;
            if self.offer.iteration_ended(user, Nanos(0), now).is_some() {
                assert!(!self.offer.begin(user, now), "nothing follows what was cut off");
            }
        }
    }

    fn begin(&mut self, user: u32, due: Instant, now: Instant) {
        if self.offer.begin(user, due) {
            assert!(self.ends[user as usize].is_none(), "a user does one thing at a time");
            self.ends[user as usize] = Some((now.after(Nanos((self.takes)().unsigned_abs())), true));
            self.outcome.begun.push((due, now));
            self.outcome.iterations[user as usize] += 1;
            let at_work = self.ends.iter().flatten().filter(|(_, iterating)| *iterating).count();
            self.outcome.most_at_once = self.outcome.most_at_once.max(at_work);
        }
    }

    fn end(&mut self, user: u32, now: Instant) {
        match self.offer.iteration_ended(user, Nanos(0), now) {
            None => {}
            Some(Nanos(0)) => self.begin(user, now, now),
            Some(pause) => {
                self.offer.think(user);
                self.ends[user as usize] = Some((now.after(pause), false));
            }
        }
    }

    fn wake(&mut self, user: u32, now: Instant) {
        if self.offer.wake(user, now) {
            self.begin(user, now, now);
        }
    }
}

#[test]
fn a_ramp_down_takes_users_away_and_a_ramp_up_brings_them_back() {
    let hold = |ms, target| Stage { length: Duration::from_millis(ms), target, shape: Shape::Hold };
    let users = Profile { start: 3.0, stages: vec![hold(100, 3.0), hold(100, 1.0), hold(100, 2.0)], joining: None };
    let outcome = play(&closed(users, Duration::ZERO, Stop::After(ms(300))), ALONE, true, &mut || 10 * MS);
    assert_eq!(outcome.iterations, [30, 20, 10], "ten in each tenth of a second");
    let retired: Vec<(i64, u32)> = outcome.retired.iter().map(|(at, user)| (at.0 / MS, *user)).collect();
    assert!(matches!(retired[..], [(100, _), (100, _), (300, _), (300, _)]), "{retired:?}");
}

#[test]
fn users_join_one_after_the_other_in_warm_up() {
    let joining = Some(Joining { from: -0.2, per_second: 20.0 });
    let users = Profile { joining, ..Profile::constant(4.0) };
    let offering = Offering { warmup: ms(200), ..closed(users, Duration::ZERO, Stop::After(ms(100))) };
    let mut offer = alone(&offering, ALONE);
    let mut began = Vec::new();
    for at in -200..0 {
        while let Some(Start::User(user)) = offer.next_start(Instant(at * MS)) {
            assert!(offer.begin(user, Instant(at * MS)));
            began.push((user, at));
        }
    }
    assert_eq!(began, [(0, -200), (1, -150), (2, -100), (3, -50)]);
}

#[test]
fn users_that_a_ramp_no_longer_asks_for_have_so_long_to_go() {
    let stage = Stage { length: ms(100), target: 0.0, shape: Shape::Hold };
    let users = Profile { start: 4.0, stages: vec![Stage { target: 4.0, ..stage }, stage], joining: None };
    let offering = closed(users, Duration::ZERO, Stop::After(ms(200)));
    let patient = play(&offering, ALONE, false, &mut || 150 * MS);
    assert_eq!((patient.cut_off, patient.over), (0, Instant(200 * MS)));
    let hurried = play(&Offering { graceful_ramp_down: Some(ms(20)), ..offering }, ALONE, false, &mut || 150 * MS);
    assert_eq!((hurried.cut_off, hurried.over), (4, Instant(200 * MS)));
}

#[test]
fn what_is_under_way_at_the_end_of_the_drain_is_cut_off() {
    let offering = closed(Profile::constant(5.0), Duration::ZERO, Stop::After(ms(50)));
    let outcome = play(&Offering { drain: ms(30), ..offering }, ALONE, true, &mut || 1000 * MS);
    assert_eq!((outcome.cut_off, outcome.over), (5, Instant(80 * MS)));
}

#[test]
fn an_offer_that_starts_later_follows_its_own_profile() {
    let start = Instant(500 * MS);
    let stage = Stage { length: ms(100), target: 2.0, shape: Shape::Hold };
    let users = Profile { start: 1.0, stages: vec![Stage { target: 1.0, ..stage }, stage], joining: None };
    let offering = Offering { start, ..closed(users, Duration::ZERO, Stop::After(ms(200))) };
    let mut offer = alone(&offering, ALONE);
    assert_eq!((offer.next_start(Instant(499 * MS)), offer.is_over(Instant(0))), (None, false));
    assert_eq!(offer.next_due(Instant(0)), start);
    assert_eq!(offer.next_start(start), Some(Start::User(0)));
    assert_eq!(offer.next_start(Instant(550 * MS)), None);
    assert_eq!(offer.next_start(Instant(600 * MS)), Some(Start::User(1)));
    assert_eq!(offer.next_start(Instant(600 * MS)), None);
}

#[test]
fn a_user_that_has_nothing_more_to_do_leaves_its_arrival_to_another() {
    let mut offer = alone(&open(1000.0, 2, Overflow::Wait, Stop::Iterations { count: 2, limit: ms(100) }), ALONE);
    let now = Instant(50 * MS);
    let Some(Start::Arrival { user: 0, due, .. }) = offer.next_start(now) else { panic!("an arrival") };
    assert!(offer.begin(0, due));
    offer.stop(0, due, now);
    let again = offer.next_start(now);
    assert!(matches!(again, Some(Start::Arrival { user: 1, due: at, .. }) if at == due), "{again:?}");
    assert!(offer.begin(1, due));
    offer.stop(1, due, now);
    assert_eq!(offer.next_start(now), None, "nobody is left");
    assert!(offer.is_over(now), "and nobody will come");
    assert!(offer.all_stopped());
    assert_eq!(offer.next_unsent(now), None, "which is no fault of whoever would have answered");
}

#[test]
fn users_of_a_script_on_its_own_take_turns() {
    let now = Instant(500 * MS);
    let taken = |k6_arrivals| {
        let offering = Offering { k6_arrivals, ..open(1000.0, 3, Overflow::Drop, Stop::After(ms(1000))) };
        let mut offer = alone(&offering, ALONE);
        let mut take = |ends: bool| {
            let Some(Start::Arrival { user, due, .. }) = offer.next_start(now) else { panic!("an arrival") };
            assert!(offer.begin(user, due));
            if ends {
                offer.iteration_ended(user, Nanos(0), now);
            }
            user
        };
        [true, true, true, false, false, false].map(&mut take)
    };
    assert_eq!(taken(None), [0, 0, 0, 0, 1, 2], "in a study, few of them stay warm");
    let k6_arrivals = K6Arrivals { in_turn: 2, after_a_gap: false };
    assert_eq!(taken(Some(k6_arrivals)), [0, 1, 0, 1, 0, 2], "the third is for when both are busy");
}

#[test]
fn a_closed_loop_ends_when_all_its_users_are_lost() {
    let mut offer = alone(&closed(Profile::constant(2.0), Duration::ZERO, Stop::After(ms(100))), ALONE);
    for user in [0, 1] {
        assert_eq!(offer.next_start(Instant(0)), Some(Start::User(user)));
        assert!(offer.begin(user, Instant(0)));
        offer.withdraw(user);
        assert!(!offer.is_over(Instant(0)), "its iteration is still under way");
        assert_eq!(offer.iteration_ended(user, Nanos(0), Instant(5)), Some(Nanos(0)));
        assert!(!offer.begin(user, Instant(5)));
    }
    assert!(offer.is_over(Instant(6)));
}

fn stops() -> impl Strategy<Value = Stop> {
    let limit = (20_u64..300).prop_map(ms);
    prop_oneof![
        limit.clone().prop_map(Stop::After),
        (0_u64..200, limit.clone()).prop_map(|(count, limit)| Stop::Iterations { count, limit }),
        (0_u64..20, limit).prop_map(|(count, limit)| Stop::IterationsPerUser { count, limit }),
    ]
}

fn profiles() -> impl Strategy<Value = Profile> {
    let stage = (1_u64..80, 0_u8..12, any::<bool>()).prop_map(|(length, target, ramp)| Stage {
        length: ms(length),
        target: f64::from(target),
        shape: if ramp { Shape::Ramp } else { Shape::Hold },
    });
    (0_u8..12, prop::collection::vec(stage, 0..4)).prop_map(|(start, stages)| Profile {
        start: f64::from(start),
        stages,
        joining: None,
    })
}

/// Durations of iterations, one after the other, in milliseconds.
fn takes(durations: &[i64]) -> impl FnMut() -> i64 {
    let mut next = durations.iter().cycle();
    move || next.next().map_or(MS, |duration| duration * MS)
}

proptest! {
    #[test]
    fn a_closed_loop_keeps_its_users_its_quota_and_its_time(
        users in profiles(), stop in stops(), think in 0_u64..20, warmup in 0_u64..50, retires: bool,
        durations in prop::collection::vec(1_i64..60, 1..20),
    ) {
        let offering = Offering { warmup: ms(warmup), ..closed(users.clone(), ms(think), stop) };
        let outcome = play(&offering, ALONE, retires, &mut takes(&durations));
        let end = Instant(nanos(stop.limit()));
        prop_assert!(outcome.most_at_once <= users.peak() as usize);
        prop_assert!(outcome.begun.iter().all(|(due, _)| *due < end), "nothing begins after the window");
        let measured = outcome.begun.iter().filter(|(due, _)| due.0 >= 0).count() as u64;
        match stop {
            Stop::After(_) | Stop::Soak(_) | Stop::Feedback { .. } => {}
            Stop::Iterations { count, .. } => prop_assert!(measured <= count),
            Stop::IterationsPerUser { count, .. } => prop_assert!(measured <= count * outcome.iterations.len() as u64),
        }
        prop_assert!(outcome.over <= end.after(offering.drain.into()));
        prop_assert_eq!(outcome.cut_off, 0, "the drain is long enough for all");
        let mut stopped: Vec<u32> = outcome.retired.iter().map(|(_, user)| *user).collect();
        stopped.sort_unstable();
        stopped.dedup();
        prop_assert_eq!(stopped.len(), if retires { outcome.iterations.len() } else { 0 }, "each stops in the end");
    }

    #[test]
    fn every_arrival_begins_once_or_is_counted_as_one_that_never_did(
        rate in 1.0_f64..500.0, max_users in 1_u32..8, drops: bool, stop in stops(),
        durations in prop::collection::vec(1_i64..60, 1..20),
    ) {
        let overflow = if drops { Overflow::Drop } else { Overflow::Wait };
        let stop = if let Stop::IterationsPerUser { limit, .. } = stop { Stop::After(limit) } else { stop };
        let offering = open(rate, max_users, overflow, stop);
        let outcome = play(&offering, ALONE, false, &mut takes(&durations));
        let end = Instant(nanos(stop.limit()));
        let all = ArrivalTimes::new(&Profile::constant(rate), Arrivals::Poisson, Instant(0), offering.seed, WHOLE);
        let offered = all.take_while(|due| *due < end).count() as u64;
        let (begun, dropped) = (outcome.begun.len() as u64, outcome.dropped.len() as u64);
        let quota = if let Stop::Iterations { count, .. } = stop { count } else { u64::MAX };
        if drops {
            prop_assert!(begun <= quota && begun + dropped <= offered);
            prop_assert!(begun == quota || begun + dropped == offered, "{begun} and {dropped} of {offered}");
            prop_assert!(outcome.begun.iter().all(|(due, at)| at.0 - due.0 < MS), "what began was not late");
        } else {
            prop_assert_eq!(dropped, 0);
            prop_assert_eq!(begun + outcome.unsent, offered.min(quota));
            prop_assert!(outcome.begun.is_sorted(), "first come, first served");
        }
        prop_assert!(outcome.most_at_once <= max_users as usize);
        prop_assert!(quota != u64::MAX || outcome.over >= end, "it lasts as long as it is to");
    }

    #[test]
    fn shares_together_have_all_users_and_iterations(users in 0_u8..40, count in 0_u64..300, of in 1_usize..6) {
        let stop = Stop::Iterations { count, limit: ms(10) };
        let offering = closed(Profile::constant(f64::from(users)), Duration::ZERO, stop);
        let shared = SharedQuota::of(&offering, WHOLE);
        let mut offers: Vec<Offer> = (0..of).map(|index| Offer::new(&offering, &shared, part(index, of))).collect();
        prop_assert_eq!(offers.iter().map(Offer::len).sum::<usize>(), usize::from(users));
        prop_assert!(offers.iter().all(|offer| users == 0 || offer.len() > 0 || !offer.quota.has_any()));
        let mut begun = 0;
        while offers.iter_mut().any(|offer| offer.quota.take()) {
            begun += 1;
        }
        prop_assert_eq!(begun, count);
    }

    #[test]
    fn all_arrivals_go_to_threads_that_have_users(max_users in 1_u32..5, of in 1_usize..6) {
        let offering = open(300.0, max_users, Overflow::Drop, Stop::After(ms(100)));
        let all = play(&offering, ALONE, false, &mut || MS);
        let parts = (0..of).map(|index| play(&offering, part(index, of), false, &mut || MS));
        let offered = |outcome: Outcome| outcome.begun.len() + outcome.dropped.len();
        let shared: Vec<usize> = parts.map(offered).collect();
        prop_assert_eq!(shared.iter().sum::<usize>(), offered(all));
        prop_assert!(shared[of.min(max_users as usize)..].iter().all(|part| *part == 0));
    }
}

#[test]
fn arrivals_beyond_what_any_users_can_begin_are_dropped_together() {
    for ends_at_once in [false, true] {
        let offering = open(1e9, 4, Overflow::Drop, Stop::After(ms(1000)));
        let LoadModel::Open { rate, max_users, overflow, .. } = offering.model else { unreachable!("it is open") };
        let model = LoadModel::Open { rate, arrivals: Arrivals::Constant, max_users, overflow };
        let mut offer = alone(&Offering { model, ..offering }, ALONE);
        let (mut begun, mut dropped, mut turns) = (0_u64, 0_u64, 0);
        while !offer.is_over(Instant(turns * 10 * MS)) {
            let now = Instant(turns * 10 * MS);
            for _ in 0..256 {
                match offer.next_start(now) {
                    Some(Start::Arrival { user, due, .. }) if offer.begin(user, due) => {
                        begun += 1;
                        if ends_at_once {
                            offer.iteration_ended(user, Nanos(0), now);
                        }
                    }
                    Some(Start::Dropped(_)) => dropped += 1,
                    other => assert_eq!(other, None),
                }
            }
            dropped += offer.drop_overdue(now);
            turns += 1;
        }
        assert!((100..1000).contains(&turns), "it took {turns} turns");
        assert_eq!((begun + dropped, begun > 4), (1_000_000_000, ends_at_once));
    }
}
