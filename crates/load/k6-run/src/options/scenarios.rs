//! The option `scenarios`.

use super::OptionFault;
use super::table::{Field, Table};
use crate::scenario::{Executor, GRACEFUL_STOP, MAX_DURATION, Reserve, Scenario, Stage};
use plimsoll_model::suggestion::did_you_mean;
use serde_json::{Value, json};
use std::time::Duration;

const EXECUTORS: &str = "`shared-iterations`, `per-vu-iterations`, `constant-vus`, `ramping-vus`, \
                         `constant-arrival-rate`, `ramping-arrival-rate`";

impl Field for Vec<Scenario> {
    fn read(value: &Value, at: &str, faults: &mut Vec<OptionFault>) -> Result<Vec<Scenario>, String> {
        let fields = value.as_object().ok_or("an object of scenarios")?;
        let mut scenarios = Vec::new();
        for (name, value) in fields {
            let at = format!("{at}.{name}");
            match value {
                Value::Object(fields) => {
                    scenarios.extend(scenario(name, &mut Table::new(fields, format!("{at}."), faults)));
                }
                _ => faults.push(OptionFault { option: at, what: "expected an object with `executor`".to_owned() }),
            }
        }
        Ok(scenarios)
    }

    fn written(&self) -> Value {
        self.iter().map(|scenario| (scenario.name.clone(), scenario_written(scenario))).collect()
    }
}

fn scenario_written(scenario: &Scenario) -> Value {
    let mut written = json!({
        "executor": scenario.executor.name(),
        "startTime": scenario.start_time.written(),
        "gracefulStop": scenario.graceful_stop.written(),
        "exec": scenario.exec,
        "env": scenario.env.written(),
        "tags": scenario.tags.written(),
    });
    let Value::Object(own) = executor_written(&scenario.executor) else { return written };
    written.as_object_mut().into_iter().for_each(|written| written.extend(own.clone()));
    written
}

fn executor_written(executor: &Executor) -> Value {
    match executor {
        Executor::SharedIterations { vus, iterations, max_duration }
        | Executor::PerVuIterations { vus, iterations, max_duration } => {
            json!({ "vus": vus, "iterations": iterations, "maxDuration": max_duration.written() })
        }
        Executor::ConstantVus { vus, duration } => json!({ "vus": vus, "duration": duration.written() }),
        Executor::RampingVus { start_vus, stages, graceful_ramp_down } => json!({
            "startVUs": start_vus,
            "stages": stages.written(),
            "gracefulRampDown": graceful_ramp_down.written(),
        }),
        Executor::ConstantArrivalRate { rate, time_unit, duration, users } => json!({
            "rate": rate,
            "timeUnit": time_unit.written(),
            "duration": duration.written(),
            "preAllocatedVUs": users.pre_allocated,
            "maxVUs": users.most,
        }),
        Executor::RampingArrivalRate { start_rate, time_unit, stages, users } => json!({
            "startRate": start_rate,
            "timeUnit": time_unit.written(),
            "stages": stages.written(),
            "preAllocatedVUs": users.pre_allocated,
            "maxVUs": users.most,
        }),
    }
}

fn scenario(name: &str, table: &mut Table<'_>) -> Option<Scenario> {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) {
        table.fault_here("expected letters, digits, `_` and `-` in the name of a scenario");
    }
    let kind: Option<String> = table.take("executor");
    let Some(kind) = kind else {
        table.fault("executor", &format!("expected one of {EXECUTORS}, found none"));
        return None;
    };
    let executor = executor(&kind, table);
    let start_time = table.take("startTime").unwrap_or_default();
    let graceful_stop = table.take("gracefulStop").unwrap_or(GRACEFUL_STOP);
    let exec = table.take("exec").unwrap_or_else(|| "default".to_owned());
    let (env, tags) = (table.take("env").unwrap_or_default(), table.take("tags").unwrap_or_default());
    // Options of single scenarios are k6's for its browser.
    let _: Option<Anything> = table.take("options");
    if EXECUTORS.contains(&format!("`{kind}`")) {
        for (name, hint) in table.unread() {
            table.fault(&name, &format!("`{kind}` has no such option{hint}"));
        }
    }
    Some(Scenario { name: name.to_owned(), executor: executor?, start_time, graceful_stop, exec, env, tags })
}

/// An option that is accepted and does nothing.
struct Anything;

impl Field for Anything {
    fn read(_: &Value, _: &str, _: &mut Vec<OptionFault>) -> Result<Anything, String> {
        Ok(Anything)
    }

    fn written(&self) -> Value {
        Value::Null
    }
}

/// The executor of a kind. All its options are read, whatever is wrong with one of them.
fn executor(kind: &str, table: &mut Table<'_>) -> Option<Executor> {
    match kind {
        "shared-iterations" => {
            let (vus, iterations, max_duration) = fixed(table);
            if iterations < vus {
                table.fault("iterations", &format!("expected at least one for each of {vus} VUs, found {iterations}"));
            }
            Some(Executor::SharedIterations { vus, iterations, max_duration })
        }
        "per-vu-iterations" => {
            let (vus, iterations, max_duration) = fixed(table);
            Some(Executor::PerVuIterations { vus, iterations, max_duration })
        }
        "constant-vus" => {
            Some(Executor::ConstantVus { vus: at_least_one(table, "vus"), duration: needed(table, "duration")? })
        }
        "ramping-vus" => {
            let start_vus = table.take("startVUs").unwrap_or(1);
            let graceful_ramp_down = table.take("gracefulRampDown").unwrap_or(GRACEFUL_STOP);
            Some(Executor::RampingVus { start_vus, stages: stages(table)?, graceful_ramp_down })
        }
        "constant-arrival-rate" => {
            let (rate, time_unit) = (needed_rate(table), time_unit(table));
            let (duration, users) = (needed(table, "duration"), reserve(table));
            Some(Executor::ConstantArrivalRate { rate, time_unit, duration: duration?, users: users? })
        }
        "ramping-arrival-rate" => {
            let (start_rate, time_unit) = (table.take("startRate").unwrap_or(0), time_unit(table));
            let (stages, users) = (stages(table), reserve(table));
            Some(Executor::RampingArrivalRate { start_rate, time_unit, stages: stages?, users: users? })
        }
        "externally-controlled" => {
            table.fault("executor", &format!("`{kind}` is not supported here: take one of {EXECUTORS}"));
            None
        }
        other => {
            let hint = did_you_mean(other, EXECUTORS.split('`')).map(|hint| format!("; {hint}")).unwrap_or_default();
            table.fault("executor", &format!("expected one of {EXECUTORS}, found `{other}`{hint}"));
            None
        }
    }
}

/// Users, iterations and how long they may take.
fn fixed(table: &mut Table<'_>) -> (u64, u64, Duration) {
    let max_duration = table.take("maxDuration").unwrap_or(MAX_DURATION);
    (at_least_one(table, "vus"), at_least_one(table, "iterations"), max_duration)
}

/// One without this option.
fn at_least_one(table: &mut Table<'_>, name: &'static str) -> u64 {
    let number = table.take(name).unwrap_or(1);
    if number == 0 {
        table.fault(name, "expected at least 1, found 0");
    }
    number
}

/// The iterations in each `timeUnit`, which must be named.
fn needed_rate(table: &mut Table<'_>) -> u64 {
    let rate: Option<u64> = table.take("rate");
    match rate {
        None => table.fault("rate", "expected the iterations in each `timeUnit`, at least 1, found none"),
        Some(0) => table.fault("rate", "expected at least 1, found 0"),
        Some(_) => {}
    }
    rate.unwrap_or(1)
}

fn needed(table: &mut Table<'_>, name: &'static str) -> Option<Duration> {
    let read: Option<Duration> = table.take(name);
    match read {
        None => table.fault(name, "expected a duration such as `10s`, found none"),
        Some(short) if short < Duration::from_secs(1) => {
            table.fault(name, &format!("expected at least `1s`, found `{}`", crate::duration::format(short)));
        }
        Some(_) => {}
    }
    read
}

fn stages(table: &mut Table<'_>) -> Option<Vec<Stage>> {
    let stages: Option<Vec<Stage>> = table.take("stages");
    if stages.as_ref().is_none_or(Vec::is_empty) {
        table.fault("stages", "expected at least one stage with `duration` and `target`, found none");
        return None;
    }
    stages
}

fn time_unit(table: &mut Table<'_>) -> Duration {
    let unit = table.take("timeUnit").unwrap_or(Duration::from_secs(1));
    if unit.is_zero() {
        table.fault("timeUnit", "expected more than 0");
    }
    unit
}

fn reserve(table: &mut Table<'_>) -> Option<Reserve> {
    let pre_allocated: Option<u64> = table.take("preAllocatedVUs");
    let most = table.take("maxVUs");
    let Some(pre_allocated) = pre_allocated else {
        table.fault("preAllocatedVUs", "expected how many VUs wait for iterations, found none");
        return None;
    };
    let most = most.unwrap_or(pre_allocated);
    if most < pre_allocated {
        table.fault("maxVUs", &format!("expected at least preAllocatedVUs ({pre_allocated}), found {most}"));
    }
    Some(Reserve { pre_allocated, most })
}
