//! The rows of the tables after a load (clause 4.3.3). They are pure functions of a seed, part by part, so
//! the order and the connections of a load do not matter.

use super::random::{CUSTOMERS, Constants, ITEMS, Random, last_name};
use super::schema::{CUSTOMER, DISTRICT, HISTORY, ITEM, NEW_ORDER, ORDER_LINE, ORDERS, STOCK, Table, WAREHOUSE};
use plimsoll_feed::RandomSource;
use plimsoll_sql::{Decimal, SqlError, Value};

/// The number of districts of a warehouse.
pub(super) const DISTRICTS: i64 = 10;
/// A dollar in cents.
pub(super) const DOLLAR: i64 = 100;
/// The first undelivered order of a district. At first it has one order for each customer.
const FIRST_UNDELIVERED: i64 = 2_101;
/// The time of all loaded events: the same for every load, so that loads are equal.
const LOAD_TIME: Value<'static> = Value::Text("2026-01-01 00:00:00");

/// Receives rows.
pub(super) type RowSink<'a> = dyn FnMut(&[Value<'_>]) -> Result<(), SqlError> + 'a;

/// The rows of a table that belong to one warehouse. Items belong to all warehouses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// The table.
    pub(super) table: &'static Table,
    /// The exact or approximate number of rows.
    pub(super) rows: u64,
    warehouse: i64,
    fill: fn(Source, &mut RowSink<'_>) -> Result<(), SqlError>,
}

impl Part {
    /// Gives its rows to `sink`, in the order of the primary key.
    ///
    /// # Errors
    /// Those of `sink`.
    pub(super) fn fill(&self, seed: u64, sink: &mut RowSink<'_>) -> Result<(), SqlError> {
        (self.fill)(Source { seed, warehouse: self.warehouse }, sink)
    }
}

/// All parts of this many warehouses. The longest come first, so that all loaders end at about the same
/// time.
pub(super) fn parts(warehouses: u32) -> Vec<Part> {
    type Fill = fn(Source, &mut RowSink<'_>) -> Result<(), SqlError>;
    let each: [(&'static Table, u64, Fill); 8] = [
        (&ORDER_LINE, 300_000, order_lines),
        (&STOCK, 100_000, stock),
        (&CUSTOMER, 30_000, customers),
        (&ORDERS, 30_000, orders),
        (&HISTORY, 30_000, history),
        (&NEW_ORDER, 9_000, new_orders),
        (&DISTRICT, 10, districts),
        (&WAREHOUSE, 1, warehouse),
    ];
    let of_warehouses = (1..=i64::from(warehouses))
        .flat_map(|warehouse| each.into_iter().map(move |(table, rows, fill)| Part { table, rows, warehouse, fill }));
    of_warehouses.chain([Part { table: &ITEM, rows: ITEMS as u64, warehouse: 0, fill: items }]).collect()
}

/// The seed and warehouse that determine the rows of a part.
#[derive(Clone, Copy, Debug)]
struct Source {
    seed: u64,
    warehouse: i64,
}

impl Source {
    /// The random values of one purpose and district of this warehouse.
    fn random(self, purpose: u64, district: i64) -> Random {
        Random::of(self.seed, &[purpose, self.warehouse as u64, district as u64])
    }

    /// The number of lines of each order of a district, on which the tables of orders and of lines agree.
    fn line_counts(self, district: i64) -> impl Iterator<Item = (i64, i64)> {
        let mut random = self.random(1, district);
        (1..=CUSTOMERS).map(move |order| (order, random.between(5, 15)))
    }
}

fn items(source: Source, sink: &mut RowSink<'_>) -> Result<(), SqlError> {
    let mut random = source.random(2, 0);
    for item in 1..=ITEMS {
        let (image, name) = (random.between(1, 10_000), random.letters(14, 24));
        let (price, data) = (random.between(DOLLAR, 100 * DOLLAR), brand(&mut random));
        sink(&[Value::Int(item), Value::Int(image), Value::Text(&name), money(price), Value::Text(&data)])?;
    }
    Ok(())
}

fn warehouse(source: Source, sink: &mut RowSink<'_>) -> Result<(), SqlError> {
    let mut random = source.random(3, 0);
    let (name, address, tax) = (random.letters(6, 10), Address::of(&mut random), random.between(0, 2_000));
    let [street_1, street_2, city, state, zip] = address.values();
    let id = Value::Int(source.warehouse);
    sink(&[id, Value::Text(&name), street_1, street_2, city, state, zip, rate(tax), money(300_000 * DOLLAR)])
}

fn districts(source: Source, sink: &mut RowSink<'_>) -> Result<(), SqlError> {
    let mut random = source.random(4, 0);
    for district in 1..=DISTRICTS {
        let (name, address, tax) = (random.letters(6, 10), Address::of(&mut random), random.between(0, 2_000));
        let [street_1, street_2, city, state, zip] = address.values();
        let (id, warehouse) = (Value::Int(district), Value::Int(source.warehouse));
        let (payments, next) = (money(30_000 * DOLLAR), Value::Int(CUSTOMERS + 1));
        let name = Value::Text(&name);
        sink(&[id, warehouse, name, street_1, street_2, city, state, zip, rate(tax), payments, next])?;
    }
    Ok(())
}

fn customers(source: Source, sink: &mut RowSink<'_>) -> Result<(), SqlError> {
    let constants = Constants::of_data(source.seed);
    for district in 1..=DISTRICTS {
        let mut random = source.random(5, district);
        for customer in 1..=CUSTOMERS {
            // The first thousand have every name once, so that each name is somebody's.
            let name = if customer <= 1_000 { customer - 1 } else { constants.last_name(&mut random) };
            let (first, last, address) = (random.letters(8, 16), last_name(name), Address::of(&mut random));
            let [street_1, street_2, city, state, zip] = address.values();
            let (phone, data) = (random.digits(16), random.letters(300, 500));
            let credit = if random.between(1, 10) == 1 { "BC" } else { "GC" };
            let discount = random.between(0, 5_000);
            sink(&[
                Value::Int(customer),
                Value::Int(district),
                Value::Int(source.warehouse),
                Value::Text(&first),
                Value::Text("OE"),
                Value::Text(&last),
                street_1,
                street_2,
                city,
                state,
                zip,
                Value::Text(&phone),
                LOAD_TIME,
                Value::Text(credit),
                money(50_000 * DOLLAR),
                rate(discount),
                money(-10 * DOLLAR),
                money(10 * DOLLAR),
                Value::Int(1),
                Value::Int(0),
                Value::Text(&data),
            ])?;
        }
    }
    Ok(())
}

fn history(source: Source, sink: &mut RowSink<'_>) -> Result<(), SqlError> {
    let warehouse = Value::Int(source.warehouse);
    for district in 1..=DISTRICTS {
        let mut random = source.random(6, district);
        for customer in 1..=CUSTOMERS {
            let data = random.letters(12, 24);
            let (customer, district) = (Value::Int(customer), Value::Int(district));
            sink(&[
                customer,
                district,
                warehouse,
                district,
                warehouse,
                LOAD_TIME,
                money(10 * DOLLAR),
                Value::Text(&data),
            ])?;
        }
    }
    Ok(())
}

fn stock(source: Source, sink: &mut RowSink<'_>) -> Result<(), SqlError> {
    let mut random = source.random(7, 0);
    for item in 1..=ITEMS {
        let quantity = random.between(10, 100);
        let districts: [String; DISTRICTS as usize] = std::array::from_fn(|_| random.letters(24, 24));
        let data = brand(&mut random);
        let mut row = [Value::Int(0); 17];
        row[..3].copy_from_slice(&[Value::Int(item), Value::Int(source.warehouse), Value::Int(quantity)]);
        row[3..13].iter_mut().zip(&districts).for_each(|(column, text)| *column = Value::Text(text));
        row[16] = Value::Text(&data);
        sink(&row)?;
    }
    Ok(())
}

fn orders(source: Source, sink: &mut RowSink<'_>) -> Result<(), SqlError> {
    for district in 1..=DISTRICTS {
        let mut random = source.random(8, district);
        let customers = random.permutation(CUSTOMERS);
        for ((order, lines), customer) in source.line_counts(district).zip(customers) {
            let carrier = random.between(1, 10);
            let carrier = if order < FIRST_UNDELIVERED { Value::Int(carrier) } else { Value::Null };
            let (order, district) = (Value::Int(order), Value::Int(district));
            let (warehouse, customer) = (Value::Int(source.warehouse), Value::Int(customer));
            sink(&[order, district, warehouse, customer, LOAD_TIME, carrier, Value::Int(lines), Value::Int(1)])?;
        }
    }
    Ok(())
}

fn order_lines(source: Source, sink: &mut RowSink<'_>) -> Result<(), SqlError> {
    let warehouse = Value::Int(source.warehouse);
    for district in 1..=DISTRICTS {
        let mut random = source.random(9, district);
        for (order, lines) in source.line_counts(district) {
            for number in 1..=lines {
                let (item, text) = (random.between(1, ITEMS), random.letters(24, 24));
                let amount = random.between(1, 10_000 * DOLLAR - 1);
                let delivered = order < FIRST_UNDELIVERED;
                sink(&[
                    Value::Int(order),
                    Value::Int(district),
                    warehouse,
                    Value::Int(number),
                    Value::Int(item),
                    warehouse,
                    if delivered { LOAD_TIME } else { Value::Null },
                    Value::Int(5),
                    money(if delivered { 0 } else { amount }),
                    Value::Text(&text),
                ])?;
            }
        }
    }
    Ok(())
}

fn new_orders(source: Source, sink: &mut RowSink<'_>) -> Result<(), SqlError> {
    for district in 1..=DISTRICTS {
        for order in FIRST_UNDELIVERED..=CUSTOMERS {
            sink(&[Value::Int(order), Value::Int(district), Value::Int(source.warehouse)])?;
        }
    }
    Ok(())
}

/// An amount in cents.
pub(super) fn money<'a>(cents: i64) -> Value<'a> {
    Value::Decimal(Decimal { unscaled: cents, scale: 2 })
}

/// A tax or discount in hundredths of a per cent.
fn rate<'a>(unscaled: i64) -> Value<'a> {
    Value::Decimal(Decimal { unscaled, scale: 4 })
}

/// A text of 26 to 50 letters, of which one in ten has ORIGINAL somewhere in it.
fn brand(random: &mut Random) -> String {
    const ORIGINAL: &str = "ORIGINAL";
    let mut text = random.letters(26, 50);
    if random.between(1, 10) == 1 {
        let at = random.between(0, (text.len() - ORIGINAL.len()) as i64) as usize;
        text.replace_range(at..at + ORIGINAL.len(), ORIGINAL);
    }
    text
}

/// An address: two streets, city, state and zip code.
struct Address([String; 5]);

impl Address {
    fn of(random: &mut Random) -> Address {
        let state = [random.between(0, 25), random.between(0, 25)].map(|letter| char::from(b'A' + letter as u8));
        Address([
            random.letters(10, 20),
            random.letters(10, 20),
            random.letters(10, 20),
            state.iter().collect(),
            random.digits(4) + "11111",
        ])
    }

    fn values(&self) -> [Value<'_>; 5] {
        self.0.each_ref().map(|text| Value::Text(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::Fingerprint;
    use plimsoll_model::database::Engine;
    use std::collections::{BTreeMap, BTreeSet};

    /// The rows of a table's first part, as texts; how many parts there are; and about how many rows.
    fn rows_of(name: &str, seed: u64) -> Vec<Vec<String>> {
        let part = parts(1).into_iter().find(|part| part.table.name == name).expect("a table");
        let mut rows = Vec::new();
        let mut sink = |row: &[Value<'_>]| {
            assert_eq!(row.len(), part.table.column_names().len(), "{name}");
            rows.push(row.iter().map(text).collect());
            Ok(())
        };
        part.fill(seed, &mut sink).expect("the sink takes all");
        rows
    }

    fn text(value: &Value<'_>) -> String {
        match value {
            Value::Null => "NULL".to_owned(),
            Value::Int(number) => number.to_string(),
            Value::Decimal(Decimal { unscaled, .. }) => unscaled.to_string(),
            Value::Text(text) => (*text).to_owned(),
        }
    }

    #[test]
    fn every_table_has_as_many_rows_as_the_specification_says() {
        for part in parts(2) {
            let mut rows = 0_u64;
            part.fill(1, &mut |_| {
                rows += 1;
                Ok(())
            })
            .expect("the sink takes all");
            let slack = if part.table.name == "order_line" { 3_000 } else { 0 };
            assert!(rows.abs_diff(part.rows) <= slack, "{}: {rows}", part.table.name);
        }
    }

    #[test]
    fn a_seed_gives_the_same_rows_again_and_another_gives_others() {
        for name in ["customer", "stock", "orders", "item", "warehouse", "district", "history"] {
            assert_eq!(rows_of(name, 7), rows_of(name, 7), "{name}");
            assert_ne!(rows_of(name, 7), rows_of(name, 8), "{name}");
        }
    }

    #[test]
    fn a_load_makes_what_it_made_before() {
        let mut fingerprint = Fingerprint::new();
        for part in parts(1) {
            for engine in [Engine::Postgresql, Engine::Mariadb] {
                fingerprint.add(&part.table.create(engine));
                part.table.finish(engine).iter().for_each(|statement| fingerprint.add(statement));
            }
            let mut sink = |row: &[Value<'_>]| {
                row.iter().for_each(|value| fingerprint.add(&text(value)));
                Ok(())
            };
            part.fill(1, &mut sink).expect("the sink takes all");
        }
        fingerprint.assert_is(0xe2c8_b1c6_d852_29a8);
    }

    #[test]
    fn orders_and_their_lines_agree() {
        let mut lines: BTreeMap<(String, String), i64> = BTreeMap::new();
        for line in rows_of("order_line", 1) {
            let delivered = line[0].parse::<i64>().expect("a number") <= 2_100;
            assert_eq!((line[6] != "NULL", line[8] == "0"), (delivered, delivered), "{line:?}");
            *lines.entry((line[1].clone(), line[0].clone())).or_default() += 1;
        }
        let mut customers = BTreeSet::new();
        for order in rows_of("orders", 1) {
            assert_eq!(order[6], lines[&(order[1].clone(), order[0].clone())].to_string());
            assert_eq!(order[5] != "NULL", order[0].parse::<i64>().expect("a number") <= 2_100);
            customers.insert((order[1].clone(), order[3].clone()));
        }
        assert_eq!(customers.len(), 30_000, "each customer has one order");
    }

    #[test]
    fn the_first_thousand_customers_of_a_district_have_all_names() {
        let rows = rows_of("customer", 1);
        for district in rows.chunks(3_000) {
            let names: BTreeSet<&String> = district[..1_000].iter().map(|row| &row[5]).collect();
            assert_eq!(names.len(), 1_000);
        }
        let bad = rows.iter().filter(|row| row[13] == "BC").count();
        assert!((2_700..3_300).contains(&bad), "one in ten: {bad}");
    }

    #[test]
    fn one_in_ten_texts_says_original() {
        let original = rows_of("item", 1).iter().filter(|row| row[4].contains("ORIGINAL")).count();
        assert!((9_500..10_500).contains(&original), "{original}");
    }
}
