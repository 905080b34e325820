//! Facts about the study, the run and the machine.

use super::{agents, cells};
use crate::text::utc;
use plimsoll_analysis::compare::Reference;
use plimsoll_analysis::quantity::{grouped, show};
use plimsoll_analysis::words::{self, counted, filled, load_unit, unit};
use plimsoll_analysis::{Analysis, ExcludedLoad, Input, NOT_RUN};
use plimsoll_model::host::{Host, Version, WORKLOAD};
use plimsoll_model::measure::Unit;
use plimsoll_model::plan::Plan;
use plimsoll_model::result::TrialResult;
use plimsoll_model::start::{Design, Start, Turns};
use plimsoll_model::study::{FloorRule, Origin};
use plimsoll_model::workload::Protocol;
use std::collections::BTreeMap;

/// A named fact.
#[derive(Clone)]
pub(crate) struct Fact {
    pub(crate) name: String,
    pub(crate) value: String,
}

pub(crate) fn fact(name: impl Into<String>, value: impl Into<String>) -> Fact {
    Fact { name: name.into(), value: value.into() }
}

pub(crate) fn facts(input: &Input, analysis: &Analysis) -> Vec<Fact> {
    let plan = &input.plan;
    let names: Vec<String> = plan.variants.iter().map(plimsoll_model::factor::Assignment::label).collect();
    let how = match plan.design.turns() {
        None => {
            format!("{}, in blocks of one of each, close together in time", counted(loads(plan, |_| true), "trial"))
        }
        Some(_) => format!(
            "{} of all variants together, loaded {}",
            counted(plan.starts.len(), "start"),
            if plan.searches() {
                "with loads that alternate"
            } else if plan.design.is_side_by_side() {
                "side by side with the baseline"
            } else {
                "in turns"
            }
        ),
    };
    let reason = &input.facts.design_reason;
    let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    let design = format!(
        "n = {} of {}{} under {}: {how}, in random order from seed {}{reason}",
        words::repeats((plan.fewest_repeats() as usize, plan.repeats as usize), "repeat"),
        counted(plan.variants.len(), "variant"),
        if plan.with_duplicate { " and a duplicate of the baseline" } else { "" },
        counted(plan.conditions.len(), "condition"),
        plan.seed
    );
    let mut facts = vec![fact("Design", if plan.describes() { design_of_one_system(plan) } else { design })];
    facts.extend(origin(&input.origin).map(|origin| fact("Origin", origin)));
    let variants = format!("{} (the baseline is {})", names.join(", "), names[0]);
    facts.extend((!plan.describes()).then(|| fact("Variants", variants)));
    facts.extend([
        fact("Load", filled(&input.facts.load, &input.facts)),
        fact("Workload", filled(&input.facts.workload, &input.facts)),
        fact("Phases", phases(input)),
        fact("Not counted", not_counted(input, analysis)),
    ]);
    facts.extend(when(input).map(|when| fact("Run", when)));
    facts.push(fact("Host", host_line(&input.host)));
    facts.extend(other_hosts(input).into_iter().map(|host| fact(format!("Host {}", host.machine), host_line(host))));
    facts.extend(input.is_measured().then(|| fact("Generator", generator(input))));
    facts
}

/// The design of a study that compares nothing.
fn design_of_one_system(plan: &Plan) -> String {
    let conditions = match plan.conditions.len() {
        1 => String::new(),
        count => format!(" under each of {}, in random order from seed {}", counted(count, "condition"), plan.seed),
    };
    format!("one system, nothing compared: n = {}{conditions}", counted(plan.repeats as usize, unit(plan)))
}

/// The plan's number of loads on the starts that satisfy `is_meant`.
fn loads(plan: &Plan, is_meant: impl Fn(&Start) -> bool) -> usize {
    plan.starts.iter().filter(|start| is_meant(start)).map(|start| start.variants.len()).sum()
}

/// The origin of results that Plimsoll did not measure itself.
fn origin(origin: &Origin) -> Option<String> {
    match origin {
        Origin::Measured => None,
        Origin::Imported { tool, version } => {
            let version = version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
            Some(format!("results of {tool}{version}; of its generator nothing is known"))
        }
    }
}

fn phases(input: &Input) -> String {
    let by_control_loop = input.trials().any(|trial| trial.load.summary.feedback.is_some());
    let mut lengths: Vec<String> = input
        .plan
        .lengths
        .iter()
        .map(|length| {
            let seconds = |span: std::time::Duration| format!("{} s", span.as_secs_f64());
            match input.plan.design.turns() {
                _ if input.plan.searches() => format!(
                    "{} of warm-up, then {} measured in each load, or longer where that is too short to show that it passes",
                    seconds(length.warmup),
                    seconds(length.measure)
                ),
                None => {
                    let most = if by_control_loop { " at most" } else { "" };
                    format!("{} of warm-up, then {} measured{most}", seconds(length.warmup), seconds(length.measure))
                }
                Some(Turns { count, settle, slice }) => format!(
                    "{} of warm-up for each variant, then {count} turns, in which each has a slice of {} after {} that are \
                     not measured{}",
                    seconds(length.warmup),
                    seconds(slice),
                    seconds(settle),
                    if input.plan.design.is_side_by_side() { ", and at the same time one of the baseline" } else { "" }
                ),
            }
        })
        .collect();
    lengths.dedup();
    let cut = input.trials().map(|trial| trial.load.cut).max().filter(|cut| *cut > 0);
    let cut = cut.map(|cut| {
        format!("; the first {cut} s of that are left out where a {} was not steady yet", load_unit(&input.plan))
    });
    lengths.join("; or ") + &cut.unwrap_or_default()
}

fn not_counted(input: &Input, analysis: &Analysis) -> String {
    let (missing, ran): (Vec<&ExcludedLoad>, Vec<&ExcludedLoad>) =
        analysis.excluded.iter().partition(|one| one.what == NOT_RUN);
    let mut parts = match ran.len() {
        0 => Vec::new(),
        count if count > 8 => vec![format!("{}, see the findings", counted(count, load_unit(&input.plan)))],
        _ => ran.iter().map(|one| format!("{} {} ({})", unit(&input.plan), one.trial, one.what)).collect(),
    };
    let again = loads(&input.plan, |start| input.plan.is_superseded(start));
    // Where they are listed one by one, each has its own remark.
    if again > 0 && ran.len() > 8 {
        parts.push(format!("{again} of them in blocks that ran again, where what was in order does not count either"));
    }
    if !missing.is_empty() {
        parts.push(format!("{} did not run", counted(missing.len(), load_unit(&input.plan))));
    }
    let rungs = input.trials().filter(TrialResult::counts).flat_map(|trial| &trial.load.rungs);
    let void = rungs.filter(|rung| rung.summary.validity.is_void()).count();
    if void > 0 {
        parts.push(format!("{} of the searches, which were void", counted(void, "load")));
    }
    if parts.is_empty() { format!("nothing: every {} counts", load_unit(&input.plan)) } else { parts.join(", ") }
}

fn when(input: &Input) -> Option<String> {
    let timings = || input.starts.iter().map(|start| start.summary.timing);
    let first = timings().map(|timing| timing.started_unix_ms).min()?;
    let last = timings().map(|timing| timing.started_unix_ms + (timing.took.0 / 1_000_000) as i64).max()?;
    Some(format!("{} to {} UTC", utc(first), utc(last)))
}

fn generator(input: &Input) -> String {
    let spec = &input.facts.generator;
    let processors = spec.cpus.as_ref().map_or("any processor".to_owned(), |cpus| {
        let plural = if cpus.0.len() == 1 { "" } else { "s" };
        format!("processor{plural} {cpus}")
    });
    // Users whose calls block have a thread each.
    let threads = match input.facts.protocol {
        Protocol::Sql | Protocol::Storage => "a thread for each user".to_owned(),
        _ => counted(spec.threads, "thread"),
    };
    let agents = agents::records(input).len();
    let whose = match agents {
        0 => format!("{threads} on {processors}"),
        _ => format!("{}, each with threads of its own", counted(agents, "agent")),
    };
    format!(
        "{whose}; a {} is void when the busiest thread is above {:.0} % of a processor or \
         starts work more than {} ms late (p99)",
        load_unit(&input.plan),
        spec.max_cpu * 100.0,
        spec.max_lateness.as_secs_f64() * 1e3
    )
}

/// The other hosts on which systems ran, each once.
fn other_hosts(input: &Input) -> Vec<&Host> {
    let mut hosts: BTreeMap<&str, &Host> = BTreeMap::new();
    for host in input.starts.iter().flat_map(|start| &start.summary.hosts) {
        hosts.entry(&host.machine).or_insert(host);
    }
    hosts.into_values().collect()
}

fn host_line(host: &Host) -> String {
    let mut parts = vec![
        host.cpu_model.clone().unwrap_or_else(|| "unknown processor".to_owned()),
        format!("{} processors", host.processors),
    ];
    parts.extend(host.memory.map(|bytes| show(bytes as f64, Unit::Bytes)));
    parts.extend(host.kernel.clone());
    parts.join(", ")
}

pub(crate) fn host(host: &Host) -> Vec<Fact> {
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| show(bytes as f64, Unit::Bytes));
    let unknown = || "could not be read".to_owned();
    let none = || "none found".to_owned();
    let load = host.load_before.map(|[one, five, fifteen]| format!("{one:.2}, {five:.2}, {fifteen:.2}"));
    vec![
        fact("Processor", host.cpu_model.clone().unwrap_or_else(unknown)),
        fact("Processors for Plimsoll", host.processors.to_string()),
        fact("Memory", bytes(host.memory).unwrap_or_else(unknown)),
        fact("Kernel", host.kernel.clone().unwrap_or_else(unknown)),
        fact("Distribution", host.distribution.clone().unwrap_or_else(unknown)),
        fact("Frequency governor", host.governor.clone().unwrap_or_else(unknown)),
        fact("Clock source", host.clock_source.clone().unwrap_or_else(unknown)),
        fact("Limit on CPU", host.cpu_limit.map_or_else(none, |cores| format!("{cores} cores"))),
        fact("Limit on memory", bytes(host.memory_limit).unwrap_or_else(none)),
        fact("Virtualization", host.virtualization.clone().unwrap_or_else(none)),
        fact("Load before the start (1, 5, 15 min)", load.unwrap_or_else(unknown)),
    ]
}

/// The commands that started the systems of each variant, and the databases that ran already.
pub(crate) fn commands(input: &Input) -> Vec<Fact> {
    let ran = if input.facts.systems.is_empty() { "What ran for" } else { "Started for" };
    let of = input.facts.commands.iter().enumerate().filter(|(_, commands)| !commands.is_empty());
    of.map(|(variant, commands)| fact(format!("{ran} {}", input.plan.label(variant)), commands.join("; "))).collect()
}

pub(crate) fn versions(versions: &[Version]) -> Vec<Fact> {
    versions
        .iter()
        .map(|version| {
            let hash = version.sha256.as_deref().map_or("not hashed".to_owned(), |hash| format!("sha256 {hash}"));
            let said = match version.version.as_deref() {
                Some(said) => format!("{said}; "),
                None if version.name == WORKLOAD => String::new(),
                None => "no version command; ".to_owned(),
            };
            fact(version.name.clone(), format!("{}: {said}{hash}", version.program))
        })
        .collect()
}

/// The commands to run the study again; only the plan's seed has to be the same.
pub(crate) fn redo(input: &Input) -> Vec<String> {
    vec![input.command_to_run(input.plan.given_time), "plimsoll report BUNDLE".to_owned()]
}

/// Notes on the meaning of the numbers.
pub(crate) fn notes(input: &Input, analysis: &Analysis) -> Vec<Fact> {
    let mut notes = notes_on_values(input);
    notes.extend(match input.plan.describes() {
        true => note_on_one_system(),
        false => notes_on_comparisons(input, analysis),
    });
    notes.extend(notes_on_records());
    notes.push(if input.facts.open_load {
        fact(
            "Open load",
            "response times count from the instant at which a request was due, the durations of requests from its send.",
        )
    } else {
        fact(
            "Closed load",
            "users wait for a reply before they go on, so a slow system is asked less often. There is only service time: \
             what users who arrive on their own would wait is not measured.",
        )
    });
    if analysis.storage.is_some() {
        notes.push(fact(
            "Storage",
            "mean, standard deviation (±) and percentiles of a cell are those of all operations of the trials that count; \
             the interval in brackets is that of a trial's mean, from the trials. The rate is the size over the median, for \
             one operation at a time, in units of 1,000. open, data, sync and close are medians of what is timed apart. app: \
             nothing is synced; durable: file and directory are; cold: what is read was dropped from the page cache before; \
             direct: past the page cache. cache: half or more of what was read lay in the page cache.",
        ));
    }
    if analysis.database.is_some() {
        notes.push(fact(
            "Databases",
            "NOTPM: TPC-C's new orders that were committed in a minute of the measure phase; neither those that are rolled \
             back by intent nor those that failed. It is no tpmC. In the summaries a transaction's average, 90th percentile \
             and total are those of all trials that count, its rollbacks those that its input asks for. Statistics are means \
             over the measure phase, by the server's own account; ± is the standard deviation between trials. What a cell is \
             consistent with as its limit follows from fixed rules on these means, and is no proof.",
        ));
    }
    let rare = cells::rare_requests(input).len();
    if rare > 0 {
        let text =
            format!("tables show those that were made most often; {rare} more are in report.json and results.csv.");
        notes.push(fact("Requests", text));
    }
    notes.extend((!agents::records(input).is_empty()).then(agents::note));
    let needed = grouped(1000.0);
    notes.push(fact("Percentiles", format!("a p99 takes {needed} values in a trial, a p95 200: ten beyond it.")));
    notes
}

fn notes_on_values(input: &Input) -> Vec<Fact> {
    vec![
        fact("n", note_on_n(input)),
        fact(
            "Values",
            "each variant gives one number per measure on each start; tables of results show the geometric mean over the repeats (the arithmetic mean \
             where one is zero), and ± the standard deviation between repeats as a share of the mean. That is a spread, \
             not an interval. min, max and peak are those of all. A percentile that one of them has too few \
             values for is not taken from the others.",
        ),
    ]
}

fn note_on_n(input: &Input) -> String {
    let unit = unit(&input.plan);
    let within = match input.plan.design.is_trials() {
        _ if input.plan.searches() => "Loads and requests",
        true => "Requests and seconds",
        false => "Turns, slices and requests",
    };
    let started = match unit {
        // What other tools started is not known.
        _ if input.facts.systems.is_empty() && !input.is_measured() => "",
        "trial" if input.facts.systems.is_empty() => {
            ". No system was started for them, so each may find what the one before left"
        }
        _ if input.facts.systems.is_empty() => {
            ", of users and not of systems: these ran already, so each may find what the one before left"
        }
        "trial" => ", each with systems freshly started",
        _ => " of the systems",
    };
    format!("the number of {unit}s{started}. {within} are not repeats: those of one {unit} share its fate.")
}

fn notes_on_comparisons(input: &Input, analysis: &Analysis) -> Vec<Fact> {
    let ratio = match input.plan.design {
        _ if input.plan.searches() => "the values of the two variants on a start are divided by one another",
        Design::Trials => "the two trials of a block are divided by one another",
        Design::Turns(_) if input.plan.with_duplicate => {
            "a slice of a variant is divided by those of the baseline and of its duplicate in the same turn, and of each of the \
             two ratios a quarter is dropped from either end"
        }
        Design::Turns(_) => {
            "the two slices of a turn are divided by one another, a quarter of these ratios is dropped from either end"
        }
        Design::SideBySide(_) => {
            "the two slices that ran at the same time are divided by one another, a quarter of these ratios is dropped from \
             either end"
        }
    };
    let against = if input.plan.with_duplicate { "ranks or the noise floor speak" } else { "ranks speak" };
    let mut notes = vec![
        fact(
            "Changes",
            format!(
                "{ratio}, and the change is the geometric mean of these ratios. The two values beside it are the geometric means \
             of what was divided, so that their ratio is the change; tables of results have all values. The interval is Student's t on their logarithms, from 3 pairs on. Errors are compared by their difference, because \
             none at all is common. A pair of which one does not count is left out. From 6 pairs on the same is done by \
             ranks (Hodges and Lehmann); from 7 on a verdict stands only if both agree."
            ),
        ),
        fact(
            "Verdicts",
            format!(
                "equivalent: the interval lies within the margin. Better or worse: all of it lies on one side of zero, also \
                 after the adjustment for all comparisons that decide (Holm); size uncertain: it reaches into the margin. \
                 Inconclusive: neither, or {against} against it. Void: nothing to decide with."
            ),
        ),
    ];
    notes.extend(input.plan.with_duplicate.then(|| note_on_floor(input, analysis)));
    notes
}

fn note_on_floor(input: &Input, analysis: &Analysis) -> Fact {
    let widest = Reference::of(&input.plan).widest_floor();
    let (second, limit) = if widest > 1.0 {
        ("variants are compared with it and with its duplicate, the second one", format!("{widest:.3} margins"))
    } else {
        ("the second one, its duplicate, is compared with nothing else", "the margin".to_owned())
    };
    let stands = match input.facts.floor_rule {
        FloorRule::Strict => "no verdict stands".to_owned(),
        FloorRule::Beyond => format!("only {} stand", analysis.stands_over_floor("it")),
    };
    fact(
        "Noise floor",
        format!(
            "each block holds the baseline twice; {second}. What these two differ by is the machine's doing. Where their \
             interval excludes a change of zero, or is wider than {limit}, {stands}."
        ),
    )
}

fn note_on_one_system() -> Vec<Fact> {
    vec![fact(
        "Intervals",
        "Student's t on the logarithms of the trials' values, from 3 trials on: where the mean of many such runs on this \
         machine would lie. Another day and another machine are not in them; `plimsoll compare` holds another bundle of this \
         study against this one.",
    )]
}

fn notes_on_records() -> Vec<Fact> {
    vec![
        fact(
            "Durations",
            "from histograms over everything that the measure phase scheduled, time-outs at their limit and failures \
             included; percentiles are never averaged within a trial. an iteration runs from the first step to the end of \
             the last, without think time and pauses; of a script it includes what the script sleeps. In a study file \
             these are iteration_duration and request_duration, which k6 calls http_req_duration and grpc_req_duration.",
        ),
        fact(
            "Rates and amounts",
            "what ended within the measure phase, per second of it. Bytes are those on the socket.",
        ),
        fact("CPU and memory", "of all processes of the system, sampled each second of the measure phase."),
    ]
}
