//! Findings about a search for the capacity: whether its loads were long enough, whether systems recovered from those that were
//! too much, and whether a longer one confirmed it.

mod recovery;

use super::{Context, Finding, Severity};
use crate::measure::TrialReader;
use crate::once::REQUEST;
use crate::quantity::grouped;
use crate::search;
use crate::words::{self, counted};
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::objective::Limit;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::start::RungPart;
use plimsoll_statistics::capacity::{CONTRADICTION, MISSES, values_to_weigh};
use std::collections::BTreeMap;

/// From this share of void loads on they are told, where no search ended by them.
const MANY_VOID: f64 = 0.1;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let all = [
        void_loads(context),
        recovery::finding(context),
        not_confirmed(context),
        short_loads(context),
        contradicting_loads(context),
        failed_requests(context),
    ];
    all.into_iter().flatten().collect()
}

/// Loads of searches were void.
fn void_loads(context: &Context<'_>) -> Option<Finding> {
    let mut evidence = Vec::new();
    let (mut void, mut all, mut stopped) = (0, 0, 0);
    for reader in context.readers.iter().filter(|reader| context.input.plan.searches() && reader.counts()) {
        let load = reader.load();
        let judged = load.rungs.iter().map(|one| &one.summary.validity).filter(|validity| validity.is_void());
        let reasons: Vec<&String> = judged.filter_map(|validity| validity.reasons().first()).collect();
        (void, all) = (void + reasons.len(), all + load.rungs.len());
        let stopped_here = search::stopped_by(load).is_some();
        stopped += usize::from(stopped_here);
        if let Some(reason) = reasons.last() {
            let ended = if stopped_here { ", at which the search ended" } else { "" };
            let counts = format!("{} of {}{ended}", reasons.len(), counted(load.rungs.len(), "load"));
            evidence.push(format!("{}: {counts}; the last one: {reason}", context.trial(reader)));
        }
    }
    if void == 0 || (stopped == 0 && (void as f64) < MANY_VOID * all as f64) {
        return None;
    }
    let of_searches = match stopped {
        0 => "They were offered again.".to_owned(),
        _ => format!(
            "{} ended where the next load was void three times in a row, with a bound or with nothing.",
            searches(stopped)
        ),
    };
    Some(Finding {
        severity: if stopped > 0 { Severity::Problem } else { Severity::Caution },
        topic: "void loads",
        sentence: format!(
            "{void} of the {all} loads of the searches were void: the generator or the machine was the limit, and not the systems. \
             {of_searches}"
        ),
        evidence,
    })
}

/// The number of searches, to begin a sentence with.
fn searches(count: usize) -> String {
    if count == 1 { "One search".to_owned() } else { format!("{count} searches") }
}

/// Longer loads at the lower end of the interval failed.
fn not_confirmed(context: &Context<'_>) -> Option<Finding> {
    let report = context.analysis.capacity.as_ref()?;
    let refuted = report.cells.iter().filter(|cell| !cell.confirmations.is_empty() && cell.confirmed().is_none());
    let evidence: Vec<String> = refuted
        .flat_map(|cell| {
            let (variant, condition) = (context.variant(cell.variant), context.condition(cell.condition));
            let place = format!("{variant}, {condition}");
            cell.confirmations.iter().map(move |one| {
                let (level, reasons) = (grouped(one.level.round()), one.reasons.join(", "));
                format!("{place}: {:.0} s at {level}: {reasons}", one.seconds)
            })
        })
        .collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Problem,
        topic: "capacity not confirmed",
        sentence: "Longer loads below the capacity failed, so what the short loads showed does not last. Something grows over \
                   time (a data set, a queue, heat), or the machine was disturbed: look at what limits, and search with \
                   longer loads (`load.duration`)."
            .to_owned(),
        evidence,
    })
}

/// The most lines about failed requests.
const FAILURES: usize = 12;

/// What failed: condition, variant, level of load, name of the account, and kind.
type Failure<'a> = (usize, usize, u64, &'a str, ErrorKind);

/// The failures of loads of the same level.
#[derive(Default)]
struct Failed<'a> {
    count: u64,
    sent: u64,
    example: Option<&'a String>,
}

/// How requests failed, by the load at which they did.
fn failed_requests(context: &Context<'_>) -> Option<Finding> {
    let mut failures: BTreeMap<Failure<'_>, Failed<'_>> = BTreeMap::new();
    for reader in context.readers.iter().filter(|reader| context.input.plan.searches() && reader.counts()) {
        let trial = reader.trial();
        for rung in reader.load().rungs.iter().filter(|rung| rung.summary.validity.counts()) {
            let (replies, level) = (&rung.summary.replies, rung.rung.level.round() as u64);
            for (name, account) in &replies.accounts {
                for (kind, count) in account.failed.iter().filter(|(_, count)| **count > 0) {
                    let key = (trial.condition(), trial.variant(), level, name.as_str(), *kind);
                    let known = failures.entry(key).or_default();
                    (known.count, known.sent) = (known.count + count, known.sent + account.sent);
                    let example = || replies.error_examples.get(name)?.get(kind);
                    known.example = known.example.or_else(example);
                }
            }
        }
    }
    let line = |(&(condition, variant, level, name, kind), failed): (&Failure<'_>, &Failed<'_>)| {
        let request = name.strip_prefix(REQUEST).unwrap_or(name);
        let place = format!("{}, {}", context.variant(variant), context.condition(condition));
        let example = failed.example.map(|text| format!(", such as: {text}")).unwrap_or_default();
        let [count, sent, level] = [failed.count, failed.sent, level].map(|number| grouped(number as f64));
        format!("{place}, at {level}: {count} of {sent} `{request}` failed, {kind}{example}")
    };
    let mut evidence: Vec<String> = failures.iter().take(FAILURES).map(line).collect();
    let more = failures.len().saturating_sub(FAILURES);
    if more > 0 {
        evidence.push(format!("{more} more in errors.csv of each start"));
    }
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Note,
        topic: "failed requests",
        sentence: "Requests failed, by the load at which they did, warm-up included.".to_owned(),
        evidence,
    })
}

/// Loads with so few requests that the capacity comes out too high.
fn short_loads(context: &Context<'_>) -> Option<Finding> {
    let objective = context.input.facts.objective.as_ref().filter(|_| context.input.plan.searches())?;
    let of_load = |reader: &TrialReader<'_>, Limit { measure, .. }: &Limit| {
        let Statistic::Percentile(p) = measure.statistic else { return None };
        let ladder = reader.load().rungs.iter().filter(|one| one.rung.part == RungPart::Ladder);
        let loads = ladder.filter(|one| one.summary.validity.counts()).count() as f64;
        let seconds = reader.load().summary.timing.window.seconds() / loads;
        let values = reader.sample_size(&measure.series)? as f64 / loads;
        let (share, of, place) = (1.0 - p / 100.0, measure.clone(), context.trial(reader));
        (loads > 0.0 && values > 0.0).then_some(ShortLoad { values, seconds, share, of, place })
    };
    let limits = &objective.limits;
    let all = context.counted().flat_map(|reader| limits.iter().filter_map(move |limit| of_load(reader, limit)));
    let shortest = all.min_by(|one, other| one.of_needed().total_cmp(&other.of_needed()))?;
    (shortest.of_needed() < 1.0).then(|| {
        let ShortLoad { values, seconds, share, of, place } = &shortest;
        let longer = (seconds / shortest.of_needed()).ceil();
        let what = match of.series {
            Series::RequestDuration(None) => "requests".to_owned(),
            _ => format!("values of `{}`", words::series(&of.series)),
        };
        Finding {
            severity: Severity::Caution,
            topic: "short loads",
            sentence: format!(
                "The loads near the capacity had {} {what} each, of which {} may miss. Misses of a queue come in bursts, and \
                 with fewer than {MISSES:.0} that may miss, the capacity comes out too high: by 1 to 2 % in simulations of \
                 queues, more with fewer. Loads of {longer:.0} s (`load.duration`) have enough.",
                grouped(values.round()),
                grouped((values * share).round())
            ),
            evidence: vec![format!("{place}: loads of {seconds:.1} s")],
        }
    })
}

/// The loads near the capacity on one start, by what a limit of the objective is about.
struct ShortLoad {
    /// The values that each has.
    values: f64,
    /// How long each took.
    seconds: f64,
    /// The share of the values that may miss the limit.
    share: f64,
    of: Measure,
    place: String,
}

impl ShortLoad {
    /// The values, as a share of those with which what misses can be weighed.
    fn of_needed(&self) -> f64 {
        self.values / values_to_weigh(self.share)
    }
}

/// Loads near the capacity contradict one another.
fn contradicting_loads(context: &Context<'_>) -> Option<Finding> {
    let report = context.analysis.capacity.as_ref()?;
    let percent = |contradiction: f64| format!("{:.0} %", 100.0 * contradiction.exp_m1());
    let (mut evidence, mut widest) = (Vec::new(), 0.0_f64);
    for cell in &report.cells {
        for start in cell.starts.iter().filter(|start| start.contradiction > CONTRADICTION) {
            let (variant, condition) = (context.variant(cell.variant), context.condition(cell.condition));
            let number = start.start;
            evidence.push(format!("start {number}, {variant}, {condition}: by {}", percent(start.contradiction)));
            widest = widest.max(start.contradiction);
        }
    }
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "loads that contradict one another",
        sentence: format!(
            "Loads near the capacity contradict one another: one passed that was larger than another which failed, by up to {}. \
             The machine changed its speed, or the systems did. These searches took more loads, and the interval of the \
             capacity is as wide as that takes.",
            percent(widest)
        ),
        evidence,
    })
}

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::capacity::{Found, show_value};
    use crate::finding::{Finding, Severity};
    use crate::input::Input;
    use crate::testing::{describing, start};
    use plimsoll_model::measure::Series;
    use plimsoll_model::objective::{Judged, Objective, Passed};
    use plimsoll_model::record::{Account, ErrorKind};
    use plimsoll_model::result::RungResult;
    use plimsoll_model::search::{CapacitySearch, SearchRange};
    use plimsoll_model::start::{Rung, RungPart, Validity};
    use std::time::Duration;

    /// A search on three starts: 40 users pass on each, and larger loads are void three times on the first `stopped` of them;
    /// on the others 80 users are too much, and 3 of 100 updates fail under them.
    fn searched(stopped: u32) -> Input {
        let mut input = describing(3, |number| {
            let mut result = start(1.0);
            let summary = result.loads[0].summary.clone();
            let rung = |level: f64, part: RungPart, validity: Validity, passed: Passed| {
                let mut summary = summary.clone();
                summary.validity = validity;
                let (readings, reasons) = (Vec::new(), Vec::new());
                summary.objective = Some(Judged {
                    passed,
                    readings,
                    reasons,
                    share_of_needed: 1.0,
                    strain: None,
                    share_to_weigh: None,
                });
                let rung = Rung { level, part };
                RungResult { rung, summary, iterations: 100, requests: 100, in_requests: 1.0, generator_cpu: None }
            };
            let void = || Validity::Void(vec!["the generator was late".to_owned()]);
            let rungs = &mut result.loads[0].rungs;
            rungs.push(rung(40.0, RungPart::Bracket, Validity::Valid, Passed::Yes));
            if number <= stopped {
                rungs.extend((0..3).map(|_| rung(80.0, RungPart::Bracket, void(), Passed::No)));
                return result;
            }
            let mut failing = rung(80.0, RungPart::Bracket, Validity::Valid, Passed::No);
            let failed = [(ErrorKind::Check, 3)].into();
            let account = Account { sent: 100, answered: 97, failed, ..Account::default() };
            let replies = &mut failing.summary.replies;
            replies.accounts.insert("request:update".to_owned(), account);
            let example = [(ErrorKind::Check, "expected 1, found 2".to_owned())].into();
            replies.error_examples.insert("request:update".to_owned(), example);
            rungs.push(failing);
            let ladder = [60.0, 63.6, 61.7, 63.6, 62.6, 61.7, 62.6, 63.3];
            let passed = |level: f64| if level < 63.0 { Passed::Yes } else { Passed::No };
            rungs.extend(ladder.map(|level| rung(level, RungPart::Ladder, Validity::Valid, passed(level))));
            result
        });
        input.facts.objective = Some(Objective { limits: Vec::new(), errors: 0.01, achieved: 0.99 });
        input.facts.report.measures.push("capacity.count".parse().expect("a measure"));
        let confirm = Duration::from_secs(60);
        let range = SearchRange {
            first: 40.0,
            most: 640.0,
            of_users: true,
            confirm,
            step: None,
            new_users: None,
            recover: confirm,
            longest: Duration::ZERO,
        };
        input.plan.searches = vec![CapacitySearch { range, loads: [20, 10], more: 8 }];
        input
    }

    #[test]
    fn a_capacity_of_which_one_start_has_a_bound_alone_has_no_mean() {
        let mut input = searched(0);
        let estimate = |input: &Input| {
            let analysis = analyse(input);
            let mut all = analysis.cells.into_iter().flat_map(|cell| cell.estimates);
            all.find(|one| one.measure.series == Series::Capacity)
                .expect("it was searched for")
                .summary
                .map(|one| one.n)
        };
        assert_eq!(estimate(&input), Ok(3));
        let rungs = &mut input.starts[1].loads[0].rungs;
        rungs.truncate(1);
        let mut most = rungs[0].clone();
        most.rung.level = 640.0;
        rungs.push(most);
        let why = estimate(&input).expect_err("a bound");
        assert!(why.contains("none, and of 1 of 3 it is a bound (") && why.contains("it is 640 or more"), "{why}");
        let report = analyse(&input).capacity.expect("a search");
        assert!(matches!(report.cells[0].found, Ok(Found::AtLeast(level)) if level < 64.0), "{report:?}");
    }

    #[test]
    fn a_system_carries_the_users_that_pass_and_not_half_a_user_more() {
        // 1 user passes and 2 fail: the levels of the ladder come together between them.
        let mut input = searched(0);
        for start in &mut input.starts {
            for one in &mut start.loads[0].rungs {
                one.rung.level /= 40.0;
            }
        }
        let analysis = analyse(&input);
        let report = analysis.capacity.as_ref().expect("a search");
        assert!(matches!(report.cells[0].found, Ok(Found::At(level, _)) if level > 1.5 && level < 1.6), "{report:?}");
        let carries = analysis.answer.headline[0].to_string();
        assert!(carries.starts_with("The system carries 1 user ("), "{carries}");
        let capacity = "capacity.count".parse().expect("a measure");
        assert_eq!(show_value(&input, 1.56, &capacity), "1");
        input.plan.searches.clear();
        assert_eq!(show_value(&input, 1.56, &capacity), "2", "the mean of a control loop");
    }

    #[test]
    fn loads_with_too_few_requests_show_no_bound() {
        let mut input = searched(0);
        for start in &mut input.starts {
            let rungs = &mut start.loads[0].rungs;
            rungs.truncate(1);
            rungs[0].rung.level = 640.0;
            rungs[0].summary.objective.as_mut().expect("judged").passed = Passed::TooFew;
        }
        let report = analyse(&input).capacity.expect("a search");
        let why = report.cells[0].found.clone().expect_err("nothing passed");
        assert_eq!(why, "no load had enough requests to show that it passes");
    }

    #[test]
    fn loads_that_contradict_one_another_are_told() {
        let finding = |input: &Input| {
            let findings = analyse(input).findings;
            findings.into_iter().find(|finding| finding.topic == "loads that contradict one another")
        };
        let steady = searched(0);
        assert_eq!(finding(&steady), None);
        // On the second start the machine gets slower after half of the ladder.
        let mut moving = searched(0);
        let rungs = &mut moving.starts[1].loads[0].rungs;
        let ladder = [60.0, 63.6, 67.4, 71.5, 75.7, 71.5, 67.4, 63.6, 60.0, 57.7, 56.0, 54.9, 55.7, 54.9, 54.1, 54.9];
        let first = rungs.iter().position(|one| one.rung.part == RungPart::Ladder).expect("a ladder");
        let like = rungs[first].clone();
        rungs.truncate(first);
        rungs.extend((0..).zip(ladder).map(|(place, level)| {
            let mut one = like.clone();
            let passed = if level < if place < 4 { 75.0 } else { 55.5 } { Passed::Yes } else { Passed::No };
            one.rung.level = level;
            one.summary.objective.as_mut().expect("judged").passed = passed;
            one
        }));
        let found = finding(&moving).expect("a finding");
        assert!(found.sentence.contains("by up to 28 %"), "{}", found.sentence);
        assert_eq!(found.evidence.len(), 1);
        let interval = |input: &Input| {
            let report = analyse(input).capacity.expect("a search");
            let Ok(Found::At(_, Ok(interval))) = report.cells[0].found.clone() else { panic!("{report:?}") };
            (interval.high / interval.low).ln() / 2.0
        };
        // Student's factor for three starts, and the root of three.
        assert!(interval(&moving) > (71.5_f64 / 55.7).ln() / 2.0 * 4.3 / 3_f64.sqrt() - 1e-2, "{}", interval(&moving));
    }

    #[test]
    fn how_long_systems_took_to_recover_is_told() {
        let recovering = |passed: [Passed; 3]| {
            let mut input = searched(0);
            for (load, start) in input.starts.iter_mut().flat_map(|start| &mut start.loads).zip(0..) {
                (1..).zip(&mut load.rungs).for_each(|(number, rung)| rung.summary.load.number = 10 * number);
                let light = |(number, passed): (u32, Passed)| {
                    let mut light = load.rungs[0].clone();
                    (light.rung.part, light.summary.load.number) = (RungPart::Recovery, number);
                    light.summary.load.lengths.warmup = Duration::from_secs(1);
                    light.summary.load.lengths.measure = Duration::from_secs(2);
                    light.summary.objective.as_mut().expect("judged").passed = passed;
                    light
                };
                if start == 0 {
                    load.recoveries = (21..).zip(passed).map(light).collect();
                }
            }
            finding(&analyse(&input).findings, "recovery").cloned()
        };
        assert_eq!(recovering([Passed::Yes, Passed::Yes, Passed::TooFew]), None, "at once");
        let slow = recovering([Passed::No, Passed::No, Passed::Yes]).expect("a finding");
        assert_eq!(slow.severity, Severity::Caution);
        assert!(slow.sentence.starts_with("After 1 load (of 1) under which requests failed, light"), "{slow:?}");
        assert!(slow.evidence[0].ends_with("more than 6 s after a load of 80"), "{slow:?}");
        let never = recovering([Passed::No; 3]).expect("a finding");
        assert_eq!(never.severity, Severity::Problem);
        assert!(never.evidence[0].ends_with("not within 9 s after a load of 80"), "{never:?}");
    }

    fn finding<'a>(findings: &'a [Finding], topic: &str) -> Option<&'a Finding> {
        findings.iter().find(|finding| finding.topic == topic)
    }

    #[test]
    fn void_loads_are_told_and_outvote_no_start_that_found_the_capacity() {
        let none = analyse(&searched(0));
        assert_eq!(finding(&none.findings, "void loads"), None);
        let one = analyse(&searched(1));
        let void = finding(&one.findings, "void loads").expect("a finding");
        assert!(void.severity == Severity::Problem && void.sentence.starts_with("3 of the 24 loads"), "{void:?}");
        assert!(void.sentence.ends_with(
            "One search ended where the next load was void three times in a row, with a bound or with nothing."
        ));
        assert!(
            void.evidence[0].ends_with("3 of 4 loads, at which the search ended; the last one: the generator was late")
        );
        let carries = |analysis: &crate::Analysis| analysis.answer.headline[0].to_string();
        assert!(carries(&one).starts_with("The system carries 6"), "{}", carries(&one));
        let all = analyse(&searched(3));
        let bound = "The system carries at least 40 users (larger loads were void: the generator was late).";
        assert_eq!(carries(&all), bound);
    }

    #[test]
    fn failed_requests_are_told_by_load_with_an_example() {
        let found = analyse(&searched(1)).findings;
        let failed = finding(&found, "failed requests").expect("a finding");
        assert_eq!(failed.evidence.len(), 1, "{failed:?}");
        let says = "at 80: 6 of 200 `update` failed, check, such as: expected 1, found 2";
        assert!(failed.evidence[0].ends_with(says), "{failed:?}");
    }
}
