//! Checks the mix of the inputs that terminals drew (clauses 5.2.3 and 9.2.2.5).
//!
//! The rule: a share or mean is right if it is as close to the expected one as the specification
//! demands. With few inputs, chance alone may take it further away. So four standard errors are
//! allowed, and two inputs more for what is rare. Correct inputs exceed that about once in 16,000
//! times.

use super::input::{Customer, CustomerKey, Input, InputParameters};
use super::rows::DISTRICTS;
use plimsoll_model::database::MixLine;
use plimsoll_model::sql::TPCC_STEPS;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The deviation that chance may explain, in standard errors.
const STANDARD_ERRORS: f64 = 4.0;

/// The deviation that chance may explain beyond that, in inputs.
const INPUTS: f64 = 2.0;

/// How far the share of a transaction may be off, relative to that share. The specification only
/// gives least shares, which studies usually ask for.
const TRANSACTIONS: f64 = 0.05;

/// Counts of the inputs that all terminals together drew so far.
#[derive(Debug, Default)]
pub(super) struct Mix {
    transactions: [AtomicU64; 5],
    rollbacks: AtomicU64,
    lines: AtomicU64,
    remote_lines: AtomicU64,
    remote_payments: AtomicU64,
    payments_by_name: AtomicU64,
    order_status_by_name: AtomicU64,
    skipped_districts: AtomicU64,
}

impl Mix {
    /// Counts the input of a terminal.
    pub(super) fn count(&self, input: &Input) {
        match input {
            Input::NewOrder(order) => {
                let remote = order.lines.iter().filter(|line| line.supply != order.warehouse).count();
                self.lines.fetch_add(order.lines.len() as u64, Relaxed);
                self.remote_lines.fetch_add(remote as u64, Relaxed);
                self.rollbacks.fetch_add(u64::from(order.is_unused()), Relaxed);
            }
            Input::Payment(payment) => {
                let is_remote = payment.customer.warehouse != payment.home.warehouse;
                self.remote_payments.fetch_add(u64::from(is_remote), Relaxed);
                self.payments_by_name.fetch_add(is_by_name(&payment.customer), Relaxed);
            }
            Input::OrderStatus(input) => {
                self.order_status_by_name.fetch_add(is_by_name(&input.customer), Relaxed);
            }
            Input::Delivery(_) | Input::StockLevel(_) => {}
        }
        self.transactions[input.transaction()].fetch_add(1, Relaxed);
    }

    /// Counts the districts of a delivery that had no order to deliver.
    pub(super) fn skip_districts(&self, districts: u64) {
        self.skipped_districts.fetch_add(districts, Relaxed);
    }

    /// Compares the counts with the mix that `inputs` and the specification prescribe. A kind of input
    /// that never occurred has no line.
    pub(super) fn lines(&self, inputs: &InputParameters) -> Vec<MixLine> {
        let transactions = self.transactions.each_ref().map(|count| count.load(Relaxed));
        let [orders, payments, order_statuses, deliveries, _] = transactions;
        let lines = self.lines.load(Relaxed);
        let all = transactions.iter().sum();
        let weights: f64 = inputs.mix.iter().sum();
        let mut expectations: Vec<Expectation> = (0..5)
            .map(|step| {
                let share = inputs.mix[step] / weights;
                Expectation::share(TPCC_STEPS[step], transactions[step], all, share, TRANSACTIONS * share)
            })
            .collect();
        expectations.push(Expectation::share("rolled back new orders", load(&self.rollbacks), orders, 0.01, 0.001));
        // The variance of a number that is drawn from 5 to 15 is 10.
        expectations.push(Expectation::new("lines of an order", lines, orders, 10.0, 0.5, 10.0));
        if inputs.warehouses > 1 {
            let remote_lines = load(&self.remote_lines);
            expectations.push(Expectation::share("remote order lines", remote_lines, lines, 0.01, 0.000_5));
            let remote_payments = load(&self.remote_payments);
            expectations.push(Expectation::share("remote payments", remote_payments, payments, 0.15, 0.01));
        }
        let payments_by_name = load(&self.payments_by_name);
        expectations.push(Expectation::share("payments by last name", payments_by_name, payments, 0.6, 0.03));
        let order_status_by_name = load(&self.order_status_by_name);
        expectations.push(Expectation::share(
            "order status by last name",
            order_status_by_name,
            order_statuses,
            0.6,
            0.03,
        ));
        // This is no input but follows from the mix: it is reported, and any share is allowed.
        let (skipped, visited) = (load(&self.skipped_districts), deliveries * DISTRICTS as u64);
        expectations.push(Expectation::share("districts without an order to deliver", skipped, visited, 0.0, 1.0));
        expectations.iter().filter(|expectation| expectation.n > 0).map(Expectation::line).collect()
    }
}

fn load(count: &AtomicU64) -> u64 {
    count.load(Relaxed)
}

fn is_by_name(customer: &Customer) -> u64 {
    u64::from(matches!(customer.by, CustomerKey::LastName(_)))
}

/// The expected mean of a count over inputs.
struct Expectation {
    name: String,
    /// The sum over `n` inputs.
    sum: u64,
    n: u64,
    mean: f64,
    /// How far the specification lets the mean be off.
    allowed: f64,
    /// The variance of one input.
    variance: f64,
}

impl Expectation {
    fn new(name: &str, sum: u64, n: u64, mean: f64, allowed: f64, variance: f64) -> Expectation {
        Expectation { name: name.replace('_', " "), sum, n, mean, allowed, variance }
    }

    fn share(name: &str, count: u64, n: u64, share: f64, allowed: f64) -> Expectation {
        Expectation::new(name, count, n, share, allowed, share * (1.0 - share))
    }

    fn line(&self) -> MixLine {
        let n = self.n as f64;
        let chance = STANDARD_ERRORS * (self.variance / n).sqrt() + INPUTS / n;
        let slack = self.allowed.max(chance);
        let (found, low, high) = (self.sum as f64 / n, (self.mean - slack).max(0.0), self.mean + slack);
        MixLine { name: self.name.clone(), n: self.n, found, low, high, holds: (low..=high).contains(&found) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::{Home, Payment};
    use super::super::random::{Constants, Random};
    use super::*;

    const MIX: [f64; 5] = [45.0, 43.0, 4.0, 4.0, 4.0];

    fn inputs(warehouses: i64, mix: [f64; 5]) -> InputParameters {
        InputParameters { warehouses, mix, sorted_lines: true, constants: Constants::of_run(1, 2) }
    }

    /// Draws `count` inputs, applies `change` to each, and compares them with the correct mix.
    fn lines(drawn_from: &InputParameters, count: u32, seed: u64, change: impl Fn(&mut Input, u32)) -> Vec<MixLine> {
        let (mix, mut random) = (Mix::default(), Random::of(seed, &[]));
        for index in 0..count {
            let mut input = drawn_from.draw(Home::of(index, drawn_from.warehouses), &mut random);
            change(&mut input, index);
            mix.count(&input);
        }
        mix.lines(&inputs(drawn_from.warehouses, MIX))
    }

    fn wrong(lines: &[MixLine]) -> Vec<&str> {
        lines.iter().filter(|line| !line.holds).map(|line| line.name.as_str()).collect()
    }

    #[test]
    fn fifty_thousand_correct_inputs_pass() {
        for seed in 0..20 {
            let lines = lines(&inputs(10, MIX), 50_000, seed, |_, _| {});
            assert_eq!(wrong(&lines), [""; 0], "{lines:?}");
            assert_eq!(lines.len(), 12);
        }
    }

    #[test]
    fn a_short_correct_trial_passes() {
        for count in [1, 5, 50, 500] {
            for seed in 0..20 {
                let lines = lines(&inputs(2, MIX), count, seed, |_, _| {});
                assert_eq!(wrong(&lines), [""; 0], "{count} inputs: {lines:?}");
            }
        }
    }

    #[test]
    fn with_many_inputs_the_bounds_are_those_of_the_specification() {
        let line = Expectation::share("remote payments", 160_000, 1_000_000, 0.15, 0.01).line();
        assert!((line.low - 0.14).abs() < 1e-9 && (line.high - 0.16).abs() < 1e-9, "{line:?}");
        assert!(line.holds);
        assert!(!Expectation::share("remote payments", 160_001, 1_000_000, 0.15, 0.01).line().holds);
    }

    #[test]
    fn other_weights_are_told() {
        let skewed = lines(&inputs(10, [43.0, 45.0, 4.0, 4.0, 4.0]), 50_000, 1, |_, _| {});
        assert_eq!(wrong(&skewed), ["payment"], "new orders are off by 4.4 %, payments by 4.7 %");
    }

    #[test]
    fn no_rollbacks_are_told() {
        let skewed = lines(&inputs(10, MIX), 50_000, 1, |input, _| {
            if let Input::NewOrder(order) = input {
                order.lines.iter_mut().for_each(|line| line.item = line.item.min(100_000));
            }
        });
        assert_eq!(wrong(&skewed), ["rolled back new orders"]);
    }

    #[test]
    fn orders_of_7_to_15_lines_are_told() {
        let skewed = lines(&inputs(10, MIX), 50_000, 1, |input, index| {
            if let Input::NewOrder(order) = input
                && order.lines.len() < 7
            {
                order.lines.resize(7 + index as usize % 9, order.lines[0]);
            }
        });
        assert!(wrong(&skewed).contains(&"lines of an order"), "{skewed:?}");
    }

    #[test]
    fn customers_that_are_always_known_by_number_are_told() {
        let skewed = lines(&inputs(10, MIX), 50_000, 1, |input, _| {
            if let Input::Payment(Payment { customer, .. }) = input {
                customer.by = CustomerKey::Number(1);
            }
        });
        assert_eq!(wrong(&skewed), ["payments by last name"]);
    }

    #[test]
    fn payments_that_are_never_remote_are_told() {
        let skewed = lines(&inputs(10, MIX), 50_000, 1, |input, _| match input {
            Input::Payment(payment) => payment.customer.warehouse = payment.home.warehouse,
            Input::NewOrder(order) => order.lines.iter_mut().for_each(|line| line.supply = order.warehouse),
            _ => {}
        });
        assert_eq!(wrong(&skewed), ["remote order lines", "remote payments"]);
    }
}
