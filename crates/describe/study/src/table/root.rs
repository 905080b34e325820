//! The study file as a whole: its tables, and what they must be to one another.

use crate::document::profile::Profiles;
use crate::document::{Fault, Faults, Section, Span, did_you_mean, table, unknown};
use crate::table::database::DatabaseTables;
use crate::table::decide::DecideTable;
use crate::table::design::{
    DesignName, DesignSpec, NOTHING_COMPARED, TurnsTable, design, why_impossible, why_too_rare, why_unwise,
};
use crate::table::factors::Factors;
use crate::table::generator::{GeneratorTable, TargetsTable};
use crate::table::load::LoadTable;
use crate::table::named_tables::NamedTables;
use crate::table::objective::ObjectiveTable;
use crate::table::report::ReportTable;
use crate::table::secret::SecretTables;
use crate::table::socket::COUNTERS;
use crate::table::sql::SqlTable;
use crate::table::store::Stores;
use crate::table::system::{SystemTable, Systems};
use crate::table::workload::WorkloadTable;
use crate::value::{InterimLook, Literal, Problem, Repeats, Scalar, Seed, SpareBlocks, Text, resolve_optional};
use plimsoll_model::exposed::ExposedSeries;
use plimsoll_model::factor::Level;
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::record::{Metric, Part};
use plimsoll_model::study::FloorRule;
use serde_json::{Value, json};
use std::ops::RangeInclusive;

table! {
    /// A performance study: one question, and the trials that answer it.
    struct StudyTable {
        /// What the study is about, in one line.
        title: Section<Literal<Text>>,
        /// The question that it answers.
        question: Section<Literal<Text>>,
        /// How variants share time: "trials" (one start of one variant, one load), "turns" (all variants alive on each start, short loads in turns: narrower intervals in the same time), or "side by side" (the same, each variant loaded at the same time as the baseline). Default: "turns" where variants can take turns, else "trials".
        design: Option<Section<Literal<DesignName>>>,
        /// The turns of a start.
        turns: Option<Section<TurnsTable>>,
        /// How often every comparison is repeated under each condition: blocks of trials, or starts with turns; where nothing is compared, the trials under each condition. Default: 5.
        repeats: Option<Section<Literal<Repeats>>>,
        /// Seed of everything random: the order of trials, arrivals, think times. Default: 1.
        seed: Option<Section<Literal<Seed>>>,
        /// Whether each block holds the baseline a second time, to measure by how much two runs of the same thing differ. Where they differ too much, only differences that lie wholly beyond that stand; with "strict", no verdict does. Default: true where variants are compared, but for a search for the capacity, a soak test and a control loop.
        noise_floor: Option<Section<Literal<NoiseFloor>>>,
        /// How many blocks may be run again because a trial in them did not count. Default: a quarter of them, at least 1.
        spare_blocks: Option<Section<Literal<SpareBlocks>>>,
        /// The repeats after which `run --until-decided` may end: 2 to 5 numbers, ascending; the last one is `repeats`.
        looks: Option<Section<Vec<Literal<InterimLook>>>>,
        /// What the study varies. Without a factor that is compared, it describes one system.
        factors: Option<Section<Factors>>,
        /// Where load may go, besides this machine.
        targets: Option<Section<TargetsTable>>,
        /// The generator of load and its own limits.
        generator: Option<Section<GeneratorTable>>,
        /// The processes that are started for each trial, by name.
        system: Option<Section<Systems>>,
        /// The databases of each trial, by name: started from data of their own, or running already.
        database: Option<Section<DatabaseTables>>,
        /// Where objects are kept, by name, for storage workloads.
        store: Option<Section<Stores>>,
        /// Texts that no bundle, report or message holds, by name: from the environment or from files.
        secret: Option<Section<SecretTables>>,
        /// What one virtual user does in an iteration.
        workload: Section<WorkloadTable>,
        /// How load is offered in a trial.
        load: Section<LoadTable>,
        /// The limits that must hold under a load, for a search for the capacity (`load.profile = "capacity"`), a stress test or a control loop.
        objective: Option<Section<ObjectiveTable>>,
        /// What decides the answer, or is shown first where nothing is compared.
        decide: Option<Section<DecideTable>>,
        /// What the report shows besides the answer.
        report: Option<Section<ReportTable>>,
        /// The same study in another size, by name: keys that take the place of the study's with `--profile NAME`.
        #[allow(dead_code)] // applied before the study is read
        profile: Option<Section<Profiles>>,
    }
}

const REPEATS: u32 = 5;

const HOW_TO_COMPARE: &str =
    "name levels to compare, as in `mode = { levels = [\"old\", \"new\"], compare = true, baseline = \"old\" }`";

/// The rule of a noise floor that the study only asks for: whoever measures ×36 over a floor of ×1.2 has measured it.
pub(crate) const FLOOR_RULE: FloorRule = FloorRule::Beyond;
const SEED: u64 = 1;

/// How many looks a study can have: each costs width of the intervals.
const LOOKS: RangeInclusive<usize> = 2..=5;
const LOOKS_HELP: &str = "write the repeats after which the run may end, as in `looks = [5, 7, 10]`";

/// The first look that keeps to the level of the intervals, which is made for larger samples.
const EARLY_LOOK: i64 = 5;

// Each section; `None` if it is wrong.
impl StudyTable {
    pub(crate) fn title(&self) -> Option<String> {
        self.title.valid().map(|title| title.value.0.clone())
    }

    pub(crate) fn question(&self) -> Option<String> {
        self.question.valid().map(|question| question.value.0.clone())
    }

    pub(crate) fn repeats(&self) -> Option<u32> {
        match &self.repeats {
            Some(repeats) => repeats.valid().map(|repeats| repeats.value.u32()),
            None => Some(self.looks()?.last().copied().unwrap_or(REPEATS)),
        }
    }

    /// The looks; none when the study has none.
    pub(crate) fn looks(&self) -> Option<Vec<u32>> {
        let Some(looks) = &self.looks else { return Some(Vec::new()) };
        Some(looks.valid()?.iter().map(|look| look.value.u32()).collect())
    }

    /// How the variants share time.
    pub(crate) fn design(&self, faults: &mut Faults) -> Option<DesignSpec> {
        let (load, workload) = (self.load.valid()?, self.workload.valid()?);
        let impossible = (!self.compares()).then_some(NOTHING_COMPARED).or_else(|| why_impossible(load, workload));
        // The loads of a search are longer than slices.
        let too_rare = why_too_rare(workload).filter(|_| !self.searches());
        let unwise = too_rare.or(why_unwise(workload, self.databases()?));
        let mut design = design(self.design.as_ref(), self.turns.as_ref(), (impossible, unwise), faults)?;
        // Nothing advises turns in which next to nothing happens.
        design.can_take_turns &= too_rare.is_none();
        Some(design)
    }

    /// True if variants are compared; otherwise the study describes one system.
    pub(crate) fn compares(&self) -> bool {
        self.factors().is_none_or(Factors::compare)
    }

    /// The rule of the noise floor; none within for a study without one.
    pub(crate) fn noise_floor(&self) -> Option<Option<FloorRule>> {
        // A second search of the baseline, a second soak or a second control loop would take as much time as that of a variant.
        let takes_long = self.searches() || self.load().is_some_and(|load| load.is_soak() || load.is_feedback());
        let default = Some((self.compares() && !takes_long).then_some(FLOOR_RULE));
        let floor = self.noise_floor.as_ref().map_or(default, |floor| floor.valid().map(|floor| floor.value.0))?;
        Some(floor.filter(|_| self.compares()))
    }

    /// True if the capacity is searched for.
    pub(crate) fn searches(&self) -> bool {
        self.load().is_some_and(|load| load.search_span().is_some())
    }

    /// How many blocks are spare, if the study says so.
    pub(crate) fn spare_blocks(&self) -> Option<Option<u32>> {
        resolve_optional(self.spare_blocks.as_ref(), |spare| spare.valid().map(|spare| spare.value.u32()))
    }

    pub(crate) fn seed(&self) -> Option<u64> {
        self.seed.as_ref().map_or(Some(SEED), |seed| seed.valid().map(|seed| seed.value.u64()))
    }

    pub(crate) fn targets(&self) -> Option<&TargetsTable> {
        self.targets.as_ref()?.valid()
    }

    pub(crate) fn generator(&self) -> Option<&GeneratorTable> {
        self.generator.as_ref()?.valid()
    }

    /// The factors; none when the study has none.
    pub(crate) fn factors(&self) -> Option<&Factors> {
        static NONE: Factors = Factors(Vec::new());
        self.factors.as_ref().map_or(Some(&NONE), Section::valid)
    }

    /// The systems; none when the study has none.
    pub(crate) fn systems(&self) -> Option<&Systems> {
        static NONE: Systems = NamedTables(Vec::new());
        self.system.as_ref().map_or(Some(&NONE), Section::valid)
    }

    /// The databases; none when the study has none.
    pub(crate) fn databases(&self) -> Option<&DatabaseTables> {
        static NONE: DatabaseTables = NamedTables(Vec::new());
        self.database.as_ref().map_or(Some(&NONE), Section::valid)
    }

    /// The stores; none when the study has none.
    pub(crate) fn stores(&self) -> Option<&Stores> {
        static NONE: Stores = NamedTables(Vec::new());
        self.store.as_ref().map_or(Some(&NONE), Section::valid)
    }

    /// The secrets; none when the study has none.
    pub(crate) fn secrets(&self) -> Option<&SecretTables> {
        static NONE: SecretTables = NamedTables(Vec::new());
        self.secret.as_ref().map_or(Some(&NONE), Section::valid)
    }

    pub(crate) fn workload(&self) -> Option<&WorkloadTable> {
        self.workload.valid()
    }

    pub(crate) fn load(&self) -> Option<&LoadTable> {
        self.load.valid()
    }

    pub(crate) fn objective(&self) -> Option<&ObjectiveTable> {
        self.objective.as_ref()?.valid()
    }

    pub(crate) fn decide(&self) -> Option<&DecideTable> {
        self.decide.as_ref()?.valid()
    }

    pub(crate) fn report(&self) -> Option<&ReportTable> {
        self.report.as_ref()?.valid()
    }
}

impl StudyTable {
    /// What one table says about another: measures that name steps and systems, and the axis.
    pub(crate) fn check_references(&self, faults: &mut Faults) {
        self.deciding().for_each(|measure| check_can_decide(measure, faults));
        self.measures().for_each(|measure| self.check_measure(measure, faults));
        if let Some(axis) = self.report().and_then(|report| report.axis.as_ref()) {
            self.check_axis(axis, faults);
        }
        self.check_names(faults);
        self.check_only(faults);
        self.check_systems(faults);
        self.check_repeats(faults);
        self.check_looks(faults);
        self.warn_of_what_takes_a_comparison(faults);
    }

    /// The measures that decide.
    fn deciding(&self) -> impl Iterator<Item = &Literal<Measure>> {
        let single = self.decide().and_then(|decide| decide.measure.as_ref());
        let several = self.decide().and_then(|decide| decide.measures.as_deref()).unwrap_or_default();
        single.into_iter().chain(several)
    }

    /// All measures that the study names.
    pub(crate) fn measures(&self) -> impl Iterator<Item = &Literal<Measure>> {
        let shown = self.report().and_then(|report| report.measures.as_deref()).unwrap_or_default();
        self.deciding().chain(shown).chain(self.objective().into_iter().flat_map(ObjectiveTable::measures))
    }

    fn check_measure(&self, measure: &Literal<Measure>, faults: &mut Faults) {
        if let Some((message, help)) = self.why_not_measured(&measure.value) {
            faults.add(Fault::error(&measure.span, message).help(help));
            return;
        }
        let (kind, name, known) = match &measure.value.series {
            Series::RequestDuration(Some(name))
            | Series::ResponseTime(Some(name))
            | Series::FirstByte(Some(name))
            | Series::PartDuration(_, Some(name)) => {
                // A script names its requests when it runs.
                let steps = self.workload().filter(|work| !work.is_script()).map(WorkloadTable::step_names);
                ("step", name, steps.map(|steps| steps.into_iter().map(|(name, _)| name).collect::<Vec<_>>()))
            }
            Series::Cpu(Some(name)) | Series::Memory(Some(name)) => {
                if self.systems().is_some_and(|systems| systems.is_service(name)) {
                    return;
                }
                let names = |(systems, databases): (&Systems, &DatabaseTables)| {
                    let systems = systems.names().into_iter().chain(systems.several());
                    systems.chain(databases.started()).map(str::to_owned).collect()
                };
                ("system", name, self.systems().zip(self.databases()).map(names))
            }
            Series::Exposed(name) => {
                self.check_exposed(name, &measure.span, faults);
                return;
            }
            _ => return,
        };
        let Some(known) = known.filter(|known| !known.contains(name)) else { return };
        faults.add(unknown(kind, name, known.iter().map(String::as_str), &measure.span));
    }

    /// The reason for which no study of this kind has a value of the measure, and what to measure or write instead.
    fn why_not_measured(&self, measure: &Measure) -> Option<(String, &'static str)> {
        let series = &measure.series;
        let of_work = |is: fn(&WorkloadTable) -> bool| self.workload().is_some_and(is);
        let of_load = |is: fn(&LoadTable) -> bool| self.load().is_some_and(is);
        Some(match series {
            Series::PartDuration(Part::Delivery, _) | Series::Deliveries | Series::LostDeliveries
                if of_work(|work| !work.looks_at_deliveries()) =>
            {
                (
                    format!("`{series}` is of deliveries, which this workload does not look at"),
                    "give its socket `deliveries` and the request that posts `delivers_to`",
                )
            }
            Series::PartDuration(Part::Open | Part::Data | Part::Sync | Part::Close | Part::Subrequest, _)
            | Series::Subrequests
                if of_work(|work| !work.is_storage()) =>
            {
                (format!("`{series}` is about storage, which this workload is not"), "measure `request_duration`")
            }
            Series::NewOrders if of_work(|work| !work.sql().is_some_and(SqlTable::is_tpcc)) => (
                "`new_orders` counts those of TPC-C, which this workload is not".to_owned(),
                "measure `iterations.rate`",
            ),
            Series::ElapsedTime if of_load(|load| !load.ends_after_iterations()) => (
                "`elapsed_time` is that of a number of iterations, and time ends the trials of this study".to_owned(),
                "write `iterations` or `iterations_per_user` in `[load]`, or `profile = \"once\"`",
            ),
            Series::Capacity if !self.searches() && !of_load(LoadTable::is_feedback) => (
                "the capacity is found by a search, which this study does not make".to_owned(),
                "write `profile = \"capacity\"` in `[load]`, with an `[objective]`",
            ),
            Series::Capacity if of_load(LoadTable::is_open) != (measure.statistic == Statistic::Rate) => (
                format!("`{measure}` is not what this search finds"),
                if of_load(LoadTable::is_open) { "write `capacity.rate`" } else { "write `capacity.count`" },
            ),
            Series::Custom(Metric::Counter, name)
                if COUNTERS.contains(&name.as_str()) && of_work(WorkloadTable::holds_sockets) =>
            {
                return None;
            }
            Series::Custom(Metric::Counter, name)
                if COUNTERS.contains(&name.as_str()) && of_work(WorkloadTable::can_hold_sockets) =>
            {
                (
                    format!("`{series}` is of sockets, and the users of this workload hold none"),
                    "say how they open one: `[workload.socket]`",
                )
            }
            Series::Checks(_) | Series::Custom(..) if of_work(|work| !work.is_script()) => (
                format!("`{series}` is of scripts, which this workload is not"),
                "measure `errors.ratio`, or `request_duration`",
            ),
            Series::FirstByte(_) if of_work(|work| work.sql().is_some()) => {
                ("of transactions, the time to the first byte is not known".to_owned(), "measure `request_duration`")
            }
            Series::ConnectDuration if of_work(|work| work.sql().is_some() || work.is_storage()) => (
                "`connect_duration` is not measured in workloads of SQL and of storage".to_owned(),
                "measure `request_duration`",
            ),
            Series::ResponseTime(_) if of_load(|load| !load.is_open()) => (
                "users that wait for each reply have no response time".to_owned(),
                "measure `request_duration`, or offer open load with `rate`",
            ),
            _ => return None,
        })
    }

    /// Checks that a system exposes the series that a measure is of.
    fn check_exposed(&self, name: &str, span: &Span, faults: &mut Faults) {
        let Some(systems) = self.systems() else { return };
        let series: Vec<ExposedSeries> = systems.valid().flat_map(SystemTable::series).collect();
        if series.is_empty() {
            let fault = Fault::error(span, "the study reads no metrics of its systems");
            faults.add(fault.help("say where they are in `[system.NAME.metrics]`"));
        } else if let Some(by) = series.iter().find(|one| one.name == name).and_then(|one| one.by.as_ref()) {
            let fault = Fault::error(span, format!("`{name}` is several series, one for each value of `{by}`"));
            faults.add(fault.help(format!("name one of them, as in `metric:{name}[VALUE].avg`")));
        } else if !series.iter().any(|one| one.is_named(name)) {
            faults.add(unknown("series", name, series.iter().map(|one| one.name.as_str()), span));
        }
    }

    /// Checks that a search for the capacity has what it needs, and nothing that it does not go with.
    pub(crate) fn check_search(&self, design: Option<&DesignSpec>, faults: &mut Faults) {
        let Some(load) = self.load() else { return };
        load.check_search(faults);
        let feedback = load.profile_span().filter(|_| load.is_feedback());
        let Some(search) = load.search_span().or(feedback) else {
            if let Some(objective) = self.objective() {
                let says = "an objective is for a search for the capacity, a stress test or a control loop";
                let help = "write `profile = \"capacity\"`, `\"stress\"` or `\"feedback\"` in `[load]`, or leave the table out";
                faults.add(Fault::error(objective.span(), says).help(help));
            }
            return;
        };
        let what = if load.is_feedback() { "a control loop" } else { load.search_in_words() };
        self.objective().into_iter().for_each(|objective| objective.check(faults));
        if self.objective.is_none() {
            let fault = Fault::error(search, format!("{what} needs an `[objective]`"));
            let example = "[objective]\nlimits = { \"request_duration.p95\" = \"200ms\" }";
            faults.add(fault.help(format!("say what must hold under the load:\n{example}")));
        }
        if let Some(span) = self.objective().and_then(ObjectiveTable::achieved_span).filter(|_| !load.is_open()) {
            let fault = Fault::error(span, "`achieved` has a meaning only in open load (`rate`)");
            faults.add(fault.help("users that wait for each reply offer no more than is achieved; leave it out"));
        }
        if self.workload().is_some_and(WorkloadTable::is_storage) {
            let fault = Fault::error(search, format!("{what} is not for a storage workload"));
            faults.add(fault.help("make the number of users a factor: `factors.users`"));
        }
        if load.is_feedback() && self.workload().is_some_and(|workload| workload.sql().is_some()) {
            let fault =
                Fault::error(search, "a control loop is not for transactions of a database: each user is a thread");
            faults.add(
                fault.help("search for the capacity (`profile = \"capacity\"`), or make the number of users a factor"),
            );
        }
        if let Some(look) = self.looks.as_ref().and_then(Section::valid).and_then(|looks| looks.first()) {
            let fault = Fault::error(&look.span, format!("{what} has no looks"));
            faults.add(fault.help("leave `looks` out"));
        }
        if let Some(design) = design.filter(|_| !load.is_feedback()) {
            design.check_search(faults);
            if let Some(turns) = self.turns.as_ref().and_then(Section::valid) {
                let fault = Fault::warning(&turns.place, format!("`[turns]` has no effect in {what}"));
                faults.add(fault.help("the loads are as long as `duration` says; leave the table out"));
            }
        }
    }

    fn check_axis(&self, axis: &Literal<Text>, faults: &mut Faults) {
        let Some(factors) = self.factors() else { return };
        let names = factors.names();
        if !names.contains(&axis.value.0.as_str()) {
            faults.add(unknown("factor", &axis.value.0, names, &axis.span));
        } else if factors.is_compared(&axis.value.0) {
            let fault = Fault::error(
                &axis.span,
                format!("`{}` is compared: its levels are the lines of a chart", axis.value.0),
            );
            faults.add(fault.help("name a factor that is not compared, or leave `axis` out"));
        }
    }

    fn check_only(&self, faults: &mut Faults) {
        let Some(factors) = self.factors() else { return };
        let systems = self.systems().into_iter().flat_map(|systems| &systems.0);
        let databases = self.databases().into_iter().flat_map(|databases| &databases.0);
        let of_systems = systems.filter_map(|(.., table)| table.as_ref()?.only.as_ref());
        for only in of_systems.chain(databases.filter_map(|(.., table)| table.as_ref()?.only())) {
            only.check(factors, faults);
        }
    }

    /// The ports of instances, and the names of files and series.
    fn check_systems(&self, faults: &mut Faults) {
        if let Some(systems) = self.systems() {
            systems.check_instances_and_files(faults);
        }
        let systems = self.systems().into_iter().flat_map(Systems::valid);
        systems.filter_map(|table| table.metrics.as_ref()).for_each(|metrics| metrics.check(faults));
    }

    /// Placeholders and files of output are told apart by the names of systems and databases.
    fn check_names(&self, faults: &mut Faults) {
        let (Some(systems), Some(databases)) = (self.systems(), self.databases()) else { return };
        let taken = systems.names();
        for (name, place, _) in databases.0.iter().filter(|(name, ..)| taken.contains(&name.as_str())) {
            let fault = Fault::error(place, format!("both a system and a database are named `{name}`"));
            faults.add(fault.help("give one of them another name"));
        }
    }

    fn check_repeats(&self, faults: &mut Faults) {
        // In a soak test of one system the interval comes from the load itself.
        let by_the_load = !self.compares() && self.load().is_some_and(LoadTable::is_soak);
        let repeats = self.repeats.as_ref().and_then(Section::valid).filter(|_| !by_the_load);
        if let Some(repeats) = repeats.filter(|repeats| repeats.value.0 < 3) {
            let (what, help) = match self.compares() {
                true => ("a verdict", "5 are usual, 10 find small differences, and `--for` chooses how many"),
                false => ("an interval", "5 are usual, 10 give narrower intervals, and `--for` chooses how many"),
            };
            let fault = Fault::warning(&repeats.span, format!("fewer than 3 repeats cannot give {what}"));
            faults.add(fault.help(help));
        }
    }

    /// A study that describes one system reaches no verdict, so neither looks nor a noise floor are of use to it.
    fn warn_of_what_takes_a_comparison(&self, faults: &mut Faults) {
        if self.compares() {
            return;
        }
        let floor = self.noise_floor.as_ref().and_then(Section::valid).filter(|floor| floor.value.0.is_some());
        let looks = self.looks.as_ref().and_then(Section::valid).and_then(|looks| looks.first());
        for (key, span) in [("noise_floor", floor.map(|floor| &floor.span)), ("looks", looks.map(|look| &look.span))] {
            let Some(span) = span else { continue };
            let fault = Fault::warning(span, format!("`{key}` has no effect: the study compares nothing"));
            faults.add(fault.help(format!("leave it out, or {HOW_TO_COMPARE}")));
        }
    }

    /// Looks are declared before anything runs, so that the level of the intervals can allow for
    /// them (Pocock, 1977).
    fn check_looks(&self, faults: &mut Faults) {
        let Some(looks) = self.looks.as_ref().and_then(Section::valid) else { return };
        let (Some(first), Some(last)) = (looks.first(), looks.last()) else {
            faults.add(Fault::error(&self.place, "`looks` is empty").help(LOOKS_HELP));
            return;
        };
        if !LOOKS.contains(&looks.len()) {
            let entries = if looks.len() == 1 { "1 entry" } else { &format!("{} entries", looks.len()) };
            let message = format!("`looks` has {entries}; it takes {} to {}", LOOKS.start(), LOOKS.end());
            faults.add(Fault::error(&first.span, message).help(LOOKS_HELP));
        }
        if let Some(pair) = looks.windows(2).find(|pair| pair[0].value.0 >= pair[1].value.0) {
            let fault = Fault::error(&pair[1].span, "`looks` must ascend");
            faults.add(fault.label("not above the one before it").help(LOOKS_HELP));
        }
        let repeats = self.repeats.as_ref().and_then(Section::valid);
        if let Some(repeats) = repeats.filter(|repeats| repeats.value.0 != last.value.0) {
            let message = format!("the last of `looks` is {}, but `repeats` is {}", last.value.0, repeats.value.0);
            faults.add(Fault::error(&last.span, message).help("leave `repeats` out, or end with it"));
        }
        if first.value.0 < EARLY_LOOK {
            let fault = Fault::warning(&first.span, format!("a look after {} repeats is early", first.value.0));
            faults.add(fault.help(format!(
                "intervals of so few trials leave room for a few more false verdicts than the level allows; \
                 look after {EARLY_LOOK} repeats first"
            )));
        }
    }
}

/// Whether a study has a noise floor, and by which rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoiseFloor(pub(crate) Option<FloorRule>);

impl Scalar for NoiseFloor {
    const EXPECTED: &'static str = "true, false, \"beyond\" or \"strict\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text) if text == "beyond" => return Ok(NoiseFloor(Some(FloorRule::Beyond))),
            Level::Text(text) if text == "strict" => return Ok(NoiseFloor(Some(FloorRule::Strict))),
            _ => {}
        }
        let wrong = || Problem::wrong::<Self>(level).maybe_help(did_you_mean(&level.to_string(), ["beyond", "strict"]));
        let measured = bool::from_level(level).map_err(|_| wrong())?;
        Ok(NoiseFloor(measured.then_some(FLOOR_RULE)))
    }

    fn schema() -> Value {
        json!({ "enum": [true, false, "beyond", "strict"] })
    }
}

/// Refuses that quantiles of buckets decide: two that lie in the same bucket look equal, whatever they are.
fn check_can_decide(measure: &Literal<Measure>, faults: &mut Faults) {
    if let (Series::Exposed(name), Statistic::Percentile(_)) = (&measure.value.series, measure.value.statistic) {
        let message =
            format!("`{}` is known up to a bucket of the system's histogram, and cannot decide", measure.value);
        let help =
            format!("decide by `metric:{name}.avg`, which is exact, and name this one in `measures` of `[report]`");
        faults.add(Fault::error(&measure.span, message).help(help));
    }
}
