//! Findings about the machine: other load on it, changes during the run, and how close the
//! generator came to its limits.

use super::{Context, Finding, Severity};
use crate::input::Input;
use crate::measure::TrialReader;
use crate::quantity::{change, percent, show};
use crate::samples;
use plimsoll_model::host::CROWDED;
use plimsoll_model::measure::Unit;
use plimsoll_model::sample::HostSample;
use plimsoll_model::words::and_list;
use plimsoll_statistics::{mean, median};
use std::collections::BTreeMap;

/// Cores, as a share of all, by which a trial must exceed comparable trials to be reported.
const OUTLYING_CORES: f64 = 0.1;

/// The start of the line that says how much other programs used in most trials.
pub(crate) const OTHERS_RAN: &str = "other programs used";

/// Cores, as a share of all, that the hypervisor may take before it is reported.
const STOLEN_CORES: f64 = 0.02;

/// Available memory, as a share of all, below which the kernel has to reclaim memory.
const MEMORY_SHORTAGE: f64 = 0.05;

/// Change of the clock frequency from which on it is reported.
const FREQUENCY_CHANGE: f64 = 0.05;

/// Fewest trials for a test of the clock frequency over the run.
const MIN_TRIALS: usize = 6;

/// Shares of the generator's limits from which on they are reported, and are a caution.
const HALF_OF_LIMIT: f64 = 0.5;
const NEAR_LIMIT: f64 = 0.8;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let trials: Vec<HostUse<'_>> = context.counted().map(|reader| HostUse::new(context.input, reader)).collect();
    [host(context, &trials), frequency(context, &trials), generator(context)].into_iter().flatten().collect()
}

/// Means over the counted part of a trial of the machine's use; none where nothing was sampled.
struct HostUse<'a> {
    reader: &'a TrialReader<'a>,
    /// Cores in use by everything but systems and generator; none where those of the generator are
    /// unknown.
    others: Option<f64>,
    steal: Option<f64>,
    iowait: Option<f64>,
    /// The least memory that was available, in bytes.
    available: Option<f64>,
    /// In megahertz.
    frequency: Option<f64>,
}

impl<'a> HostUse<'a> {
    fn new(input: &Input, reader: &'a TrialReader<'a>) -> HostUse<'a> {
        let load = reader.load();
        // A sample covers the second that ends with it.
        let in_window = |at: f64| load.counts_second((at - 0.5).floor() as i64);
        let samples: Vec<&HostSample> =
            samples::host(reader.trial()).filter(|(at, _)| in_window(*at)).map(|(_, sample)| sample).collect();
        let average = |of: fn(&HostSample) -> f64| mean(&samples.iter().map(|sample| of(sample)).collect::<Vec<_>>());
        let systems = samples::of_all_systems(reader.trial(), |sample| sample.cpu_cores);
        let counted = systems.iter().filter(|(second, _)| load.counts_second(**second));
        let systems = mean(&counted.map(|(_, cores)| *cores).collect::<Vec<_>>()).unwrap_or(0.0);
        let rows = load.generator.iter().filter(|row| load.counts_second(row.second));
        let generator = mean(&rows.map(|row| row.cpu_cores).collect::<Vec<_>>()).unwrap_or(0.0);
        let all = average(|sample| sample.cpu_cores);
        let frequencies: Vec<f64> = samples.iter().filter_map(|sample| sample.frequency_mhz).collect();
        let steal = average(|sample| sample.steal_cores);
        let left = all.filter(|_| input.is_measured()).map(|all| (all - systems - generator).max(0.0));
        // Old bundles do not tell what others used, and leave only what the whole seconds of the load show.
        let sampled = load.summary.others.map(|others| (others - steal.unwrap_or(0.0)).max(0.0));
        HostUse {
            reader,
            others: sampled.or(left),
            steal,
            iowait: average(|sample| sample.iowait_cores),
            available: samples.iter().map(|sample| sample.memory_available as f64).reduce(f64::min),
            frequency: mean(&frequencies),
        }
    }

    /// The variant and the condition. Trials of one cell should look alike. Between variants the
    /// kernel's work for a system may differ, and no program is charged with that work.
    fn cell(&self) -> (usize, usize) {
        (self.reader.trial().condition(), self.reader.trial().variant())
    }
}

/// Other load on the machine: programs, a hypervisor, storage, memory.
fn host(context: &Context<'_>, trials: &[HostUse<'_>]) -> Option<Finding> {
    let processors = context.input.host.processors.max(1) as f64;
    let cores = |cores: f64| show(cores, Unit::Cores);
    let unit = context.load_unit();
    let mut evidence = Vec::new();
    let mut what = Vec::new();
    let mut tell = |kind: &'static str, lines: Vec<String>| {
        if !lines.is_empty() {
            what.push(kind);
            evidence.extend(lines);
        }
    };
    let usual = median(&trials.iter().filter_map(|seen| seen.others).collect::<Vec<_>>()).unwrap_or(0.0);
    let crowded = (usual > CROWDED * processors).then(|| {
        format!("{OTHERS_RAN} {} of {processors:.0} in half of the {}s, or more", cores(usual), context.load_unit())
    });
    let busy = outliers(trials, OUTLYING_CORES * processors, |seen| seen.others).map(|(seen, value, usual)| {
        let trial = context.trial(seen.reader);
        format!("{trial}: other programs used {}; half of the {unit}s alike had {} or less", cores(value), cores(usual))
    });
    tell("other programs ran", crowded.into_iter().chain(busy).chain(elsewhere(context)).collect());
    let stolen =
        trials.iter().filter_map(|seen| Some((seen, seen.steal.filter(|steal| *steal > STOLEN_CORES * processors)?)));
    let stolen = stolen
        .map(|(seen, value)| format!("{}: the hypervisor took {} away", context.trial(seen.reader), cores(value)));
    tell("the hypervisor took processors away", stolen.collect());
    let waiting = outliers(trials, OUTLYING_CORES * processors, |seen| seen.iowait).map(|(seen, value, usual)| {
        let trial = context.trial(seen.reader);
        format!(
            "{trial}: processors waited for storage for {}; half of the {unit}s alike had {} or less",
            cores(value),
            cores(usual)
        )
    });
    tell("storage was slower", waiting.collect());
    let memory = context.input.host.memory_limit.or(context.input.host.memory).unwrap_or(0) as f64;
    let short =
        trials.iter().filter_map(|seen| Some((seen, seen.available.filter(|left| *left < MEMORY_SHORTAGE * memory)?)));
    let short = short.map(|(seen, left)| {
        let (left, memory) = (show(left, Unit::Bytes), show(memory, Unit::Bytes));
        format!("{}: only {left} of {memory} memory were free for use", context.trial(seen.reader))
    });
    tell("memory ran short", short.collect());
    (!what.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "the host",
        sentence: format!(
            "In some {unit}s {}: the machine was not the same for all, or not the study's alone. Differences between \
             {unit}s may come of that.",
            and_list(&what)
        ),
        evidence,
    })
}

/// Other programs on other hosts on which systems ran.
fn elsewhere(context: &Context<'_>) -> Vec<String> {
    let hosts = context.input.starts.iter().flat_map(|start| &start.summary.hosts);
    let processors: BTreeMap<&str, f64> = hosts.map(|host| (&*host.machine, host.processors.max(1) as f64)).collect();
    let of_host = |(host, processors): (&str, f64)| {
        let on_host =
            |reader: &&TrialReader<'_>| reader.trial().start.summary.hosts.iter().any(|one| one.machine == host);
        let loads = || context.counted().filter(on_host);
        let known: Vec<f64> =
            loads().filter_map(|reader| reader.load().summary.others_elsewhere.get(host)).copied().collect();
        let usual = median(&known)?;
        // Of loads of a moment it is not known.
        let is_of_half = 2 * known.len() >= loads().count();
        (is_of_half && usual > CROWDED * processors).then(|| {
            let (used, unit) = (show(usual, Unit::Cores), context.load_unit());
            format!("{OTHERS_RAN} {used} of {processors:.0} on the host {host} in half of the {unit}s, or more")
        })
    };
    processors.into_iter().filter_map(of_host).collect()
}

/// The trials whose value exceeds the usual value of their variant and condition by more than `by`,
/// with the value and the usual value.
fn outliers<'a>(
    trials: &'a [HostUse<'a>],
    by: f64,
    value: impl Fn(&HostUse<'_>) -> Option<f64>,
) -> impl Iterator<Item = (&'a HostUse<'a>, f64, f64)> {
    trials.iter().filter_map(move |seen| {
        let alike = trials.iter().filter(|other| other.cell() == seen.cell());
        let usual = median(&alike.filter_map(&value).collect::<Vec<_>>())?;
        let value = value(seen)?;
        (value > usual + by).then_some((seen, value, usual))
    })
}

/// A clock frequency that is lower for one variant than for another, or that falls over the run.
fn frequency(context: &Context<'_>, trials: &[HostUse<'_>]) -> Option<Finding> {
    let evidence: Vec<String> = over_the_run(trials).into_iter().chain(between_variants(context, trials)).collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "clock frequency",
        sentence: format!(
            "The processors did not run at one clock frequency: it changed by more than {}, and what takes CPU changes with \
             it. A fixed frequency, and cooling, help.",
            percent(FREQUENCY_CHANGE)
        ),
        evidence,
    })
}

fn over_the_run(trials: &[HostUse<'_>]) -> Option<String> {
    let mut seen: Vec<(i64, f64)> = trials
        .iter()
        .filter_map(|seen| Some((seen.reader.trial().start.summary.timing.started_unix_ms, seen.frequency?)))
        .collect();
    if seen.len() < MIN_TRIALS {
        return None;
    }
    seen.sort_by_key(|(started, _)| *started);
    let frequencies: Vec<f64> = seen.into_iter().map(|(_, frequency)| frequency).collect();
    let third = frequencies.len() / 3;
    let (first, last) = (mean(&frequencies[..third])?, mean(&frequencies[frequencies.len() - third..])?);
    ((last / first - 1.0).abs() > FREQUENCY_CHANGE).then(|| {
        format!("{first:.0} MHz in the first third of the trials, {last:.0} MHz in the last ({})", change(last / first))
    })
}

fn between_variants(context: &Context<'_>, trials: &[HostUse<'_>]) -> Vec<String> {
    let plan = &context.input.plan;
    let at = |condition: usize, variant: usize| {
        let of_cell = trials.iter().filter(|seen| seen.reader.is_of(condition, variant));
        mean(&of_cell.filter_map(|seen| seen.frequency).collect::<Vec<_>>())
    };
    let mut lines = Vec::new();
    for condition in 0..plan.conditions.len() {
        let Some(baseline) = at(condition, 0) else { continue };
        for variant in 1..plan.variants.len() {
            let Some(found) = at(condition, variant) else { continue };
            if (found / baseline - 1.0).abs() > FREQUENCY_CHANGE {
                lines.push(format!(
                    "{}: {baseline:.0} MHz for {}, {found:.0} MHz for {} ({})",
                    context.condition(condition),
                    context.variant(0),
                    context.variant(variant),
                    change(found / baseline)
                ));
            }
        }
    }
    lines
}

/// The trial in which the generator came closest to each of its limits.
fn generator(context: &Context<'_>) -> Option<Finding> {
    if !context.input.is_measured() {
        return None;
    }
    let limits = &context.input.facts.generator;
    let max_lateness = limits.max_lateness.as_secs_f64();
    let mut evidence = Vec::new();
    let mut nearest: f64 = 0.0;
    let mut tell = |limit: f64, of: &dyn Fn(&TrialReader<'_>) -> f64, words: &dyn Fn(f64) -> String| {
        let all: Vec<(f64, u32)> =
            context.counted().map(|reader| (of(reader) / limit, reader.trial().number())).collect();
        let over: Vec<u32> = all.iter().filter(|(share, _)| *share > HALF_OF_LIMIT).map(|(_, trial)| *trial).collect();
        let worst = context.counted().max_by(|one, other| of(one).total_cmp(&of(other)));
        if let (false, Some(worst)) = (over.is_empty(), worst) {
            nearest = nearest.max(of(worst) / limit);
            let text = words(of(worst));
            evidence.push(format!(
                "{}: {text}; more than half of the limit in {}",
                context.trial(worst),
                context.list_of_trials(&over)
            ));
        }
    };
    tell(limits.max_cpu, &|reader| reader.load().summary.headroom.busiest, &|busiest| {
        format!("its busiest thread used {} of a processor, of {} at most", percent(busiest), percent(limits.max_cpu))
    });
    tell(max_lateness, &|reader| reader.load().summary.headroom.lateness.seconds(), &|late| {
        let (late, limit) = (show(late, Unit::Seconds), show(max_lateness, Unit::Seconds));
        format!(
            "the latest 1 % of the work that was due (in short loads, the latest ten) started more than {late} late, of {limit} \
             at most"
        )
    });
    (!evidence.is_empty()).then(|| Finding {
        severity: if nearest > NEAR_LIMIT { Severity::Caution } else { Severity::Note },
        topic: "generator headroom",
        sentence: format!(
            "The generator came to {} of the limit above which it would void a {}: its own share in what was measured is \
             not far from mattering.",
            percent(nearest),
            context.load_unit()
        ),
        evidence,
    })
}

#[cfg(test)]
mod tests {
    use crate::finding::Finding;
    use crate::testing::{input, start};
    use crate::{Input, analyse};
    use plimsoll_model::host::Host;
    use plimsoll_model::result::{GeneratorRow, Headroom, StartResult};
    use plimsoll_model::sample::{HostSample, ProcessSample};
    use plimsoll_model::study::Origin;
    use plimsoll_model::units::Nanos;

    fn finding(input: &Input, topic: &str) -> Option<Finding> {
        analyse(input).findings.into_iter().find(|finding| finding.topic == topic)
    }

    /// Six trials on four processors with 8 GB; `change` makes the samples of a number.
    fn on_a_host(change: impl Fn(u32, &mut HostSample)) -> Input {
        let mut input = input(3, |number| {
            let mut result: StartResult = start(1.0 + f64::from(number % 3) / 100.0);
            for at in [1.0, 2.0] {
                let usual = HostSample {
                    at,
                    cpu_cores: 1.6,
                    steal_cores: 0.01,
                    iowait_cores: 0.05,
                    memory_available: 6_000_000_000,
                    frequency_mhz: Some(3000.0),
                    ..HostSample::default()
                };
                let system = "web".to_owned();
                result.processes.push(ProcessSample { at, system, cpu_cores: 1.0, ..ProcessSample::default() });
                let second = at as i64 - 1;
                result.loads[0].generator.push(GeneratorRow { second, cpu_cores: 0.5, ..GeneratorRow::default() });
                result.host.push(usual);
                change(number, result.host.last_mut().expect("a sample"));
            }
            result
        });
        input.host.processors = 4;
        input.host.memory = Some(8_000_000_000);
        input
    }

    #[test]
    fn a_quiet_machine_is_not_spoken_of() {
        let input = on_a_host(|_, _| {});
        for topic in ["the host", "clock frequency", "generator headroom"] {
            assert_eq!(finding(&input, topic), None);
        }
    }

    #[test]
    fn other_programs_on_the_host_of_a_system_are_told_with_its_name() {
        let with = |used: f64| {
            let mut input = on_a_host(|_, _| {});
            for start in &mut input.starts {
                start.summary.hosts = vec![Host { machine: "east".to_owned(), processors: 8, ..Host::default() }];
                start.loads[0].summary.others_elsewhere = [("east".to_owned(), used)].into();
            }
            finding(&input, "the host")
        };
        assert_eq!(with(0.1), None);
        let told = with(6.0).expect("a finding");
        assert!(told.sentence.starts_with("In some trials other programs ran"), "{}", told.sentence);
        let line = "other programs used 6.00 cores of 8 on the host east in half of the trials, or more";
        assert_eq!(told.evidence, [line]);

        let host = |name: &str| Host { machine: name.to_owned(), processors: 8, ..Host::default() };
        let mut input = on_a_host(|_, _| {});
        for (start, name) in input.starts.iter_mut().zip(["east", "west"].into_iter().cycle()) {
            start.summary.hosts = vec![host(name)];
        }
        input.starts[0].loads[0].summary.others_elsewhere = [("east".to_owned(), 6.0)].into();
        assert_eq!(finding(&input, "the host"), None, "one of many loads says nothing of half of them");
        for start in input.starts.iter_mut().step_by(2) {
            start.loads[0].summary.others_elsewhere = [("east".to_owned(), 6.0)].into();
        }
        assert_eq!(finding(&input, "the host").map(|told| told.evidence), Some(vec![line.to_owned()]));
    }

    #[test]
    fn whatever_else_went_on_is_told_with_its_trial() {
        type Change = fn(&mut HostSample);
        let cases: [(Change, &str, &str); 4] = [
            (
                |sample| sample.cpu_cores = 2.6,
                "other programs ran",
                "other programs used 1.10 cores; half of the trials alike had 0.10 cores or less",
            ),
            (|sample| sample.steal_cores = 0.3, "the hypervisor took processors away", "took 0.30 cores away"),
            (
                |sample| sample.iowait_cores = 1.0,
                "storage was slower",
                "for 1.00 cores; half of the trials alike had 0.050 cores or less",
            ),
            (|sample| sample.memory_available = 200_000_000, "memory ran short", "only 200 MB of 8.00 GB"),
        ];
        for (change, kind, line) in cases {
            let input = on_a_host(|number, sample| {
                if number == 4 {
                    change(sample);
                }
            });
            let finding = finding(&input, "the host").expect(kind);
            assert!(finding.sentence.contains(kind), "{finding:?}");
            assert!(finding.evidence.len() == 1 && finding.evidence[0].contains(line), "{finding:?}");
            assert!(finding.evidence[0].starts_with("trial 4 (new, all trials)"), "{finding:?}");
        }
    }

    #[test]
    fn load_by_others_in_all_trials_is_told_once() {
        let input = on_a_host(|_, sample| sample.cpu_cores = 3.5);
        let finding = finding(&input, "the host").expect("a finding");
        assert_eq!(finding.evidence, ["other programs used 2.00 cores of 4 in half of the trials, or more"]);
    }

    #[test]
    fn what_happened_before_the_cut_is_not_spoken_of() {
        let mut input = on_a_host(|number, sample| {
            if number == 4 && sample.at < 1.5 {
                sample.cpu_cores = 4.0;
            }
        });
        assert!(finding(&input, "the host").is_some());
        input.starts.iter_mut().for_each(|result| result.loads[0].cut = 1);
        assert_eq!(finding(&input, "the host"), None);
    }

    #[test]
    fn a_clock_that_differs_between_variants_or_slows_down_is_found() {
        let slower = on_a_host(|number, sample| {
            if number % 2 == 0 {
                sample.frequency_mhz = Some(2700.0);
            }
        });
        let found = finding(&slower, "clock frequency").expect("a finding");
        assert_eq!(found.evidence, ["all trials: 3000 MHz for old, 2700 MHz for new (−10.0 %)"]);
        let hotter = on_a_host(|number, sample| sample.frequency_mhz = Some(3000.0 - 100.0 * f64::from(number)));
        let found = finding(&hotter, "clock frequency").expect("a finding");
        assert_eq!(found.evidence, ["2850 MHz in the first third of the trials, 2450 MHz in the last (−14.0 %)"]);
        let unknown = on_a_host(|_, sample| sample.frequency_mhz = None);
        assert_eq!(finding(&unknown, "clock frequency"), None);
    }

    #[test]
    fn nothing_is_said_of_a_generator_that_was_not_measured() {
        let mut input = on_a_host(|_, sample| sample.cpu_cores = 3.5);
        for load in input.starts.iter_mut().flat_map(|start| &mut start.loads) {
            load.summary.headroom = Headroom { busiest: 0.89, lateness: Nanos(9_900_000) };
        }
        for topic in ["generator headroom", "the host"] {
            assert!(finding(&input, topic).is_some(), "{topic}");
        }
        input.origin = Origin::Imported { tool: "k6".to_owned(), version: None };
        for topic in ["generator headroom", "the host"] {
            assert_eq!(finding(&input, topic), None);
        }
    }

    #[test]
    fn a_generator_near_its_limits_is_told_with_its_worst_trial() {
        // The limits are 90 % of a processor and 10 ms.
        let mut input = on_a_host(|_, _| {});
        input.starts[2].loads[0].summary.headroom = Headroom { busiest: 0.6, lateness: Nanos(1_000_000) };
        let found = finding(&input, "generator headroom").expect("a finding");
        assert_eq!(found.severity, crate::finding::Severity::Note);
        assert_eq!(
            found.evidence,
            [
                "trial 3 (old, all trials): its busiest thread used 60 % of a processor, of 90 % at most; more than half of \
              the limit in trial 3"
            ]
        );
        input.starts[4].loads[0].summary.headroom = Headroom { busiest: 0.5, lateness: Nanos(9_000_000) };
        let found = finding(&input, "generator headroom").expect("a finding");
        assert_eq!(found.severity, crate::finding::Severity::Caution);
        assert_eq!(found.evidence.len(), 2);
        assert!(found.evidence[1].starts_with("trial 5 (old, all trials): the latest 1 % of the work that was due"));
    }
}
