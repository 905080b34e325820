//! Whether a machine is fit to measure on, as a function of what was found on it.

use crate::machine::{self, OTHERS};
use crate::progress::time;
use plimsoll_analysis::quantity::{grouped, percent, show};
use plimsoll_model::host::Host;
use plimsoll_model::measure::Unit;
use plimsoll_telemetry::{MachineState, UnknownLateness};
use std::time::Duration;

/// The first kernel that has `epoll_pwait2`.
const KERNEL: (u32, u32) = (5, 11);

/// As [`OTHERS`], for CPU that the hypervisor takes away.
const STEAL: [f64; 2] = [0.005, 0.05];

/// Lateness at the 99th percentile: above the first, short requests show it; above the second, trials
/// with open load are void by default.
const LATENESS: [Duration; 2] = [Duration::from_micros(500), Duration::from_millis(5)];

/// Share of memory that should be free for use.
const MEMORY: [f64; 2] = [0.25, 0.10];

/// Open files: below the first, load with many users is refused; below the second, nearly all is.
const OPEN_FILES: [u64; 2] = [4096, 256];

/// Files that Plimsoll itself has open beside connections.
const SPARE_FILES: u64 = 64;

/// Fewer ports than this are soon used up where each iteration connects anew.
const PORTS: u64 = 16_000;

/// Share of a minute in which tasks waited for a resource.
const PRESSURE: f64 = 0.10;

/// One check of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) grade: Grade,
    /// What was checked.
    pub(super) what: &'static str,
    /// What was found.
    pub(super) found: String,
    /// What to do about it; empty where nothing has to be done.
    pub(super) advice: String,
}

/// How well a machine does in a check, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grade {
    /// Nothing to do.
    Ok,
    /// Results will be noisier, or mean less.
    Caution,
    /// Measuring here is of no use, or will fail.
    Problem,
}

impl Grade {
    pub(super) fn name(self) -> &'static str {
        match self {
            Grade::Ok => "ok",
            Grade::Caution => "caution",
            Grade::Problem => "problem",
        }
    }

    /// Grades by two limits that `value` should stay below.
    fn below(value: f64, [caution, problem]: [f64; 2]) -> Grade {
        match value {
            value if value > problem => Grade::Problem,
            value if value > caution => Grade::Caution,
            _ => Grade::Ok,
        }
    }

    /// Grades by two limits that `value` should stay above.
    fn above(value: f64, limits: [f64; 2]) -> Grade {
        Grade::below(-value, limits.map(|limit| -limit))
    }
}

/// Every check, in the order in which they are shown.
pub(super) fn checks(host: &Host, state: &MachineState) -> Vec<Check> {
    let optional = [others(state), steal(state), memory(host, state), swap(state)];
    let waiting = [ports(state), huge_pages(state), pressure(state)];
    let mut checks = vec![processors(host, state), halves(state), frequency(host, state)];
    checks.extend(optional.into_iter().flatten());
    checks.extend([clock(host), kernel(host, state), lateness(state), files(state)]);
    checks.extend(waiting.into_iter().flatten());
    checks.push(virtualization(host));
    checks
}

fn check(what: &'static str, grade: Grade, found: impl Into<String>, advice: &str) -> Check {
    let advice = if grade == Grade::Ok { String::new() } else { advice.to_owned() };
    Check { grade, what, found: found.into(), advice }
}

fn processors(host: &Host, state: &MachineState) -> Check {
    let count = state.allowed.len();
    let limit = host.cpu_limit.filter(|cores| *cores < count as f64);
    let cores = limit.unwrap_or(count as f64);
    let of_all = if count < state.online { format!(" of {}", state.online) } else { String::new() };
    let mut found = format!("{count}{of_all} for Plimsoll");
    if let Some(cores) = limit {
        found += &format!(", limited to {} by a control group", show(cores, Unit::Cores));
    }
    let (grade, advice) = match limit {
        _ if cores < 2.0 => (
            Grade::Problem,
            "generator and system share one processor: what is measured is their competition. Use a machine, or a \
             limit, of two at least",
        ),
        Some(_) => (
            Grade::Caution,
            "a control group stops everything for the rest of each period once the limit is used up, which shows as \
             pauses: lift the limit, or bind to whole processors instead",
        ),
        None => (Grade::Ok, ""),
    };
    check("processors", grade, found, advice)
}

/// Whether `lower half` and `upper half`, which the documentation advises, lie on different cores.
fn halves(state: &MachineState) -> Check {
    let lower = &state.allowed[..state.allowed.len() / 2];
    let across: Vec<String> = state
        .siblings
        .iter()
        .filter(|[first, other]| lower.contains(first) != lower.contains(other))
        .map(|[first, other]| format!("{first}+{other}"))
        .collect();
    let (grade, found) = match (across.as_slice(), state.siblings.as_slice()) {
        ([], []) => (Grade::Ok, "each processor is a core of its own, or says so".to_owned()),
        ([], _) => (Grade::Ok, "two threads a core; the halves share none".to_owned()),
        (across, _) => (
            Grade::Caution,
            format!("the lower and the upper half are threads of the same cores: {}", across.join(", ")),
        ),
    };
    let advice = "give generator and system whole cores by number, as in `cpus = \"0,4\"`, or switch threads off: \
                  echo off > /sys/devices/system/cpu/smt/control";
    check("cores", grade, found, advice)
}

fn frequency(host: &Host, state: &MachineState) -> Check {
    let governors: Vec<&str> = state.governors.iter().map(String::as_str).collect();
    let steady = governors.iter().all(|governor| *governor == "performance");
    let mut found = if governors.is_empty() {
        "no governor to be seen".to_owned()
    } else {
        format!("governor {}", governors.join(" and "))
    };
    if let Some(turbo) = state.turbo {
        found += if turbo { ", turbo on" } else { ", turbo off" };
    }
    match (governors.is_empty(), steady, state.turbo) {
        (true, ..) if host.virtualization.is_some() => {
            check("frequency", Grade::Ok, found + "; the machine below decides", "")
        }
        (false, false, _) => check(
            "frequency",
            Grade::Caution,
            found,
            "processors slow down where load is light, so that light load looks slow: \
             cpupower frequency-set -g performance",
        ),
        (_, _, Some(true)) => check(
            "frequency",
            Grade::Caution,
            found,
            "the frequency follows temperature and the number of busy cores: switch turbo off for small differences \
             (echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > /sys/devices/system/cpu/cpufreq/boost)",
        ),
        _ => check("frequency", Grade::Ok, found, ""),
    }
}

fn others(state: &MachineState) -> Option<Check> {
    let others = state.others.as_ref()?;
    let share = others.cpu_cores / state.online.max(1) as f64;
    let busiest = machine::busiest(others);
    let busiest = if busiest.is_empty() { String::new() } else { format!(" ({busiest})") };
    let found = format!("{} of all processors now{busiest}", percent(share));
    Some(check(
        "load by others",
        Grade::below(share, OTHERS),
        found,
        "stop what else runs, or wait: it takes turns with what is measured",
    ))
}

fn steal(state: &MachineState) -> Option<Check> {
    let share = state.others.as_ref()?.steal_cores / state.online.max(1) as f64;
    Some(check(
        "steal",
        Grade::below(share, STEAL),
        format!("{} of the time taken away by the hypervisor", percent(share)),
        "other guests use the same processors: measure on a machine of your own, or one with reserved processors",
    ))
}

fn memory(host: &Host, state: &MachineState) -> Option<Check> {
    let available = state.memory_available?;
    let all = host.memory_limit.into_iter().chain(host.memory).min()?;
    let share = available as f64 / all as f64;
    let found = format!("{} of {} available", show(available as f64, Unit::Bytes), show(all as f64, Unit::Bytes));
    Some(check("memory", Grade::above(share, MEMORY), found, "free some: the page cache and the system need room"))
}

fn swap(state: &MachineState) -> Option<Check> {
    let used = state.swap_used?;
    let grade = if used > 0 { Grade::Caution } else { Grade::Ok };
    let found = if used > 0 { format!("{} in use", show(used as f64, Unit::Bytes)) } else { "not in use".to_owned() };
    Some(check("swap", grade, found, "what was swapped out comes back in the middle of a trial: swapoff -a"))
}

fn clock(host: &Host) -> Check {
    let Some(source) = &host.clock_source else {
        return check("clock", Grade::Caution, "its source is not to be seen", "reading it may be slow");
    };
    // These are read without a system call.
    let quick = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"].contains(&source.as_str());
    check(
        "clock",
        if quick { Grade::Ok } else { Grade::Caution },
        format!("read from {source}"),
        "each reading is a system call, several a request: see whether the kernel accepts another source \
         (/sys/devices/system/clocksource/clocksource0/available_clocksource)",
    )
}

fn kernel(host: &Host, state: &MachineState) -> Check {
    let name = host.kernel.clone().unwrap_or_else(|| "unknown".to_owned());
    let (major, minor) = KERNEL;
    let needs = format!("the generator needs epoll_pwait2: Linux {major}.{minor} or newer");
    if let Err(UnknownLateness::Refused(reason)) = &state.lateness {
        let advice = format!("{needs}, and a sandbox that lets it through");
        return check("kernel", Grade::Problem, format!("{name}; epoll_pwait2: {reason}"), &advice);
    }
    let old = host.kernel.as_deref().and_then(release).is_some_and(|version| version < KERNEL);
    check("kernel", if old { Grade::Problem } else { Grade::Ok }, name, &needs)
}

/// `Linux 6.1.0-13-amd64 x86_64` is (6, 1).
fn release(kernel: &str) -> Option<(u32, u32)> {
    let mut numbers = kernel.split(' ').nth(1)?.split(['.', '-', '+']).map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

fn lateness(state: &MachineState) -> Check {
    let what = "timer lateness";
    match &state.lateness {
        Err(_) => check(what, Grade::Problem, "could not be measured", "see the kernel"),
        Ok(lateness) => {
            let [median, p99, most] = [0.5, 0.99, 1.0].map(|share| lateness.quantile(share));
            let micros = |span: Duration| show(span.as_secs_f64(), Unit::Seconds);
            let found = format!(
                "median {}, p99 {}, most {} of {} wake-ups",
                micros(median),
                micros(p99),
                micros(most),
                grouped(lateness.count() as f64)
            );
            let limits = LATENESS.map(|limit| limit.as_secs_f64());
            check(
                what,
                Grade::below(p99.as_secs_f64(), limits),
                found,
                &format!(
                    "requests leave later than they should; at p99 above {} trials are void by default. Stop what else \
                     runs, keep processors from deep sleep (cpupower idle-set -D 10), or use a machine without a \
                     hypervisor",
                    time(LATENESS[1])
                ),
            )
        }
    }
}

fn files(state: &MachineState) -> Check {
    let what = "open files";
    let Some(limit) = state.open_files else { return check(what, Grade::Ok, "no limit", "") };
    let grade = Grade::above(limit as f64, OPEN_FILES.map(|limit| limit as f64 - 0.5));
    let users = grouped(limit.saturating_sub(SPARE_FILES) as f64);
    let found = format!("at most {}: room for {users} connections", grouped(limit as f64));
    check(
        what,
        grade,
        found,
        "raise the hard limit where more users are planned: ulimit -Hn, /etc/security/limits.conf",
    )
}

fn ports(state: &MachineState) -> Option<Check> {
    let (first, last) = state.ports?;
    let count = u64::from(last.saturating_sub(first)) + 1;
    let held = state.time_wait.unwrap_or(0);
    let mut found = format!("{} for outgoing connections", grouped(count as f64));
    if state.time_wait.is_some() {
        found += &format!(", {} connections closed and still held", grouped(held as f64));
    }
    let grade = if count < PORTS || held * 2 > count { Grade::Caution } else { Grade::Ok };
    Some(check(
        "ports",
        grade,
        found,
        "a closed connection holds its port to the same address for a minute, so `connect = \"every iteration\"` can \
         run out of them: wait a minute, widen net.ipv4.ip_local_port_range, or set net.ipv4.tcp_tw_reuse = 1",
    ))
}

fn huge_pages(state: &MachineState) -> Option<Check> {
    let setting = state.huge_pages.as_ref()?;
    let grade = if setting == "always" { Grade::Caution } else { Grade::Ok };
    Some(check(
        "huge pages",
        grade,
        format!("transparent ones: {setting}"),
        "the kernel merges pages in the middle of a trial, and memory comes in steps of 2 MB: \
         echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    ))
}

fn pressure(state: &MachineState) -> Option<Check> {
    if state.pressure.is_empty() {
        return None;
    }
    let shares: Vec<String> =
        state.pressure.iter().map(|(resource, share)| format!("{resource} {}", percent(*share))).collect();
    let high = state.pressure.values().any(|share| *share > PRESSURE);
    Some(check(
        "pressure",
        if high { Grade::Caution } else { Grade::Ok },
        format!("tasks waited in the last minute for {}", shares.join(", ")),
        "something runs, or ran a moment ago: wait until it is over",
    ))
}

fn virtualization(host: &Host) -> Check {
    match &host.virtualization {
        None => check("virtualization", Grade::Ok, "none to be seen", ""),
        Some(found) => check(
            "virtualization",
            Grade::Caution,
            found.clone(),
            "neighbours, and what the host does, do not show from inside: trust the noise floor (`doctor --aa`), and \
             compare only what ran in one study",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::host::{BusyProcess, OtherProcesses};
    use plimsoll_telemetry::WakeupLateness;

    const GB: u64 = 1_000_000_000;

    /// A machine that passes every check.
    fn good() -> (Host, MachineState) {
        let host = Host {
            processors: 8,
            memory: Some(16 * GB),
            kernel: Some("Linux 6.1.0-13-amd64 x86_64".to_owned()),
            clock_source: Some("tsc".to_owned()),
            ..Host::default()
        };
        let state = MachineState {
            others: Some(OtherProcesses { cpu_cores: 0.02, ..OtherProcesses::default() }),
            lateness: Ok(WakeupLateness::of(vec![Duration::from_micros(8); 100]).expect("wake-ups")),
            governors: ["performance".to_owned()].into(),
            turbo: Some(false),
            siblings: Vec::new(),
            allowed: (0..8).collect(),
            online: 8,
            memory_available: Some(12 * GB),
            swap_used: Some(0),
            open_files: Some(1_048_576),
            ports: Some((32768, 60999)),
            time_wait: Some(0),
            huge_pages: Some("madvise".to_owned()),
            pressure: [("cpu", 0.01)].into(),
        };
        (host, state)
    }

    fn grade(host: &Host, state: &MachineState, what: &str) -> Grade {
        let checks = checks(host, state);
        checks.iter().find(|check| check.what == what).expect(what).grade
    }

    #[test]
    fn a_good_machine_passes_every_check() {
        let (host, state) = good();
        for check in checks(&host, &state) {
            assert_eq!((check.grade, check.advice.as_str()), (Grade::Ok, ""), "{check:?}");
        }
    }

    #[test]
    fn each_fault_has_its_grade_and_says_what_to_do() {
        type Fault = fn(&mut Host, &mut MachineState);
        let table: [(&str, Grade, Fault); 24] = [
            ("processors", Grade::Problem, |_, state| state.allowed = vec![3]),
            ("processors", Grade::Problem, |host, _| host.cpu_limit = Some(1.5)),
            ("processors", Grade::Caution, |host, _| host.cpu_limit = Some(4.0)),
            ("processors", Grade::Ok, |host, _| host.cpu_limit = Some(8.0)),
            ("cores", Grade::Caution, |_, state| state.siblings = vec![[0, 4], [1, 5]]),
            ("cores", Grade::Ok, |_, state| state.siblings = vec![[0, 1], [2, 3], [4, 5], [6, 7]]),
            ("frequency", Grade::Caution, |_, state| state.governors = ["powersave".to_owned()].into()),
            ("frequency", Grade::Caution, |_, state| state.turbo = Some(true)),
            ("load by others", Grade::Caution, |_, state| others_use(state, 0.5, 0.0)),
            ("load by others", Grade::Problem, |_, state| others_use(state, 3.0, 0.0)),
            ("steal", Grade::Caution, |_, state| others_use(state, 0.0, 0.1)),
            ("steal", Grade::Problem, |_, state| others_use(state, 0.0, 0.8)),
            ("memory", Grade::Caution, |_, state| state.memory_available = Some(3 * GB)),
            ("memory", Grade::Problem, |_, state| state.memory_available = Some(GB)),
            ("swap", Grade::Caution, |_, state| state.swap_used = Some(1)),
            ("clock", Grade::Caution, |host, _| host.clock_source = Some("hpet".to_owned())),
            ("kernel", Grade::Problem, |host, _| host.kernel = Some("Linux 5.4.0-1 x86_64".to_owned())),
            ("kernel", Grade::Problem, |_, state| state.lateness = Err(UnknownLateness::Refused("denied".to_owned()))),
            ("open files", Grade::Caution, |_, state| state.open_files = Some(1024)),
            ("open files", Grade::Problem, |_, state| state.open_files = Some(128)),
            ("ports", Grade::Caution, |_, state| state.time_wait = Some(20_000)),
            ("huge pages", Grade::Caution, |_, state| state.huge_pages = Some("always".to_owned())),
            ("pressure", Grade::Caution, |_, state| state.pressure = [("io", 0.3)].into()),
            ("virtualization", Grade::Caution, |host, _| host.virtualization = Some("virtual machine".to_owned())),
        ];
        for (what, expected, fault) in table {
            let (mut host, mut state) = good();
            fault(&mut host, &mut state);
            assert_eq!(grade(&host, &state, what), expected, "{what}: {state:?}");
            let checks = checks(&host, &state);
            assert!(checks.iter().all(|check| check.advice.is_empty() == (check.grade == Grade::Ok)), "{checks:?}");
        }
    }

    fn others_use(state: &mut MachineState, cpu_cores: f64, steal_cores: f64) {
        let busiest = vec![BusyProcess { pid: 7, name: "cargo".to_owned(), cores: cpu_cores }];
        state.others = Some(OtherProcesses { cpu_cores, steal_cores, busiest, processors: 8 });
    }

    #[test]
    fn late_wake_ups_are_graded_by_their_99th_percentile() {
        for (micros, expected) in [(100, Grade::Ok), (800, Grade::Caution), (9000, Grade::Problem)] {
            let (host, mut state) = good();
            state.lateness = Ok(WakeupLateness::of(vec![Duration::from_micros(micros); 10]).expect("wake-ups"));
            assert_eq!(grade(&host, &state, "timer lateness"), expected, "{micros} µs");
        }
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let state = MachineState {
            others: None,
            governors: [].into(),
            turbo: None,
            memory_available: None,
            swap_used: None,
            ports: None,
            huge_pages: None,
            pressure: [].into(),
            ..good().1
        };
        let checks = checks(&Host { processors: 8, ..Host::default() }, &state);
        assert!(checks.iter().all(|check| check.grade != Grade::Problem), "{checks:?}");
        assert!(!checks.iter().any(|check| ["swap", "memory", "ports", "pressure"].contains(&check.what)));
    }

    #[test]
    fn kernels_are_told_by_their_release() {
        for (kernel, expected) in [
            ("Linux 5.11.0 x86_64", Some((5, 11))),
            ("Linux 6.18.44-fc x86_64", Some((6, 18))),
            ("Linux 5.10-rc1 x86_64", Some((5, 10))),
            ("unknown", None),
        ] {
            assert_eq!(release(kernel), expected, "{kernel}");
        }
    }
}
