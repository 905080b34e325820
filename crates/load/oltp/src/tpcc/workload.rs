//! The workload of TPC-C, and its users.

use super::attempt::{Attempt, NamedStatement, check_failed};
use super::input::{Home, Input, InputParameters};
use super::mix::Mix;
use super::random::Constants;
use super::{delivery, new_order, order_status, payment, stock_level};
use crate::workload::{SqlUser, SqlWorkload, StatementName, StatementObserver, TransactionEnd};
use plimsoll_feed::RandomSource;
use plimsoll_model::database::MixLine;
use plimsoll_model::sql::{TPCC_STEPS, Tpcc, Waits};
use plimsoll_sql::{Connection, SqlError, Statement};
use std::sync::Arc;
use std::time::Duration;

/// The statements of each step, between BEGIN and COMMIT. A new order that is to be rolled back has the
/// statements of a new order.
const STATEMENTS: [&[NamedStatement]; TPCC_STEPS.len()] = [
    new_order::STATEMENTS,
    payment::STATEMENTS,
    order_status::STATEMENTS,
    delivery::STATEMENTS,
    stock_level::STATEMENTS,
    new_order::STATEMENTS,
];

/// The step of a new order that is to be rolled back.
const ROLLBACK: usize = 5;

/// The number of control statements of a step: BEGIN, COMMIT and ROLLBACK.
const CONTROL: usize = 3;

/// Keying times of the five transactions in seconds (clause 5.2.5.2).
const KEYING: [f64; 5] = [18.0, 3.0, 2.0, 2.0, 2.0];

/// Means of their think times in seconds, which are exponential (clause 5.2.5.4).
const THINKING: [f64; 5] = [12.0, 12.0, 10.0, 5.0, 5.0];

/// The longest think time, in means.
const LONGEST_THINKING: f64 = 10.0;

/// Compiles TPC-C as a study asks for it.
pub(crate) fn workload(tpcc: &Tpcc, seed: u64) -> Box<dyn SqlWorkload> {
    let inputs = InputParameters {
        warehouses: i64::from(tpcc.warehouses),
        mix: tpcc.mix,
        sorted_lines: tpcc.sorted_lines,
        constants: Constants::of_run(tpcc.data_seed, seed),
    };
    let shared = Shared { inputs, mix: Mix::default() };
    Box::new(TpccWorkload { waits: tpcc.waits, shared: Arc::new(shared) })
}

/// The workload of TPC-C.
struct TpccWorkload {
    waits: Waits,
    shared: Arc<Shared>,
}

/// The state that all users share.
struct Shared {
    inputs: InputParameters,
    mix: Mix,
}

impl SqlWorkload for TpccWorkload {
    fn statements(&self) -> Vec<StatementName> {
        let steps = STATEMENTS.iter().enumerate();
        steps.flat_map(|(step, named)| names(named).map(move |name| StatementName { step, name })).collect()
    }

    fn user(&self, index: u32, mut connection: Connection) -> Result<Box<dyn SqlUser>, SqlError> {
        let warehouses = self.shared.inputs.warehouses;
        check_size(warehouses, &mut connection)?;
        Ok(Box::new(TpccUser {
            shared: self.shared.clone(),
            wait_factor: self.waits.factor(),
            home: Home::of(index, warehouses),
            prepared: prepare(&mut connection)?,
            connection,
            input: None,
            waits: (Duration::ZERO, Duration::ZERO),
        }))
    }

    fn mix(&self) -> Vec<MixLine> {
        self.shared.mix.lines(&self.shared.inputs)
    }

    fn description(&self) -> String {
        let InputParameters { warehouses, mix, sorted_lines, .. } = &self.shared.inputs;
        let waits = match self.waits {
            Waits::Spec => "as specified".to_owned(),
            Waits::Zero => "zero".to_owned(),
            Waits::Scaled(factor) => format!("as specified x {factor}"),
        };
        let mix = mix.map(|weight| weight.to_string()).join("/");
        let lines = if *sorted_lines { "sorted by warehouse and item" } else { "as drawn" };
        let plural = if *warehouses == 1 { "" } else { "s" };
        format!("TPC-C, {warehouses} warehouse{plural}, mix {mix}, waits {waits}, order lines {lines}")
    }
}

/// The names of a transaction's statements, BEGIN and the like included.
fn names(named: &'static [NamedStatement]) -> impl Iterator<Item = String> {
    let own = named.iter().map(|(name, _)| *name);
    ["begin"].into_iter().chain(own).chain(["commit", "rollback"]).map(str::to_owned)
}

/// Fails unless the data has this many warehouses.
fn check_size(warehouses: i64, connection: &mut Connection) -> Result<(), SqlError> {
    let counted = connection.query("SELECT COUNT(*) FROM warehouse")?;
    let found = counted.rows.first().and_then(|row| row.first().cloned().flatten()).unwrap_or_default();
    if found != warehouses.to_string() {
        let advice = "load the data anew, or let the study say how many there are";
        return Err(check_failed(format!("expected {warehouses} warehouses, found {found}; {advice}")));
    }
    Ok(())
}

/// Prepares the statements of the five transactions.
pub(super) fn prepare(connection: &mut Connection) -> Result<Vec<Vec<Statement>>, SqlError> {
    let mut all = |named: &&[NamedStatement]| named.iter().map(|(_, text)| connection.prepare(text)).collect();
    STATEMENTS[..ROLLBACK].iter().map(&mut all).collect()
}

/// One user, at a terminal with a warehouse and district of its own.
struct TpccUser {
    shared: Arc<Shared>,
    /// The factor of keying and think times.
    wait_factor: f64,
    home: Home,
    connection: Connection,
    /// The prepared statements of the five transactions.
    prepared: Vec<Vec<Statement>>,
    input: Option<Input>,
    waits: (Duration, Duration),
}

impl SqlUser for TpccUser {
    fn draw_transaction(&mut self, random: &mut dyn RandomSource) -> usize {
        let input = self.shared.inputs.draw(self.home, random);
        self.shared.mix.count(&input);
        self.waits = draw_waits(input.transaction(), self.wait_factor, random);
        let step = step(&input);
        self.input = Some(input);
        step
    }

    fn keying_and_think_time(&self) -> (Duration, Duration) {
        self.waits
    }

    fn run_transaction(&mut self, observer: &mut dyn StatementObserver) -> Result<TransactionEnd, SqlError> {
        let Some(input) = &self.input else {
            return Err(check_failed("expected an input, found none: nothing was drawn"));
        };
        run(input, &mut self.connection, &self.prepared, observer, &self.shared.mix)
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

/// The step of an input.
fn step(input: &Input) -> usize {
    match input {
        Input::NewOrder(order) if order.is_unused() => ROLLBACK,
        input => input.transaction(),
    }
}

/// The number of a step's BEGIN among all statements.
fn first_statement(step: usize) -> usize {
    STATEMENTS[..step].iter().map(|named| named.len() + CONTROL).sum()
}

/// Runs a transaction. Rolls it back if it fails and the connection is still there.
pub(super) fn run(
    input: &Input,
    connection: &mut Connection,
    prepared: &[Vec<Statement>],
    observer: &mut dyn StatementObserver,
    mix: &Mix,
) -> Result<TransactionEnd, SqlError> {
    let (named, first) = (STATEMENTS[step(input)], first_statement(step(input)));
    let mut attempt = Attempt { connection, observer, named, prepared: &prepared[input.transaction()], first };
    let ended = match input {
        Input::NewOrder(order) => new_order::run(order, &mut attempt),
        Input::Payment(payment) => payment::run(payment, &mut attempt),
        Input::OrderStatus(input) => order_status::run(input, &mut attempt),
        Input::Delivery(delivery) => delivery::run(*delivery, mix, &mut attempt),
        Input::StockLevel(input) => stock_level::run(*input, &mut attempt),
    };
    match ended {
        // The first error is reported, unless the rollback ended the connection.
        Err(error) if !error.is_fatal() => Err(attempt.roll_back().err().filter(SqlError::is_fatal).unwrap_or(error)),
        ended => ended,
    }
}

/// Draws the keying time before a transaction, and the think time after it.
fn draw_waits(transaction: usize, factor: f64, random: &mut dyn RandomSource) -> (Duration, Duration) {
    let means = (-(1.0 - random.unit()).ln()).min(LONGEST_THINKING);
    let [keying, thinking] = [KEYING[transaction], means * THINKING[transaction]];
    (Duration::from_secs_f64(factor * keying), Duration::from_secs_f64(factor * thinking))
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    const TPCC: Tpcc =
        Tpcc { warehouses: 2, waits: Waits::Spec, mix: [45.0, 43.0, 4.0, 4.0, 4.0], sorted_lines: true, data_seed: 1 };

    #[test]
    fn statements_are_numbered_in_the_order_of_steps() {
        let statements = workload(&TPCC, 1).statements();
        for step in 0..TPCC_STEPS.len() {
            let first = first_statement(step);
            assert_eq!((statements[first].step, statements[first].name.as_str()), (step, "begin"));
            let last = &statements[first + STATEMENTS[step].len() + 2];
            assert_eq!((last.step, last.name.as_str()), (step, "rollback"));
        }
        assert_eq!(statements.len(), first_statement(TPCC_STEPS.len()));
    }

    #[test]
    fn think_times_have_the_mean_of_the_specification_and_an_end() {
        let mut random = Random::of(1, &[]);
        let times: Vec<f64> = (0..50_000).map(|_| draw_waits(2, 0.5, &mut random).1.as_secs_f64()).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert!((mean - 5.0).abs() < 0.1, "{mean}");
        assert!(times.iter().all(|time| *time <= 50.0));
        assert_eq!(draw_waits(0, 0.5, &mut random).0, Duration::from_secs(9));
        assert_eq!(draw_waits(0, 0.0, &mut random), (Duration::ZERO, Duration::ZERO));
    }
}
