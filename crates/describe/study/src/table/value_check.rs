//! Checks that users know a value where a step of a flow uses it.
//!
//! A value is known from the step that captures it to the end of the iteration; before the first step
//! users know what is drawn, fed, built in, captured by `on_start`, and kept. Where it depends on a branch,
//! or on an earlier iteration, whether a step has been made, that is a warning; a value that nothing gives,
//! or nothing before the step, is an error.

use crate::document::{Fault, Faults, Node, Span, all_of, nearest};
use crate::table::capture::CaptureTable;
use crate::table::condition::Conditions;
use crate::table::http::{HttpStepTable, HttpTable, value_uses};
use crate::table::socket::{SocketStepTable, SocketTable, SocketWord};
use crate::table::step::{EachTable, StepTable, walk};
use crate::value::{BUILT_IN, Entries, Template, ValueUse};
use std::collections::BTreeSet;
use toml::de::DeValue;

/// All uses of values in a workload.
pub(crate) fn uses(table: &HttpTable) -> Vec<ValueUse> {
    let mut uses = of_all_requests(table);
    for steps in table.blocks() {
        walk(steps, &mut |step| match step {
            StepTable::Request(request) => {
                uses.extend(request.uses());
                uses.extend(request.when.iter().flat_map(named_in));
            }
            StepTable::Message(message) => uses.extend(message.uses()),
            StepTable::When(table) => uses.extend(named_in(&table.when)),
            StepTable::While(table) => uses.extend(named_in(&table.r#while)),
            StepTable::Pause(_)
            | StepTable::Socket(_)
            | StepTable::Choose(_)
            | StepTable::Repeat(_)
            | StepTable::Each(_) => {}
        });
    }
    uses
}

fn named_in(conditions: &Conditions) -> Vec<ValueUse> {
    [conditions.subjects(), conditions.uses()].concat()
}

/// What the workload says of all requests.
fn of_all_requests(table: &HttpTable) -> Vec<ValueUse> {
    let auth = table.auth.iter().flat_map(super::auth::AuthValue::uses);
    let socket = table.socket.iter().flat_map(SocketTable::uses);
    table.headers.iter().flat_map(value_uses).chain(auth).chain(socket).collect()
}

/// Faults for values that nothing gives, and warnings for those that may not be known.
pub(crate) fn check(table: &HttpTable, faults: &mut Faults) {
    let sources = ValueSources::of(table);
    let mut check = ValueCheck { table, sources: &sources, faults };
    let mut known =
        KnownValues { definite: sources.before_first_step.clone(), possible: sources.before_first_step.clone() };
    check.steps(table.on_start.as_deref().unwrap_or_default(), &mut known);
    // What an earlier iteration has kept may be there, and may not: it was another action.
    known.possible.extend(sources.kept.iter().cloned());
    let mut at_the_end = known.clone();
    for kind in table.kinds() {
        check.steps(kind.steps, &mut known.clone());
        at_the_end.possible.extend(captured_in(kind.steps));
    }
    check.steps(table.on_stop.as_deref().unwrap_or_default(), &mut at_the_end);
    // A name that is mistyped elsewhere is told there.
    if !faults.has_errors() {
        warn_of_unused(table, faults);
    }
}

/// Warns of values that are drawn, and of feeds that are read, for no step.
fn warn_of_unused(table: &HttpTable, faults: &mut Faults) {
    let mut used: BTreeSet<String> = uses(table).into_iter().map(|one| one.value.name).collect();
    used.extend(table.socket.iter().filter_map(SocketTable::listens_to).map(|(name, _)| name.to_owned()));
    // What repeats or chooses by a value names it in its own way.
    let is_written = |name: &str, faults: &Faults| faults.source().text().contains(&format!("${name}"));
    for (name, span) in table.draw.iter().flat_map(Entries::names) {
        if !used.contains(name) && !is_written(name, faults) {
            let fault = Fault::warning(span, format!("value `{name}` is used nowhere"));
            faults.add(fault.help(format!("use it as `{{${name}}}`, or leave it out")));
        }
    }
    for (name, span) in table.feeds.iter().flat_map(Entries::names) {
        let of_feed = format!("{name}.");
        if !used.iter().any(|one| one.starts_with(&of_feed)) && !is_written(&of_feed, faults) {
            let fault = Fault::warning(span, format!("feed `{name}` is used nowhere"));
            faults.add(fault.help(format!("use its columns, as in `{{${name}.COLUMN}}`, or leave it out")));
        }
    }
}

/// What steps capture, and the items of their loops.
fn captured_in(steps: &[StepTable]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    walk(steps, &mut |step| match step {
        StepTable::Request(request) => names.extend(captured_by(request.capture.as_ref())),
        StepTable::Message(message) => names.extend(captured_by(message.capture.as_ref())),
        StepTable::Each(each) => drop(names.insert(each.r#as.value.0.clone())),
        _ => {}
    });
    names
}

fn captured_by(capture: Option<&Entries<CaptureTable>>) -> impl Iterator<Item = String> {
    capture.into_iter().flat_map(Entries::names).map(|(name, _)| name.to_owned())
}

/// The faults for values that nothing in the document gives, for a workload that cannot be read as a whole: so
/// that what else is wrong does not hide them.
pub(crate) fn check_document(workload: &Node<'_>, faults: &mut Faults) {
    let (sources, uses) = DocumentValues::read(workload, faults);
    for one in uses {
        let place = one.place(faults);
        sources.fault_of(&one.value.name, &place).into_iter().for_each(|fault| faults.add(fault));
    }
}

/// Returns true if something in the document of a workload gives a value of this name.
pub(crate) fn is_defined(name: &str, workload: &Node<'_>, faults: &mut Faults) -> bool {
    DocumentValues::read(workload, faults).0.fault_of(name, &workload.span).is_none()
}

/// The values that a document gives and uses, found without reading its tables.
#[derive(Default)]
struct DocumentValues {
    anywhere: BTreeSet<String>,
    feeds: BTreeSet<String>,
    uses: Vec<ValueUse>,
}

impl DocumentValues {
    /// Finds the values that are given below this node, and those that are used.
    fn read(workload: &Node<'_>, faults: &mut Faults) -> (ValueSources, Vec<ValueUse>) {
        let mut found = DocumentValues { anywhere: BUILT_IN.map(str::to_owned).into(), ..DocumentValues::default() };
        found.collect(workload, "", faults);
        (ValueSources { anywhere: found.anywhere, feeds: found.feeds, ..ValueSources::default() }, found.uses)
    }

    /// Collects what stands below `key`.
    fn collect(&mut self, node: &Node<'_>, key: &str, faults: &mut Faults) {
        match node.value {
            DeValue::Array(_) => {
                node.items(faults).into_iter().flatten().for_each(|item| self.collect(&item, key, faults));
            }
            DeValue::Table(_) => {
                for (name, entry) in node.table(faults).iter().flat_map(crate::document::TableNode::entries) {
                    match key {
                        "capture" | "draw" => drop(self.anywhere.insert((*name).to_owned())),
                        "feeds" => drop(self.feeds.insert((*name).to_owned())),
                        _ => {}
                    }
                    self.collect(entry, name, faults);
                }
            }
            DeValue::String(text) => {
                if key == "as" {
                    self.anywhere.insert(text.to_string());
                }
                self.uses
                    .extend(Template::parse(text).iter().flat_map(|template| ValueUse::all_in(template, &node.span)));
            }
            _ => {}
        }
    }
}

/// The names of the values that a workload gives, by how it gives them.
#[derive(Default)]
struct ValueSources {
    /// Known before the first step.
    before_first_step: BTreeSet<String>,
    /// Known at some place.
    anywhere: BTreeSet<String>,
    /// Values that outlive an iteration because a capture says so.
    kept: BTreeSet<String>,
    /// Values that are, or may be, lists.
    lists: BTreeSet<String>,
    feeds: BTreeSet<String>,
}

impl ValueSources {
    fn of(table: &HttpTable) -> ValueSources {
        let drawn = table.draw.iter().flat_map(Entries::names).map(|(name, _)| name.to_owned());
        let before_first_step: BTreeSet<String> = BUILT_IN.map(str::to_owned).into_iter().chain(drawn).collect();
        let feeds = table.feeds.iter().flat_map(Entries::names).map(|(name, _)| name.to_owned()).collect();
        let mut sources =
            ValueSources { anywhere: before_first_step.clone(), before_first_step, feeds, ..ValueSources::default() };
        for steps in table.blocks() {
            walk(steps, &mut |step| match step {
                StepTable::Request(request) => sources.captures(request.capture.as_ref()),
                StepTable::Message(message) => sources.captures(message.capture.as_ref()),
                StepTable::Each(each) => {
                    sources.anywhere.insert(each.r#as.value.0.clone());
                    // An item of JSON may be an array itself.
                    sources.lists.insert(each.r#as.value.0.clone());
                }
                _ => {}
            });
        }
        sources
    }

    fn captures(&mut self, captures: Option<&Entries<CaptureTable>>) {
        captures.into_iter().flat_map(Entries::iter).for_each(|(name, capture)| self.capture(name, capture));
    }

    fn capture(&mut self, name: &str, capture: &CaptureTable) {
        self.anywhere.insert(name.to_owned());
        if capture.is_kept() {
            self.kept.insert(name.to_owned());
        }
        if capture.may_be_list() {
            self.lists.insert(name.to_owned());
        }
    }
}

impl ValueSources {
    /// The fault for a name to which nothing gives a value; none if something does.
    fn fault_of(&self, name: &str, place: &Span) -> Option<Fault> {
        match name.split_once('.') {
            Some((feed, _)) => (!self.feeds.contains(feed)).then(|| self.no_feed(feed, place)),
            None => (!self.anywhere.contains(name)).then(|| self.nothing_gives(name, place)),
        }
    }

    fn no_feed(&self, feed: &str, place: &Span) -> Fault {
        let near = nearest(feed, self.feeds.iter().map(String::as_str));
        let help = near.map_or_else(
            || format!("give the workload one: `[workload.feeds.{feed}]` with `file = \"{feed}.csv\"`"),
            |near| format!("did you mean `{near}`?"),
        );
        Fault::error(place, format!("no feed is named `{feed}`")).label("nothing fills this value").help(help)
    }

    fn nothing_gives(&self, name: &str, place: &Span) -> Fault {
        let help = match self.near(name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("values here are {}", all_of(self.anywhere.iter().map(String::as_str))),
        };
        Fault::error(place, format!("nothing gives a value named `{name}`"))
            .label("nothing fills this value")
            .help(help)
    }

    fn near(&self, name: &str) -> Option<&str> {
        nearest(name, self.anywhere.iter().map(String::as_str))
    }
}

/// The values without which conditions do not hold: only two tests pass without one.
fn values_needed(conditions: &Conditions) -> impl Iterator<Item = ValueUse> {
    let passes_without = |test: &str| test == "absent" || test.starts_with("!=");
    let tests = conditions.iter().map(move |(_, test)| passes_without(test.as_written().trim()));
    conditions.subjects().into_iter().zip(tests).filter(|(_, passes)| !passes).map(|(subject, _)| subject)
}

/// Goes through the steps in the order in which a user makes them.
struct ValueCheck<'a> {
    table: &'a HttpTable,
    sources: &'a ValueSources,
    faults: &'a mut Faults,
}

/// The values that users know at a step.
#[derive(Clone)]
struct KnownValues {
    /// Known whichever branches were taken before.
    definite: BTreeSet<String>,
    /// Known if certain steps were made before; includes all of `definite`.
    possible: BTreeSet<String>,
}

impl KnownValues {
    fn add(&mut self, name: String) {
        self.possible.insert(name.clone());
        self.definite.insert(name);
    }

    /// What is known inside a loop over `steps`: an earlier round may have captured something.
    fn inside_loop_of(&self, steps: &[StepTable]) -> KnownValues {
        KnownValues { definite: self.definite.clone(), possible: &self.possible | &captured_in(steps) }
    }

    /// What is known after one of two branches, whichever it was.
    fn after_either(&self, other: &KnownValues) -> KnownValues {
        KnownValues { definite: &self.definite & &other.definite, possible: &self.possible | &other.possible }
    }

    /// What is known where `conditions` hold.
    fn where_true(&self, conditions: &Conditions) -> KnownValues {
        let mut known = self.clone();
        values_needed(conditions).for_each(|one| known.add(one.value.name));
        known
    }

    /// The fault for a value that something gives, but that is not definitely known at `place`.
    fn fault_if_indefinite(&self, name: &str, place: &Span) -> Fault {
        if self.possible.contains(name) {
            return Fault::warning(place, format!("`{name}` may not be known here"))
                .label("a step without its value fails")
                .help("capture it before on every way to this step, draw it, or ask first: `when = { NAME = \"exists\" }`");
        }
        Fault::error(place, format!("`{name}` is not known here")).label("no step before this one gives it").help(
            "what an iteration captures ends with it: capture it in an earlier step, or in `on_start`, or with \
                 `keep = true` where a later iteration is to know it",
        )
    }
}

impl ValueCheck<'_> {
    fn steps(&mut self, steps: &[StepTable], known: &mut KnownValues) {
        for step in steps {
            match step {
                StepTable::Request(request) => self.request(request, known),
                StepTable::Pause(_) => {}
                StepTable::Socket(step) => self.socket(step, known),
                StepTable::Message(message) => {
                    self.uses(message.uses(), known);
                    captured_by(message.capture.as_ref()).for_each(|name| known.add(name));
                }
                StepTable::When(table) => {
                    self.conditions(&table.when, known);
                    let (mut then, mut otherwise) = (known.where_true(&table.when), known.clone());
                    self.steps(&table.steps, &mut then);
                    self.steps(table.otherwise.as_deref().unwrap_or_default(), &mut otherwise);
                    *known = then.after_either(&otherwise);
                }
                StepTable::Choose(table) => {
                    let ways = table.choose.iter().map(|choice| {
                        let mut inside = known.clone();
                        self.steps(&choice.steps, &mut inside);
                        inside
                    });
                    *known = ways.reduce(|one, other| one.after_either(&other)).unwrap_or_else(|| known.clone());
                }
                StepTable::Repeat(table) => {
                    *known = known.inside_loop_of(&table.steps);
                    self.steps(&table.steps, known);
                }
                StepTable::Each(table) => {
                    *known = known.inside_loop_of(std::slice::from_ref(step));
                    self.each(table, known);
                }
                StepTable::While(table) => {
                    self.first_round(&table.r#while, known);
                    *known = known.inside_loop_of(&table.steps);
                    self.conditions(&table.r#while, known);
                    self.steps(&table.steps, &mut known.where_true(&table.r#while));
                }
            }
        }
    }

    fn request(&mut self, request: &HttpStepTable, known: &mut KnownValues) {
        let mut inside = known.clone();
        if let Some(when) = &request.when {
            self.conditions(when, known);
            inside = known.where_true(when);
        }
        self.uses(request.uses(), &inside);
        self.uses(self.inherited(request), &inside);
        // Without a reply nothing is captured; a capture that fails ends the iteration.
        if request.when.is_none() {
            known.definite.extend(captured_by(request.capture.as_ref()));
        }
        known.possible.extend(captured_by(request.capture.as_ref()));
    }

    /// The values that opening the socket takes, and what the user listens to then.
    fn socket(&mut self, step: &SocketStepTable, known: &KnownValues) {
        let Some(socket) = self.table.socket.as_ref().filter(|_| step.socket.value == SocketWord::Open) else { return };
        let of_all = self.table.headers.iter().flat_map(value_uses);
        let auth = self.table.auth.iter().filter(|_| socket.auth.is_none()).flat_map(super::auth::AuthValue::uses);
        self.uses(socket.uses().into_iter().chain(of_all).chain(auth).collect(), known);
        if let Some((name, place)) = socket.listens_to().filter(|(name, _)| !known.definite.contains(*name)) {
            let fault = self.sources.fault_of(name, place).unwrap_or_else(|| known.fault_if_indefinite(name, place));
            self.faults.add(fault);
        }
    }

    /// The values that a request needs for what the workload says of all of them.
    fn inherited(&self, request: &HttpStepTable) -> Vec<ValueUse> {
        let is_own = |name: &str| {
            request.headers.iter().flat_map(Entries::names).any(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        let headers = self.table.headers.iter().flat_map(Entries::iter);
        let headers = headers.filter(|(name, _)| !is_own(name)).flat_map(|(_, text)| text.uses());
        let auth = self.table.auth.iter().filter(|_| request.auth.is_none()).flat_map(super::auth::AuthValue::uses);
        headers.chain(auth).collect()
    }

    fn each(&mut self, table: &EachTable, known: &KnownValues) {
        let list = &table.each;
        if !self.sources.anywhere.contains(&list.value.0) {
            let fault = Fault::error(&list.span, format!("nothing gives a value named `{}`", list.value.0));
            let help = format!(
                "capture it before, as in `capture = {{ {} = {{ json = \"$.ids[*]\", pick = \"all\" }} }}`",
                list.value.0
            );
            self.faults.add(match self.sources.near(&list.value.0) {
                Some(near) => fault.help(format!("did you mean `{near}`?")),
                None => fault.help(help),
            });
        } else if !self.sources.lists.contains(&list.value.0) {
            let fault = Fault::error(&list.span, format!("`{}` is no list", list.value.0));
            self.faults.add(fault.help("capture it with `pick = \"all\"`"));
        } else if !known.definite.contains(&list.value.0) {
            self.faults.add(known.fault_if_indefinite(&list.value.0, &list.span));
        }
        let mut inside = known.clone();
        inside.add(table.r#as.value.0.clone());
        self.steps(&table.steps, &mut inside);
    }

    /// A condition may well ask for a value that is not known, if anything before it can give it.
    fn conditions(&mut self, conditions: &Conditions, known: &KnownValues) {
        self.uses(
            conditions.subjects(),
            &KnownValues { definite: known.possible.clone(), possible: known.possible.clone() },
        );
        self.uses(conditions.uses(), known);
    }

    /// Before the first round of a loop nothing is known that only its steps capture.
    fn first_round(&mut self, conditions: &Conditions, known: &KnownValues) {
        let possible = || known.possible.clone();
        self.uses(values_needed(conditions).collect(), &KnownValues { definite: possible(), possible: possible() });
    }

    fn uses(&mut self, uses: Vec<ValueUse>, known: &KnownValues) {
        for one in uses {
            let name = &one.value.name;
            if known.definite.contains(name) {
                continue;
            }
            let place = one.place(self.faults);
            let possible = || (!name.contains('.')).then(|| known.fault_if_indefinite(name, &place));
            let fault = self.sources.fault_of(name, &place).or_else(possible);
            fault.into_iter().for_each(|fault| self.faults.add(fault));
        }
    }
}
