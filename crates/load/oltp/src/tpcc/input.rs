//! The inputs of the five transactions, as pure functions of random numbers (clauses 2.4.1, 2.5.1, 2.6.1,
//! 2.7.1 and 2.8.1).

use super::random::{Constants, ITEMS, last_name};
use super::rows::{DISTRICTS, DOLLAR};
use plimsoll_feed::RandomSource;

/// An item that does not exist: the last of an order that is to be rolled back.
pub(super) const UNUSED_ITEM: i64 = ITEMS + 1;

/// The parameters that inputs are drawn with.
#[derive(Clone, Debug)]
pub(super) struct InputParameters {
    /// How many warehouses there are.
    pub(super) warehouses: i64,
    /// Weights of the five transactions.
    pub(super) mix: [f64; 5],
    /// True if the lines of an order are sorted.
    pub(super) sorted_lines: bool,
    /// The constants of NURand.
    pub(super) constants: Constants,
}

/// The warehouse and district of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home {
    /// Its warehouse, from 1.
    pub(super) warehouse: i64,
    /// Its district, from 1 to 10.
    pub(super) district: i64,
}

impl Home {
    /// The home of the terminal with this number, from 0.
    ///
    /// Ten terminals belong to a warehouse, one to each district. More terminals than that begin with the
    /// first home again. Fewer terminals are spread over all warehouses. If they filled one warehouse
    /// after the other, the terminals of the first would wait for one another while the rest of the data
    /// lay still, and the curve of a load over users would bend where the next warehouse begins.
    pub(super) fn of(terminal: u32, warehouses: i64) -> Home {
        let terminal = i64::from(terminal);
        Home { warehouse: terminal % warehouses + 1, district: terminal / warehouses % DISTRICTS + 1 }
    }
}

/// The input of one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(OrderStatus),
    Delivery(Delivery),
    StockLevel(StockLevel),
}

impl Input {
    /// The index of its transaction among the five, in the order of the specification.
    pub(super) fn transaction(&self) -> usize {
        match self {
            Input::NewOrder(_) => 0,
            Input::Payment(_) => 1,
            Input::OrderStatus(_) => 2,
            Input::Delivery(_) => 3,
            Input::StockLevel(_) => 4,
        }
    }
}

/// The input of New-Order: an order of a customer of the terminal's warehouse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewOrder {
    pub(super) warehouse: i64,
    pub(super) district: i64,
    pub(super) customer: i64,
    /// From 5 to 15 lines.
    pub(super) lines: Vec<Line>,
}

impl NewOrder {
    /// True if the order is to be rolled back.
    pub(super) fn is_unused(&self) -> bool {
        self.lines.iter().any(|line| line.item == UNUSED_ITEM)
    }

    /// True if its own warehouse supplies all its lines.
    pub(super) fn is_local(&self) -> bool {
        self.lines.iter().all(|line| line.supply == self.warehouse)
    }
}

/// One line of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) item: i64,
    /// The warehouse that supplies it.
    pub(super) supply: i64,
    pub(super) quantity: i64,
}

/// The input of Payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Payment {
    pub(super) home: Home,
    pub(super) customer: Customer,
    /// In cents.
    pub(super) amount: i64,
}

/// A customer, as an input names one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Customer {
    pub(super) warehouse: i64,
    pub(super) district: i64,
    pub(super) by: CustomerKey,
}

/// The key of a customer in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CustomerKey {
    Number(i64),
    LastName(String),
}

/// The input of Order-Status: whose last order is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OrderStatus {
    pub(super) customer: Customer,
}

/// The input of Delivery: the oldest order of each district is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) warehouse: i64,
    pub(super) carrier: i64,
}

/// The input of Stock-Level: of the items in a district's last orders, how many have less stock than
/// `threshold`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StockLevel {
    pub(super) home: Home,
    pub(super) threshold: i64,
}

impl InputParameters {
    /// Draws the next input of a terminal. Inputs are independent of one another.
    pub(super) fn draw(&self, home: Home, random: &mut dyn RandomSource) -> Input {
        match self.transaction(random) {
            0 => Input::NewOrder(self.new_order(home, random)),
            1 => Input::Payment(self.payment(home, random)),
            2 => Input::OrderStatus(self.order_status(home, random)),
            3 => Input::Delivery(Delivery { warehouse: home.warehouse, carrier: random.between(1, 10) }),
            _ => Input::StockLevel(StockLevel { home, threshold: random.between(10, 20) }),
        }
    }

    fn transaction(&self, random: &mut dyn RandomSource) -> usize {
        let mut left = random.unit() * self.mix.iter().sum::<f64>();
        let drawn = self.mix.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        // Rounding may leave a rest, which goes to the last transaction with a weight.
        drawn.or_else(|| self.mix.iter().rposition(|weight| *weight > 0.0)).unwrap_or(0)
    }

    fn new_order(&self, home: Home, random: &mut dyn RandomSource) -> NewOrder {
        let (district, customer) = (random.between(1, DISTRICTS), self.constants.customer(random));
        let count = random.between(5, 15);
        let mut lines: Vec<Line> = (0..count).map(|_| self.line(home.warehouse, random)).collect();
        if self.sorted_lines {
            lines.sort_by_key(|line| (line.supply, line.item));
        }
        if random.between(1, 100) == 1
            && let Some(last) = lines.last_mut()
        {
            last.item = UNUSED_ITEM;
        }
        NewOrder { warehouse: home.warehouse, district, customer, lines }
    }

    fn line(&self, home: i64, random: &mut dyn RandomSource) -> Line {
        let item = self.constants.item(random);
        let supply = if random.between(1, 100) == 1 { self.other_than(home, random) } else { home };
        Line { item, supply, quantity: random.between(1, 10) }
    }

    fn payment(&self, home: Home, random: &mut dyn RandomSource) -> Payment {
        let district = random.between(1, DISTRICTS);
        let is_remote = random.between(1, 100) > 85 && self.warehouses > 1;
        let customer = match is_remote {
            true => {
                let warehouse = self.other_than(home.warehouse, random);
                self.customer(warehouse, random.between(1, DISTRICTS), random)
            }
            false => self.customer(home.warehouse, district, random),
        };
        Payment { home: Home { district, ..home }, customer, amount: random.between(DOLLAR, 5_000 * DOLLAR) }
    }

    fn order_status(&self, home: Home, random: &mut dyn RandomSource) -> OrderStatus {
        let district = random.between(1, DISTRICTS);
        OrderStatus { customer: self.customer(home.warehouse, district, random) }
    }

    fn customer(&self, warehouse: i64, district: i64, random: &mut dyn RandomSource) -> Customer {
        let by = match random.between(1, 100) <= 60 {
            true => CustomerKey::LastName(last_name(self.constants.last_name(random))),
            false => CustomerKey::Number(self.constants.customer(random)),
        };
        Customer { warehouse, district, by }
    }

    /// Draws a warehouse other than `home`; `home` itself if it is the only one.
    fn other_than(&self, home: i64, random: &mut dyn RandomSource) -> i64 {
        if self.warehouses == 1 {
            return home;
        }
        let other = random.between(1, self.warehouses - 1);
        if other < home { other } else { other + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;
    use std::collections::BTreeSet;

    const HOME: Home = Home { warehouse: 2, district: 7 };

    fn inputs(warehouses: i64) -> InputParameters {
        let mix = [45.0, 43.0, 4.0, 4.0, 4.0];
        InputParameters { warehouses, mix, sorted_lines: true, constants: Constants::of_run(1, 2) }
    }

    #[test]
    fn terminals_are_spread_over_warehouses_ten_to_each() {
        let home = |(warehouse, district)| Home { warehouse, district };
        assert_eq!([0, 1, 2, 29].map(|terminal| Home::of(terminal, 3)), [(1, 1), (2, 1), (3, 1), (3, 10)].map(home));
        let homes: BTreeSet<(i64, i64)> =
            (0..30).map(|terminal| Home::of(terminal, 3)).map(|home| (home.warehouse, home.district)).collect();
        assert_eq!(homes.len(), 30, "each district has its terminal");
        assert_eq!(Home::of(30, 3), Home::of(0, 3), "more begin again");
    }

    #[test]
    fn orders_are_within_what_the_specification_allows() {
        let mut random = Random::of(1, &[]);
        for _ in 0..20_000 {
            let order = inputs(3).new_order(HOME, &mut random);
            assert!((5..=15).contains(&order.lines.len()) && (1..=10).contains(&order.district));
            assert!(order.lines.iter().all(|line| (1..=10).contains(&line.quantity) && (1..=3).contains(&line.supply)));
            let unused = order.lines.iter().position(|line| line.item > ITEMS);
            assert!(unused.is_none_or(|at| at + 1 == order.lines.len()), "only the last item may be unused");
            let there = &order.lines[..unused.unwrap_or(order.lines.len())];
            assert!(there.is_sorted_by_key(|line| (line.supply, line.item)));
            assert_eq!(order.is_local(), order.lines.iter().all(|line| line.supply == 2));
        }
    }

    #[test]
    fn a_remote_customer_is_of_another_warehouse_and_a_local_one_of_the_district_that_is_paid() {
        let mut random = Random::of(2, &[]);
        for _ in 0..20_000 {
            let payment = inputs(3).payment(HOME, &mut random);
            assert!((DOLLAR..=5_000 * DOLLAR).contains(&payment.amount));
            assert_eq!(payment.home.warehouse, 2);
            if payment.customer.warehouse == 2 {
                assert_eq!(payment.customer.district, payment.home.district);
            }
        }
    }

    #[test]
    fn one_warehouse_alone_has_nothing_remote() {
        let mut random = Random::of(3, &[]);
        let home = Home { warehouse: 1, district: 1 };
        for _ in 0..20_000 {
            assert!(inputs(1).new_order(home, &mut random).is_local());
            assert_eq!(inputs(1).payment(home, &mut random).customer.warehouse, 1);
        }
    }

    #[test]
    fn a_transaction_without_weight_is_never_drawn() {
        let mut random = Random::of(4, &[]);
        let inputs = InputParameters { mix: [0.0, 3.0, 0.0, 1.0, 0.0], ..inputs(2) };
        let mut drawn = [0_u32; 5];
        (0..10_000).for_each(|_| drawn[inputs.transaction(&mut random)] += 1);
        assert_eq!((drawn[0], drawn[2], drawn[4]), (0, 0, 0));
        assert!((7_300..7_700).contains(&drawn[1]), "{drawn:?}");
    }
}
