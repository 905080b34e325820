//! `tpcc` of a SQL workload.

use crate::document::{Fault, Faults, table};
use crate::value::{
    NonNegativeNumber, Problem, Scalar, Scope, Templated, WholeNumber, keyword, number_after, resolve_all,
    resolve_optional, written_or,
};
use plimsoll_model::factor::Level;
use plimsoll_model::load::{LoadModel, LoadProfile, Think};
use plimsoll_model::sql::{Tpcc, Waits};
use serde_json::{Value, json};
use std::time::Duration;

table! {
    /// TPC-C.
    struct TpccTable {
        /// How many warehouses the data has.
        warehouses: Templated<Warehouses>,
        /// Keying and think times: as the "spec" has them, "zero", or "scaled N" for N times those. Default: "zero".
        waits: Option<Templated<Waits>>,
        /// Weights of new order, payment, order status, delivery and stock level. Default: [45, 43, 4, 4, 4].
        mix: Option<Vec<Templated<NonNegativeNumber>>>,
        /// Whether the lines of an order are sorted, so that orders cannot wait for one another in a circle. Default: false.
        sorted_lines: Option<Templated<bool>>,
    }
}

type Warehouses = WholeNumber<1, 100_000>;

const MIX: [f64; 5] = [45.0, 43.0, 4.0, 4.0, 4.0];

/// How many terminals a warehouse has (TPC-C 5.11, clause 4.2).
const TERMINALS: f64 = 10.0;

impl TpccTable {
    pub(crate) fn resolve(&self, scope: &Scope<'_>, seed: u64, faults: &mut Faults) -> Option<Tpcc> {
        let warehouses = self.warehouses.resolve(scope, faults);
        let waits = resolve_optional(self.waits.as_ref(), |waits| waits.resolve(scope, faults));
        let mix = resolve_optional(self.mix.as_ref(), |mix| self.mix(mix, scope, faults));
        let sorted_lines = resolve_optional(self.sorted_lines.as_ref(), |sorted| sorted.resolve(scope, faults));
        Some(Tpcc {
            warehouses: warehouses?.u32(),
            waits: waits?.unwrap_or(Waits::Zero),
            mix: mix?.unwrap_or(MIX),
            sorted_lines: sorted_lines?.unwrap_or(false),
            data_seed: seed,
        })
    }

    fn mix(&self, mix: &[Templated<NonNegativeNumber>], scope: &Scope<'_>, faults: &mut Faults) -> Option<[f64; 5]> {
        let weights = resolve_all(mix, |weight| weight.resolve(scope, faults).map(|weight| weight.0))?;
        let found = <[f64; 5]>::try_from(weights).ok().filter(|weights| weights.iter().sum::<f64>() > 0.0);
        if found.is_none() {
            let place = mix.first().map_or(&self.place, |first| &first.span);
            let fault = Fault::error(place, "`workload.tpcc.mix` must be five weights, not all of them zero");
            faults.add(
                fault.help("those of new order, payment, order status, delivery and stock level: [45, 43, 4, 4, 4]"),
            );
        }
        found
    }

    /// Whether users may pause as the specification has it.
    pub(crate) fn has_waits(&self) -> bool {
        self.waits.as_ref().is_some_and(|waits| waits.fixed().is_none_or(|waits| waits.factor() > 0.0))
    }

    /// Whether the waits of `tpcc` fit the load.
    pub(crate) fn check_load(&self, tpcc: &Tpcc, load: &LoadProfile, faults: &mut Faults) -> Option<()> {
        let Some(waits) = self.waits.as_ref().filter(|_| tpcc.waits.factor() > 0.0) else { return Some(()) };
        let (message, help) = match &load.model {
            LoadModel::Open { .. } => {
                ("keying and think times have a meaning only in closed load (`users`)", "write `waits = \"zero\"`")
            }
            LoadModel::Closed { think, .. } if *think != Think::Constant(Duration::ZERO) => (
                "`tpcc.waits` and `load.think` both say how long users pause",
                "leave `think` out of `[load]`, or write `waits = \"zero\"`",
            ),
            LoadModel::Closed { users, .. } => {
                let (users, most) = (users.peak(), f64::from(tpcc.warehouses) * TERMINALS);
                if tpcc.waits == Waits::Spec && users > most {
                    let noun = if tpcc.warehouses == 1 { "warehouse" } else { "warehouses" };
                    let message =
                        format!("{users} users are more than the {most} terminals of {} {noun}", tpcc.warehouses);
                    let help = "the specification has ten for each: name more `warehouses`, or fewer users";
                    faults.add(Fault::warning(&waits.span, message).help(help));
                }
                return Some(());
            }
        };
        faults.add(Fault::error(&waits.span, message).help(help));
        None
    }

    /// As reports say it.
    pub(crate) fn in_words(&self) -> String {
        let warehouses = self.warehouses.as_written();
        let plural = if warehouses == "1" { "" } else { "s" };
        let waits = written_or(self.waits.as_ref(), "zero");
        let mut words = format!("TPC-C, {warehouses} warehouse{plural}, waits {waits}");
        if let Some(mix) = &self.mix {
            let weights: Vec<&str> = mix.iter().map(Templated::as_written).collect();
            words += &format!(", mix {}", weights.join(" : "));
        }
        match written_or(self.sorted_lines.as_ref(), "false") {
            "false" => {}
            "true" => words += ", lines of orders sorted",
            other => words += &format!(", lines of orders sorted: {other}"),
        }
        words
    }
}

/// The most that the times of the specification are multiplied by.
const LONGEST_WAITS: f64 = 100.0;

impl Scalar for Waits {
    const EXPECTED: &'static str = "\"spec\", \"zero\" or \"scaled N\" with a number above 0";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        if let Ok(waits) = keyword(level, &[("spec", Waits::Spec), ("zero", Waits::Zero)]) {
            return Ok(waits);
        }
        let factor = number_after("scaled", &level.to_string()).filter(|factor| *factor <= LONGEST_WAITS);
        factor.map(Waits::Scaled).ok_or_else(|| Problem::wrong::<Self>(level))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^(spec|zero|scaled [0-9.]+)$" })
    }
}
