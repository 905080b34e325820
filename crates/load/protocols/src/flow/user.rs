//! A user of a flow: its position in the program, and its values.

use super::Flows;
use super::check::Condition;
use super::compile::RandomValue;
use super::program::{Address, MOST_STEPS_WITHOUT_WAIT, Op};
use super::redirect::Redirect;
use super::template::{TemplateContext, ValueRef};
use super::uuid::MessageNumber;
use super::value::Value;
use plimsoll_engine::protocol::{Failure, Next};
use plimsoll_engine::schedule::{Random, think_time};
use plimsoll_engine::sockets::SocketAction;
use plimsoll_feed::{RandomSource, Turn, push_alphanumeric};
use plimsoll_model::flow::{Lifetime, MOST_LOOPS};
use plimsoll_model::load::Think;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::units::Nanos;
use plimsoll_web::Jar;

/// The first stream of random numbers for users. Lower streams belong to schedule and threads.
const FIRST_STREAM: u64 = 1 << 32;

/// A user.
pub struct User {
    number: u64,
    /// The number of its iteration, from 1.
    iteration: u64,
    /// The number of requests so far, without redirects.
    exchanges: u64,
    stage: Stage,
    at: Address,
    /// The rounds of each loop that it is in.
    counters: [u32; MOST_LOOPS],
    pub(super) values: Box<[Value]>,
    /// Its row of each feed.
    rows: Box<[u32]>,
    pub(super) jar: Jar,
    pub(super) random: Random,
    /// The request under way, and the message under way on the socket.
    pub(super) request: u32,
    pub(super) message: u32,
    /// The number of what its last request with listeners carried.
    pub(super) posted: Option<MessageNumber>,
    /// The redirect that it follows, if any.
    pub(super) redirect: Option<Box<Redirect>>,
    /// The duration of the request so far, redirects included.
    pub(super) elapsed: Nanos,
    /// The time of its last send or receive, in milliseconds since 1970.
    pub(super) now: i64,
    /// The place of its last step among all steps and messages of the thread.
    pub(super) last_step: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It has no values yet.
    New,
    /// In `on_start`.
    Starting,
    /// Done with `on_start`.
    Ready,
    /// In an action, or done with it.
    Iterating,
    /// In `on_stop`, to be a new user for the next iteration.
    Renewing,
    /// In `on_stop` for good.
    Retiring,
}

impl User {
    /// The context for templates and conditions.
    pub(super) fn context<'a>(&'a self, flows: &'a Flows<'_>) -> TemplateContext<'a> {
        // Unlike all other random values, UUIDs do not depend on the seed: a system that keeps its
        // data accepts each UUID only once.
        let run = flows.started_unix_nanos.wrapping_add(self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        TemplateContext {
            pool: &flows.flow.pool,
            names: &flows.flow.names,
            tables: &flows.flow.feeds.tables,
            values: &self.values,
            rows: &self.rows,
            user: self.number + 1,
            iteration: self.iteration,
            now: self.now,
            uuids: u128::from(run) << 64 | u128::from(self.exchanges) << 20,
            message: self.message_number(flows),
        }
    }
}

impl User {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The number of what its present request carries.
    pub(super) fn message_number(&self, flows: &Flows<'_>) -> MessageNumber {
        MessageNumber::new(flows.started_unix_nanos, self.number, self.exchanges)
    }

    /// A new request or opening begins.
    pub(super) fn count_exchange(&mut self) {
        self.exchanges += 1;
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
            values: vec![Value::Absent; self.flow.names.len()].into(),
            rows: vec![u32::MAX; self.flow.feeds.tables.len()].into(),
            jar: Jar::default(),
            random: Random::seeded(seed, FIRST_STREAM + number),
            request: 0,
            message: 0,
            posted: None,
            redirect: None,
            elapsed: Nanos(0),
            now: 0,
            last_step: 0,
        }
    }

    pub(super) fn begin_iteration(&self, user: &mut User) -> Next {
        user.redirect = None;
        match (user.stage, self.flow.lifetime) {
            // A user whose steps for stopping have failed begins anew like one that has done them.
            (Stage::New | Stage::Starting | Stage::Renewing | Stage::Retiring, _) => self.start(user),
            (_, Lifetime::Trial) if self.prepare_iteration(user) => self.begin_action(user),
            (_, Lifetime::Trial) => Next::Stop,
            (_, Lifetime::Iteration) => self.enter(user, Stage::Renewing, self.flow.program.on_stop),
        }
    }

    /// Starts a new user: `on_start`, then the iteration.
    fn start(&self, user: &mut User) -> Next {
        user.values.fill(Value::Absent);
        user.jar = Jar::default();
        // The user before it has just run `on_stop`, which is no part of the iteration.
        let was_another = user.stage == Stage::Renewing;
        user.stage = Stage::New;
        if !self.prepare_iteration(user) {
            return Next::Stop;
        }
        if self.flow.program.is_empty_at(self.flow.program.on_start) && !was_another {
            return self.begin_action(user);
        }
        self.enter(user, Stage::Starting, self.flow.program.on_start)
    }

    /// Takes rows of feeds, clears the values of the last iteration, and draws those of the next. Returns
    /// false if the user must stop.
    fn prepare_iteration(&self, user: &mut User) -> bool {
        let turn = Turn { user: user.number, iteration: user.iteration };
        if let Err(feed) = self.cursors.take(turn, &mut user.rows) {
            self.flow.feeds.record_end(feed, self.clock.get().now());
            return false;
        }
        user.iteration += 1;
        self.flow.iteration_values.iter().for_each(|slot| user.values[*slot as usize] = Value::Absent);
        for (slot, random_value) in &self.flow.draws {
            user.values[*slot as usize] = drawn(random_value, &mut user.random);
        }
        true
    }

    /// Draws an action, and begins it.
    fn begin_action(&self, user: &mut User) -> Next {
        let program = &self.flow.program;
        let action = program.draw(program.actions, &mut user.random);
        self.enter(user, Stage::Iterating, action)
    }

    fn enter(&self, user: &mut User, stage: Stage, at: Address) -> Next {
        (user.stage, user.at) = (stage, at);
        self.run_until_wait(user)
    }

    pub(super) fn follow(&self, user: &mut User) -> Next {
        match user.stage {
            _ if user.redirect.is_some() => Next::Exchange(self.request_of(user).step),
            Stage::Ready => self.begin_action(user),
            _ => self.run_until_wait(user),
        }
    }

    pub(super) fn begin_on_stop(&self, user: &mut User) -> Next {
        user.redirect = None;
        match user.stage {
            Stage::New | Stage::Starting => Next::Done,
            _ => self.enter(user, Stage::Retiring, self.flow.program.on_stop),
        }
    }

    fn exchange(&self, user: &User) -> Next {
        let request = self.request_of(user);
        match request.check(&mut user.context(self), self.flow) {
            Ok(()) => Next::Exchange(request.step),
            Err(failure) => Next::Refused(request.step, failure),
        }
    }

    /// Ends a block.
    fn end_block(&self, user: &mut User) -> Next {
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

    /// Runs operations up to one that takes time.
    fn run_until_wait(&self, user: &mut User) -> Next {
        for _ in 0..MOST_STEPS_WITHOUT_WAIT {
            let op = &self.flow.program.ops[user.at as usize];
            user.at += 1;
            match op {
                Op::Request(request) => {
                    (user.request, user.elapsed) = (*request, Nanos(0));
                    user.count_exchange();
                    return self.exchange(user);
                }
                Op::Pause(think) => return pause(*think, user),
                Op::OpenSocket => return Next::Socket(SocketAction::Open),
                Op::CloseSocket => return Next::Socket(SocketAction::Close),
                Op::Message(message) => {
                    (user.message, user.elapsed) = (*message, Nanos(0));
                    user.count_exchange();
                    return self.exchange_message(user);
                }
                Op::End => return self.end_block(user),
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

    /// Runs one operation that takes no time.
    fn step(&self, op: &Op, user: &mut User) -> Result<(), Failure> {
        match op {
            Op::JumpUnless { conditions, to } => {
                if !all_hold(self.flow.program.conditions(*conditions), &mut user.context(self))? {
                    user.at = *to;
                }
            }
            Op::Jump(to) => user.at = *to,
            Op::JumpToOneOf(choices) => user.at = self.flow.program.draw(*choices, &mut user.random),
            Op::ResetCounter(counter) => user.counters[*counter as usize] = 0,
            Op::CountRound { counter, times, end } => {
                if !count_up_to(&mut user.counters[*counter as usize], *times) {
                    user.at = *end;
                }
            }
            Op::NextItem { counter, list, item, at_most, end } => match self.item(user, *list, *counter, *at_most)? {
                Some(value) => user.values[*item as usize] = value,
                None => user.at = *end,
            },
            Op::LimitRounds { counter, at_most, conditions } => {
                if !count_up_to(&mut user.counters[*counter as usize], *at_most) {
                    let context = user.context(self);
                    let conditions = self.flow.program.conditions(*conditions).iter();
                    let found = conditions.map(|condition| condition.found(&context)).collect::<Vec<_>>().join(", ");
                    let detail = format!("expected a loop to end after at most {at_most} rounds, found {found}");
                    return Err(Failure::new(ErrorKind::Check, detail));
                }
            }
            Op::Request(_) | Op::Pause(_) | Op::OpenSocket | Op::Message(_) | Op::CloseSocket | Op::End => {}
        }
        Ok(())
    }

    /// The next item of a list; `None` after the last.
    fn item(&self, user: &mut User, list: ValueRef, counter: u8, at_most: u32) -> Result<Option<Value>, Failure> {
        let index = user.counters[counter as usize];
        if !count_up_to(&mut user.counters[counter as usize], at_most) {
            return Ok(None);
        }
        let context = user.context(self);
        let Some(items) = context.view(list).items() else {
            let (name, found) = (context.name(list), context.view(list).text());
            let detail =
                format!("expected a list in `{{${name}}}`, found `{}`", super::template::excerpt(found.as_bytes()));
            return Err(Failure::new(ErrorKind::Capture, detail));
        };
        let item = items.get(index as usize).cloned();
        // Parse an array of JSON once, not for each item.
        if let (ValueRef::Kept(slot), std::borrow::Cow::Owned(items)) = (list, items) {
            user.values[slot as usize] = Value::List(items.into());
        }
        Ok(item)
    }
}

/// Counts up to a limit. Returns false if it was reached before.
fn count_up_to(counter: &mut u32, limit: u32) -> bool {
    let goes_on = *counter < limit;
    *counter += u32::from(goes_on);
    goes_on
}

fn all_hold(conditions: &[Condition], context: &mut TemplateContext<'_>) -> Result<bool, Failure> {
    for condition in conditions {
        if !condition.holds(context)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn pause(think: Think, user: &mut User) -> Next {
    Next::Pause(Nanos(think_time(think, &mut user.random).unsigned_abs()))
}

fn drawn(random_value: &RandomValue, random: &mut Random) -> Value {
    match random_value {
        RandomValue::Number(sampler) => Value::Integer(sampler.sample(&mut UserRandom(random))),
        RandomValue::Text(length) => {
            let mut text = String::new();
            push_alphanumeric(&mut text, *length, &mut UserRandom(random));
            Value::Text(text.into())
        }
        RandomValue::Constant(value) => value.clone(),
    }
}

/// The random numbers of a user, as numbers of [0, 1) in place of (0, 1].
struct UserRandom<'a>(&'a mut Random);

impl RandomSource for UserRandom<'_> {
    fn unit(&mut self) -> f64 {
        1.0 - self.0.unit()
    }
}
