//! A user of a flow: where it stands, and what it knows.

use super::Flows;
use super::capture::below;
use super::check::Condition;
use super::compile::Chance;
use super::program::{Address, MOST_IN_A_ROW, Op};
use super::redirect::Hop;
use super::template::{Known, Place};
use super::value::Value;
use plimsoll_engine::protocol::{Failure, Next};
use plimsoll_engine::schedule::{Random, think_time};
use plimsoll_feed::{RandomSource, Turn, push_alphanumeric};
use plimsoll_model::flow::{Lifetime, MOST_LOOPS};
use plimsoll_model::load::Think;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::units::Nanos;
use plimsoll_web::Jar;

/// The random numbers of users are their own, apart from those of schedule and threads.
const FIRST_STREAM: u64 = 1 << 32;

/// A user.
pub struct User {
    number: u64,
    /// The number of its iteration, from 1.
    iteration: u64,
    /// Requests so far, without redirects.
    exchanges: u64,
    stage: Stage,
    at: Address,
    /// How often each loop that it is in has gone round.
    counters: [u32; MOST_LOOPS],
    pub(super) values: Box<[Value]>,
    /// Its row of each feed.
    rows: Box<[u32]>,
    pub(super) jar: Jar,
    pub(super) random: Random,
    /// The request that it makes.
    pub(super) request: u32,
    /// Where a redirect leads that it follows.
    pub(super) hop: Option<Box<Hop>>,
    /// What the request has taken so far, with those of redirects.
    pub(super) spent: Nanos,
    /// When it last sent or got something, in milliseconds since 1970.
    pub(super) now: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It knows nothing.
    New,
    /// In `on_start`.
    Starting,
    /// Behind it.
    Ready,
    /// In an action, or behind it.
    Iterating,
    /// In `on_stop`, to be a new user for the next iteration.
    Renewing,
    /// In `on_stop` for good.
    Retiring,
}

impl User {
    /// What it knows while it writes a request, looks at a reply or decides.
    pub(super) fn known<'a>(&'a self, flows: &'a Flows<'_>) -> Known<'a> {
        // Unlike all else that is random, UUIDs do not follow from the seed: a system that keeps
        // its data takes each but once.
        let run = flows.born.wrapping_add(self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Known {
            pool: &flows.plan.pool,
            names: &flows.plan.names,
            tables: &flows.plan.feeds.tables,
            values: &self.values,
            rows: &self.rows,
            user: self.number + 1,
            iteration: self.iteration,
            now: self.now,
            uuids: u128::from(run) << 64 | u128::from(self.exchanges) << 20,
        }
    }
}

impl Flows<'_> {
    pub(super) fn new_user(&self, number: u64, seed: u64) -> User {
        User {
            number,
            iteration: 0,
            exchanges: 0,
            stage: Stage::New,
            at: 0,
            counters: [0; MOST_LOOPS],
            values: vec![Value::Absent; self.plan.names.len()].into(),
            rows: vec![u32::MAX; self.plan.feeds.tables.len()].into(),
            jar: Jar::default(),
            random: Random::seeded(seed, FIRST_STREAM + number),
            request: 0,
            hop: None,
            spent: Nanos(0),
            now: 0,
        }
    }

    pub(super) fn begin_iteration(&self, user: &mut User) -> Next {
        user.hop = None;
        match (user.stage, self.plan.lifetime) {
            (Stage::New | Stage::Starting | Stage::Renewing, _) => self.start(user),
            (_, Lifetime::Trial) if self.take_turn(user) => self.act(user),
            (_, Lifetime::Trial) => Next::Stop,
            (_, Lifetime::Iteration) => self.enter(user, Stage::Renewing, self.plan.program.on_stop),
        }
    }

    /// A user that knows nothing yet: `on_start`, and the iteration behind it.
    fn start(&self, user: &mut User) -> Next {
        user.values.fill(Value::Absent);
        user.jar = Jar::default();
        // Whoever was another user a moment ago has done something that is no part of the iteration.
        let was_another = user.stage == Stage::Renewing;
        user.stage = Stage::New;
        if !self.take_turn(user) {
            return Next::Stop;
        }
        if self.plan.program.is_empty_at(self.plan.program.on_start) && !was_another {
            return self.act(user);
        }
        self.enter(user, Stage::Starting, self.plan.program.on_start)
    }

    /// Takes rows, forgets what ended with the iteration before, and draws values for the next one;
    /// false where the user is to stop.
    fn take_turn(&self, user: &mut User) -> bool {
        let turn = Turn { user: user.number, iteration: user.iteration };
        if let Err(feed) = self.cursors.take(turn, &mut user.rows) {
            self.plan.feeds.note_end(feed, self.clock.now());
            return false;
        }
        user.iteration += 1;
        self.plan.passing.iter().for_each(|slot| user.values[*slot as usize] = Value::Absent);
        for (slot, chance) in &self.plan.draws {
            user.values[*slot as usize] = drawn(chance, &mut user.random);
        }
        true
    }

    /// Draws an action, and begins it.
    fn act(&self, user: &mut User) -> Next {
        let program = &self.plan.program;
        let action = program.action(below(program.weight() as usize, &mut user.random) as u64);
        self.enter(user, Stage::Iterating, action)
    }

    fn enter(&self, user: &mut User, stage: Stage, at: Address) -> Next {
        (user.stage, user.at) = (stage, at);
        self.go_on(user)
    }

    pub(super) fn follow(&self, user: &mut User) -> Next {
        match user.stage {
            _ if user.hop.is_some() => Next::Exchange(self.request_of(user).step),
            Stage::Ready => self.act(user),
            _ => self.go_on(user),
        }
    }

    pub(super) fn begin_to_stop(&self, user: &mut User) -> Next {
        user.hop = None;
        match user.stage {
            Stage::New | Stage::Starting => Next::Done,
            _ => self.enter(user, Stage::Retiring, self.plan.program.on_stop),
        }
    }

    fn exchange(&self, user: &User) -> Next {
        let request = self.request_of(user);
        match request.fits(&mut user.known(self), self.plan) {
            Ok(()) => Next::Exchange(request.step),
            Err(failure) => Next::Refused(request.step, failure),
        }
    }

    /// The block is over.
    fn finish(&self, user: &mut User) -> Next {
        match user.stage {
            Stage::Starting => {
                user.stage = Stage::Ready;
                Next::Begun
            }
            Stage::Renewing => self.start(user),
            Stage::Retiring => {
                user.stage = Stage::New;
                Next::Done
            }
            Stage::New | Stage::Ready | Stage::Iterating => Next::Done,
        }
    }

    /// Goes through operations up to one that takes time.
    fn go_on(&self, user: &mut User) -> Next {
        for _ in 0..MOST_IN_A_ROW {
            let op = &self.plan.program.ops[user.at as usize];
            user.at += 1;
            match op {
                Op::Request(request) => {
                    (user.request, user.spent) = (*request, Nanos(0));
                    user.exchanges += 1;
                    return self.exchange(user);
                }
                Op::Pause(think) => return pause(*think, user),
                Op::End => return self.finish(user),
                op => {
                    if let Err(failure) = self.step(op, user) {
                        return Next::Failed(failure);
                    }
                }
            }
        }
        let detail = "expected a request or a pause in the loops of the flow, found none in a million rounds";
        Next::Failed(Failure::new(ErrorKind::Check, detail))
    }

    /// One operation that takes no time.
    fn step(&self, op: &Op, user: &mut User) -> Result<(), Failure> {
        match op {
            Op::Unless { conditions, to } => {
                if !all_hold(self.plan.program.conditions(*conditions), &mut user.known(self))? {
                    user.at = *to;
                }
            }
            Op::Jump(to) => user.at = *to,
            Op::Zero(counter) => user.counters[*counter as usize] = 0,
            Op::Repeat { counter, times, end } => {
                if !counts(&mut user.counters[*counter as usize], *times) {
                    user.at = *end;
                }
            }
            Op::Each { counter, list, item, at_most, end } => match self.item(user, *list, *counter, *at_most)? {
                Some(value) => user.values[*item as usize] = value,
                None => user.at = *end,
            },
            Op::Bound { counter, at_most, conditions } => {
                if !counts(&mut user.counters[*counter as usize], *at_most) {
                    let known = user.known(self);
                    let conditions = self.plan.program.conditions(*conditions).iter();
                    let found = conditions.map(|condition| condition.found(&known)).collect::<Vec<_>>().join(", ");
                    let detail = format!("expected a loop to end after at most {at_most} rounds, found {found}");
                    return Err(Failure::new(ErrorKind::Check, detail));
                }
            }
            Op::Request(_) | Op::Pause(_) | Op::End => {}
        }
        Ok(())
    }

    /// The next item of a list; `None` behind its end.
    fn item(&self, user: &mut User, list: Place, counter: u8, at_most: u32) -> Result<Option<Value>, Failure> {
        let index = user.counters[counter as usize];
        if !counts(&mut user.counters[counter as usize], at_most) {
            return Ok(None);
        }
        let known = user.known(self);
        let Some(items) = known.view(list).items() else {
            let (name, found) = (known.name(list), known.view(list).text());
            let detail =
                format!("expected a list in `{{${name}}}`, found `{}`", super::template::sample(found.as_bytes()));
            return Err(Failure::new(ErrorKind::Capture, detail));
        };
        let item = items.get(index as usize).cloned();
        // An array of JSON is read once, not for each item.
        if let (Place::Kept(slot), std::borrow::Cow::Owned(items)) = (list, items) {
            user.values[slot as usize] = Value::List(items.into());
        }
        Ok(item)
    }
}

/// Counts up to a limit; false where it is reached.
fn counts(counter: &mut u32, limit: u32) -> bool {
    let goes_on = *counter < limit;
    *counter += u32::from(goes_on);
    goes_on
}

fn all_hold(conditions: &[Condition], known: &mut Known<'_>) -> Result<bool, Failure> {
    for condition in conditions {
        if !condition.holds(known)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn pause(think: Think, user: &mut User) -> Next {
    Next::Pause(Nanos(think_time(think, &mut user.random).unsigned_abs()))
}

fn drawn(chance: &Chance, random: &mut Random) -> Value {
    match chance {
        Chance::Number(sampler) => Value::Integer(sampler.sample(&mut UserRandom(random))),
        Chance::Text(length) => {
            let mut text = String::new();
            push_alphanumeric(&mut text, *length, &mut UserRandom(random));
            Value::Text(text.into())
        }
        Chance::Constant(value) => value.clone(),
    }
}

/// The numbers of a user, from 0 on instead of up to 1.
struct UserRandom<'a>(&'a mut Random);

impl RandomSource for UserRandom<'_> {
    fn unit(&mut self) -> f64 {
        1.0 - self.0.unit()
    }
}
