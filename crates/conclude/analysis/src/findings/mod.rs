//! Findings: one sentence each, with its evidence, that a reader should know beside the answer.

mod capacity;
mod database;
mod design;
mod drift;
mod exposed;
mod feedback;
mod load;
mod machine;
mod method;
mod missing_measures;
mod script;
mod soak;
mod sockets;
mod steady;
mod storage;
mod validity;

pub(crate) use machine::OTHERS_RAN;

use crate::analysis::Analysis;
use crate::finding::{Finding, Severity};
use crate::input::Input;
use crate::measure::TrialReader;
use crate::words;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::words::and_list;
use std::collections::BTreeMap;

/// The inputs of all findings.
struct Context<'a> {
    input: &'a Input,
    readers: &'a [TrialReader<'a>],
    analysis: &'a Analysis,
}

pub(crate) fn findings(input: &Input, readers: &[TrialReader<'_>], analysis: &Analysis) -> Vec<Finding> {
    let context = Context { input, readers, analysis };
    let mut findings: Vec<Finding> = [
        missing_measures::findings(&context),
        validity::findings(&context),
        method::findings(&context),
        steady::findings(&context),
        soak::findings(&context),
        feedback::findings(&context),
        load::findings(&context),
        capacity::findings(&context),
        script::findings(&context),
        sockets::findings(&context),
        storage::findings(&context),
        database::findings(&context),
        machine::findings(&context),
        drift::findings(&context),
        exposed::findings(&context),
        design::findings(&context),
    ]
    .concat();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

impl Context<'_> {
    /// The trials that count.
    fn counted(&self) -> impl Iterator<Item = &TrialReader<'_>> {
        self.readers.iter().filter(|reader| reader.counts())
    }

    fn variant(&self, index: usize) -> String {
        self.input.plan.label(index)
    }

    fn condition(&self, index: usize) -> String {
        words::condition_in(&self.input.plan, index)
    }

    /// A trial in words: number, variant and condition. Where variants take turns, the number is that of the start.
    fn trial(&self, reader: &TrialReader<'_>) -> String {
        let (unit, trial) = (words::unit(&self.input.plan), reader.trial());
        format!("{unit} {} ({}, {})", trial.number(), self.variant(trial.variant()), self.condition(trial.condition()))
    }

    /// The word for what a variant did on one start: `trial`, `load`.
    fn load_unit(&self) -> &'static str {
        words::load_unit(&self.input.plan)
    }

    /// `12 trials`, or where variants take turns `12 loads`.
    fn counted_loads(&self, count: usize) -> String {
        words::counted(count, self.load_unit())
    }

    /// What gives each start more to measure: `longer trials`.
    fn longer(&self) -> &'static str {
        match self.input.plan.design.is_trials() {
            _ if self.input.plan.searches() => "longer loads",
            true => "longer trials",
            false => "more turns on each start",
        }
    }

    /// Merges equal lines of several trials: `text` → `trials 3, 7 and 9: text`.
    fn merge_equal_lines(&self, lines: impl IntoIterator<Item = (u32, String)>) -> Vec<String> {
        let mut by_text: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (trial, text) in lines {
            let trials = by_text.entry(text).or_default();
            if trials.last() != Some(&trial) {
                trials.push(trial);
            }
        }
        let mut lines_with_trials: Vec<(Vec<u32>, String)> =
            by_text.into_iter().map(|(text, trials)| (trials, text)).collect();
        lines_with_trials.sort();
        lines_with_trials
            .into_iter()
            .map(|(trials, text)| format!("{}: {text}", self.list_of_trials(&trials)))
            .collect()
    }

    /// Trials by number if they are few, otherwise their count. Where variants take turns, the numbers are those of
    /// starts.
    fn list_of_trials(&self, trials: &[u32]) -> String {
        let unit = words::unit(&self.input.plan);
        let mut trials = trials.to_vec();
        trials.dedup();
        match trials[..] {
            [] => format!("no {unit}"),
            [one] => format!("{unit} {one}"),
            _ if trials.len() > MAX_TRIALS_BY_NUMBER => words::counted(trials.len(), unit),
            _ => format!("{unit}s {}", and_list(&trials)),
        }
    }
}

/// One example for each request and kind of error, from the first of `trials` that has it:
/// `increment, connect: failed to connect: Connection refused`.
fn examples<'a>(trials: impl IntoIterator<Item = &'a TrialReader<'a>>) -> Vec<String> {
    let mut examples: BTreeMap<(&String, ErrorKind), String> = BTreeMap::new();
    for reader in trials {
        for (request, kinds) in &reader.load().summary.replies.error_examples {
            for (kind, text) in kinds {
                examples.entry((request, *kind)).or_insert_with(|| format!("{request}, {kind}: {text}"));
            }
        }
    }
    examples.into_values().collect()
}

/// Up to this many trials are listed by number.
const MAX_TRIALS_BY_NUMBER: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::testing::{input, start, with_duplicate, with_second};
    use plimsoll_model::objective::Objective;
    use plimsoll_model::record::{SequenceCheck, Subject};
    use plimsoll_model::result::{GeneratorRow, LoadSecond, Work};
    use plimsoll_model::script::ScriptFacts;
    use plimsoll_model::start::Validity;
    use plimsoll_model::study::{Decision, Origin};

    fn topics(input: &Input) -> Vec<&'static str> {
        analyse(input).findings.iter().map(|finding| finding.topic).collect()
    }

    #[test]
    fn a_study_without_faults_has_few_findings() {
        let study = || input(3, |number| start(1.0 + f64::from(number % 3) / 100.0));
        assert_eq!(topics(&study()), ["no noise floor"]);
        let with_floor = with_duplicate(study(), |block| start(1.0 + f64::from(block % 3) / 100.0));
        assert_eq!(topics(&with_floor), Vec::<&str>::new());
    }

    #[test]
    fn the_key_that_leaves_the_duplicate_out_is_named_where_the_study_wrote_it() {
        let study = |change: fn(&mut Input)| {
            let mut input = input(3, |number| start(1.0 + f64::from(number % 3) / 100.0));
            change(&mut input);
            let mut findings = analyse(&input).findings.into_iter();
            findings.find(|finding| finding.topic == "no noise floor").expect("a finding").sentence
        };
        assert_eq!(
            study(|_| ()),
            "The study has no duplicate of its baseline (`noise_floor = false`), so nothing shows what this machine makes of \
             two equal systems."
        );
        let by_default: [fn(&mut Input); 3] = [
            |search| search.facts.objective = Some(Objective { limits: Vec::new(), errors: 0.01, achieved: 0.99 }),
            |soak| soak.facts.soak = true,
            |imported| imported.origin = Origin::Imported { tool: "k6".to_owned(), version: None },
        ];
        for change in by_default {
            let sentence = study(change);
            assert!(sentence.starts_with("The study has no duplicate of its baseline, so nothing"), "{sentence}");
        }
    }

    #[test]
    fn each_fault_is_found() {
        let mut input = input(3, |number| start(1.0 + f64::from(number % 3) / 100.0));
        input.facts.loopback = true;
        input.complete = false;
        input.problems = vec!["plan.json was changed after the run".to_owned()];
        input.starts[0].summary.validity = Validity::Void(vec!["the generator was the limit".to_owned()]);
        let check = SequenceCheck { replies: 10, largest: 9, repeated: 1, ..SequenceCheck::default() };
        input.starts[1].loads[0].summary.replies.sequences.insert("call".to_owned(), check);
        input.starts[2].summary.warnings = vec!["the generator's loop stalled for 120 ms".to_owned()];
        let tally = input.starts[3].loads[0].tallies.get_mut(&Subject::Request("call".to_owned())).expect("requests");
        tally.errors.insert(ErrorKind::Timeout, 5);
        tally.saturated = 2;
        let topics = topics(&input);
        for topic in [
            "damaged bundle",
            "trials that do not count",
            "wrong replies",
            "warnings",
            "errors",
            "saturated",
            "loopback",
        ] {
            assert!(topics.contains(&topic), "{topic} is not among {topics:?}");
        }
    }

    #[test]
    fn an_example_says_why_exchanges_failed() {
        let refused = "failed to connect: Connection refused (os error 111)";
        let mut input = input(3, |number| start(1.0 + f64::from(number % 3) / 100.0));
        let kinds = BTreeMap::from([(ErrorKind::Connect, refused.to_owned())]);
        for number in [0, 3] {
            let result = &mut input.starts[number];
            let call = Subject::Request("call".to_owned());
            result.loads[0].tallies.get_mut(&call).expect("requests").errors.insert(ErrorKind::Connect, 100);
            result.loads[0].summary.replies.error_examples.insert("call".to_owned(), kinds.clone());
        }
        input.starts[0].summary.validity = Validity::Failed(vec!["all 100 exchanges failed".to_owned()]);
        let findings = analyse(&input).findings;
        for topic in ["trials that do not count", "errors"] {
            let finding = findings.iter().find(|finding| finding.topic == topic).expect(topic);
            assert!(
                finding.evidence.iter().any(|line| line.contains(&format!("call, connect: {refused}"))),
                "{finding:?}"
            );
        }
    }

    #[test]
    fn the_console_of_scripts_is_pointed_at() {
        let mut input = input(3, |number| start(1.0 + f64::from(number % 3) / 100.0));
        for number in [1, 4] {
            let facts = ScriptFacts { console: 1200, ..ScriptFacts::default() };
            input.starts[number].loads[0].summary.work = Work::Script(facts);
            input.starts[number].folder = format!("starts/{:04}", number + 1);
        }
        let finding =
            analyse(&input).findings.into_iter().find(|finding| finding.topic == "console").expect("a finding");
        assert!(finding.sentence.contains("in trials 2 and 5 (2,400 lines)"), "{finding:?}");
        assert!(finding.sentence.ends_with("`starts/0002/console.log`."), "{finding:?}");
    }

    #[test]
    fn a_measure_that_no_trial_has_is_told_first_with_what_there_is() {
        let mut input = input(3, |number| start(1.0 + f64::from(number % 3) / 100.0));
        input.starts[0].summary.validity = Validity::Void(vec!["the generator was the limit".to_owned()]);
        let measure = |text: &str| text.parse().expect("a measure");
        input.facts.report.measures = vec![measure("request_duration:cal.med"), measure("cpu.avg")];
        let lines_with_trials = |input: &Input| analyse(input).findings[0].clone();
        let first = lines_with_trials(&input);
        assert_eq!(first.topic, "measures without a value");
        assert!(first.sentence.ends_with("has a value: `request_duration:cal.med` and `cpu.avg`."), "{first:?}");
        assert_eq!(first.evidence[0], "request_duration:cal.med: no request:cal was recorded; there is `call`");
        input.facts.report.measures = vec![measure("checks:fine.ratio")];
        let sentence = lines_with_trials(&input).sentence;
        assert!(sentence.ends_with("no check `fine` was made; there was none at all."), "{sentence}");
        input.facts.report.measures = vec![measure("request_duration:call.p99.9")];
        assert_ne!(lines_with_trials(&input).topic, "measures without a value", "too few requests are another matter");
    }

    #[test]
    fn trials_that_did_not_run_are_counted_apart() {
        let mut input = input(3, |_| start(1.0));
        input.starts[0].summary.validity = Validity::Void(vec!["the generator was the limit".to_owned()]);
        input.starts.truncate(4);
        let findings = analyse(&input).findings;
        let finding = findings.iter().find(|finding| finding.topic == "trials that do not count").expect("a finding");
        assert!(
            finding.sentence.starts_with("Of 6 trials, 2 did not run, and 1 ran and does not count"),
            "{finding:?}"
        );
        input.starts[0].summary.validity = Validity::Valid;
        let findings = analyse(&input).findings;
        let finding = findings.iter().find(|finding| finding.topic == "trials that did not run").expect("a finding");
        assert!(finding.sentence.starts_with("Of 6 trials, 2 did not run."), "{finding:?}");
    }

    #[test]
    fn littles_law_is_checked_with_the_think_time() {
        // 50 iterations a second of 50.5 ms on average keep 2.5 users busy, and 52.5 with a pause of 1 s.
        let with_users = |users, think| {
            let mut input = input(3, move |number| {
                let mut result = start(1.0 + f64::from(number % 3) / 1000.0);
                result.loads[0].generator =
                    (0..2).map(|second| GeneratorRow { second, users, ..GeneratorRow::default() }).collect();
                result
            });
            input.facts.mean_think = think;
            topics(&input)
        };
        assert!(with_users(3, Some(0.0)).contains(&"Little's law"));
        assert!(!with_users(3, None).contains(&"Little's law"));
        assert!(with_users(10, Some(0.0)).contains(&"idle users"));
        assert!(!with_users(53, Some(1.0)).iter().any(|topic| ["Little's law", "idle users"].contains(topic)));
        assert!(with_users(200, Some(1.0)).contains(&"idle users"));
    }

    #[test]
    fn the_generators_own_step_is_missing_from_short_iterations() {
        // One user, iterations of 8 µs.
        let at_rate = |rate: u64| {
            topics(&input(3, move |_| {
                let mut result = start(1.0);
                for tally in result.loads[0].tallies.values_mut() {
                    tally.service.clear();
                    tally.service.record_n(8_000, 2 * rate).expect("in range");
                }
                result.loads[0].seconds.clear();
                for second in 0..2 {
                    with_second(&mut result.loads[0], second, rate);
                    result.loads[0].generator.push(GeneratorRow { second, users: 1, ..GeneratorRow::default() });
                }
                result
            }))
        };
        assert!(!at_rate(115_000).contains(&"Little's law"), "0.7 µs after each");
        assert!(at_rate(105_000).contains(&"Little's law"), "1.5 µs after each");
    }

    #[test]
    fn users_without_a_connection_are_named_as_the_reason() {
        let mut input = input(3, |number| start(1.0 + f64::from(number % 3) / 1000.0));
        for result in &mut input.starts {
            result.loads[0].generator =
                (0..2).map(|second| GeneratorRow { second, users: 10, ..GeneratorRow::default() }).collect();
            for (second, count, failed) in [(-1, 3, 1), (0, 1, 0)] {
                let nothing = LoadSecond::empty(second, Subject::Connect);
                result.loads[0].seconds.push(LoadSecond { count, failed, ..nothing });
            }
        }
        let finding = analyse(&input).findings.into_iter().find(|finding| finding.topic == "idle users");
        let evidence = finding.expect("a finding").evidence;
        assert!(
            evidence[0].ends_with("keeps 2.53 of 10 users busy (25 %); 3 connections were ever made"),
            "{evidence:?}"
        );
    }

    #[test]
    fn percentiles_that_were_refused_are_listed() {
        let mut input = input(3, |number| start(1.0 + f64::from(number % 3) / 100.0));
        for tally in input.starts[1].loads[0].tallies.values_mut() {
            tally.service.clear();
            tally.service.record_n(1_000_000, 150).expect("in range");
        }
        let finding = analyse(&input).findings.into_iter().find(|finding| finding.topic == "too few requests");
        let evidence = finding.expect("a finding").evidence;
        assert!(evidence.contains(&"iterations, p95 takes 200 values, and trial 2 had 150".to_owned()), "{evidence:?}");
    }

    #[test]
    fn settings_that_weaken_durability_are_told_with_their_variants() {
        let mut input = input(3, |number| start(1.0 + f64::from(number % 3) / 100.0));
        input.facts.commands = ["on", "off"].map(|fsync| vec![format!("db: postgres -c fsync={fsync}")]).into();
        let finding = analyse(&input).findings.into_iter().find(|finding| finding.topic == "durability");
        let evidence = finding.expect("a finding").evidence;
        assert!(evidence[0].starts_with("new: fsync=off: a power failure"), "{evidence:?}");
    }

    #[test]
    fn repeats_that_an_interruption_tears_apart_are_found() {
        let went_on_later = |input: &mut Input, pause: i64, from: u32| {
            let later = input.starts.iter_mut().filter(|one| one.summary.start.number >= from);
            later.for_each(|one| one.summary.timing.started_unix_ms += pause * 1000);
        };
        let study = || input(4, |number| start(1.0 + f64::from(number % 3) / 100.0));
        for (pause, from, expected) in [(0, 1, false), (300, 4, false), (36_000, 5, false), (36_000, 4, true)] {
            let mut input = study();
            went_on_later(&mut input, pause, from);
            let found = analyse(&input).findings.into_iter().find(|one| one.topic == "trials of a repeat far apart");
            assert_eq!(found.is_some(), expected, "{pause} s before trial {from}");
            let evidence = found.map_or(Vec::new(), |finding| finding.evidence);
            assert!(
                evidence.iter().all(|one| one.ends_with("repeat 2: 10 h between trial 3 and trial 4")),
                "{evidence:?}"
            );
        }
    }

    #[test]
    fn a_baseline_that_drifts_is_found() {
        let input = input(8, |number| start(1.0 + f64::from(number) / 20.0));
        assert!(topics(&input).contains(&"drift"));
    }

    #[test]
    fn repeats_that_differ_more_than_the_margin_are_found() {
        let open = input(4, |number| start(1.0 + f64::from(number % 4) / 3.0));
        assert!(topics(&open).contains(&"wide spread"));
        let worse = input(4, |number| {
            let together = 1.0 + f64::from(number.div_ceil(2) % 4) / 3.0;
            start(if number % 2 == 1 { together } else { 2.0 * together })
        });
        assert!(!topics(&worse).contains(&"wide spread"), "blocks spread alike, so a verdict is reached");
    }

    #[test]
    fn a_spread_of_errors_is_held_against_a_margin_in_points() {
        // Two repeats, with 1 and with 3 errors in 1,000 requests, reach no verdict.
        let wide_spread = |margin| {
            let mut input = input(2, |number| {
                let mut result = start(1.0);
                let call = Subject::Request("call".to_owned());
                let tally = result.loads[0].tallies.get_mut(&call).expect("requests");
                tally.errors.insert(ErrorKind::Status, if number <= 2 { 1 } else { 3 });
                result
            });
            let measure = "errors.ratio".parse().expect("a measure");
            input.facts.decide = vec![Decision { measure, margin }];
            analyse(&input).findings.into_iter().find(|finding| finding.topic == "wide spread")
        };
        assert_eq!(wide_spread(0.01), None, "0.14 points are less than 1");
        let Finding { sentence, evidence, .. } = wide_spread(0.0001).expect("a finding");
        assert!(sentence.contains("0.1 points in share of errors, more than the margin of 0.01 points"), "{sentence}");
        assert!(evidence[0].ends_with(": ± 0.1 points around 0.2 % (from 0.1 % to 0.3 %, n = 2)"), "{evidence:?}");
    }

    #[test]
    fn what_is_timed_but_not_compared_is_found() {
        let input = input(3, |number| {
            let mut result = start(1.0 + f64::from(number % 3) / 1000.0);
            let iteration = result.loads[0].tallies.get_mut(&Subject::Iteration).expect("iterations");
            iteration.service.clear();
            for milliseconds in 1..=100_u64 {
                iteration.service.record_n(milliseconds * 10_000_000, 10).expect("in range");
            }
            result
        });
        let finding = analyse(&input).findings.into_iter().find(|finding| finding.topic == "what is timed");
        let sentence = finding.expect("a finding").sentence;
        assert!(sentence.starts_with("Only 10 % of the time of an iteration is the request itself"), "{sentence}");
        assert!(sentence.contains("let request_duration decide"), "{sentence}");
    }

    #[test]
    fn what_is_timed_is_told_per_variant_where_they_differ() {
        let input = input(3, |number| {
            let mut result = start(1.0 + f64::from(number % 3) / 1000.0);
            let iteration = result.loads[0].tallies.get_mut(&Subject::Iteration).expect("iterations");
            iteration.service.clear();
            let times = if number % 2 == 1 { 2_000_000 } else { 4_000_000 };
            for milliseconds in 1..=100_u64 {
                iteration.service.record_n(milliseconds * times, 10).expect("in range");
            }
            result
        });
        let finding = analyse(&input).findings.into_iter().find(|finding| finding.topic == "what is timed");
        let evidence = finding.expect("a finding").evidence;
        assert!(evidence[0].starts_with("all trials, new: requests 25 %"), "{evidence:?}");
        assert!(evidence[1].starts_with("all trials, old: requests 50 %"), "{evidence:?}");
    }

    #[test]
    fn the_same_warning_is_told_once() {
        let lines = [(1, "slow".to_owned()), (4, "slow".to_owned()), (2, "late".to_owned())];
        let input = input(1, |_| start(1.0));
        let context = Context { input: &input, readers: &[], analysis: &analyse(&input) };
        assert_eq!(context.merge_equal_lines(lines), ["trials 1 and 4: slow", "trial 2: late"]);
    }
}
