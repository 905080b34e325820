//! Whether users know a value where a step of a flow uses it.
//!
//! A value is known from the step that captures it to the end of the iteration; before the first step
//! users know what is drawn, fed, built in, captured by `on_start`, and kept. Where it depends on a branch,
//! or on an earlier iteration, whether a step has been made, that is a warning; a value that nothing gives,
//! or nothing before the step, is an error.

use crate::document::{Fault, Faults, Node, Span, all_of, nearest};
use crate::table::capture::CaptureTable;
use crate::table::condition::Conditions;
use crate::table::http::{HttpStepTable, HttpTable, uses_of};
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
            StepTable::When(table) => uses.extend(named_in(&table.when)),
            StepTable::While(table) => uses.extend(named_in(&table.r#while)),
            StepTable::Pause(_) | StepTable::Repeat(_) | StepTable::Each(_) => {}
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
    table.headers.iter().flat_map(uses_of).chain(auth).collect()
}

/// Faults for values that nothing gives, and warnings for those that may not be known.
pub(crate) fn check(table: &HttpTable, faults: &mut Faults) {
    let given = Given::of(table);
    let mut check = Check { table, given: &given, faults };
    let mut known = Known { surely: given.always.clone(), perhaps: given.always.clone() };
    check.steps(table.on_start.as_deref().unwrap_or_default(), &mut known);
    // What an earlier iteration has kept may be there, and may not: it was another action.
    known.perhaps.extend(given.kept.iter().cloned());
    let mut at_the_end = known.clone();
    for kind in table.kinds() {
        check.steps(kind.steps, &mut known.clone());
        at_the_end.perhaps.extend(captured_in(kind.steps));
    }
    check.steps(table.on_stop.as_deref().unwrap_or_default(), &mut at_the_end);
}

/// What steps capture, and the items of their loops.
fn captured_in(steps: &[StepTable]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    walk(steps, &mut |step| match step {
        StepTable::Request(request) => names.extend(captured_by(request)),
        StepTable::Each(each) => drop(names.insert(each.r#as.value.0.clone())),
        _ => {}
    });
    names
}

fn captured_by(request: &HttpStepTable) -> impl Iterator<Item = String> {
    request.capture.iter().flat_map(Entries::names).map(|(name, _)| name.to_owned())
}

/// The faults for values that nothing in the document gives, for a workload that cannot be read as a whole: so
/// that what else is wrong does not hide them.
pub(crate) fn check_document(workload: &Node<'_>, faults: &mut Faults) {
    let (given, uses) = Document::read(workload, faults);
    for one in uses {
        let place = one.place(faults);
        given.fault_of(&one.value.name, &place).into_iter().for_each(|fault| faults.add(fault));
    }
}

/// Whether users of a workload know a value of this name somewhere, as far as its document says.
pub(crate) fn is_given(name: &str, workload: &Node<'_>, faults: &mut Faults) -> bool {
    Document::read(workload, faults).0.fault_of(name, &workload.span).is_none()
}

/// What a document says of values, whatever else it says.
#[derive(Default)]
struct Document {
    somewhere: BTreeSet<String>,
    feeds: BTreeSet<String>,
    uses: Vec<ValueUse>,
}

impl Document {
    /// What gives values below this node, and the uses of values.
    fn read(workload: &Node<'_>, faults: &mut Faults) -> (Given, Vec<ValueUse>) {
        let mut found = Document { somewhere: BUILT_IN.map(str::to_owned).into(), ..Document::default() };
        found.look_at(workload, "", faults);
        (Given { somewhere: found.somewhere, feeds: found.feeds, ..Given::default() }, found.uses)
    }

    /// Looks at what stands below `key`.
    fn look_at(&mut self, node: &Node<'_>, key: &str, faults: &mut Faults) {
        match node.value {
            DeValue::Array(_) => {
                node.items(faults).into_iter().flatten().for_each(|item| self.look_at(&item, key, faults));
            }
            DeValue::Table(_) => {
                for (name, entry) in node.table(faults).iter().flat_map(crate::document::TableNode::entries) {
                    match key {
                        "capture" | "draw" => drop(self.somewhere.insert((*name).to_owned())),
                        "feeds" => drop(self.feeds.insert((*name).to_owned())),
                        _ => {}
                    }
                    self.look_at(entry, name, faults);
                }
            }
            DeValue::String(text) => {
                if key == "as" {
                    self.somewhere.insert(text.to_string());
                }
                self.uses
                    .extend(Template::parse(text).iter().flat_map(|template| ValueUse::all_in(template, &node.span)));
            }
            _ => {}
        }
    }
}

/// What gives values.
#[derive(Default)]
struct Given {
    /// Known before the first step.
    always: BTreeSet<String>,
    /// Known at some place.
    somewhere: BTreeSet<String>,
    /// Values that outlive an iteration because a capture says so.
    kept: BTreeSet<String>,
    /// Values that are, or may be, lists.
    lists: BTreeSet<String>,
    feeds: BTreeSet<String>,
}

impl Given {
    fn of(table: &HttpTable) -> Given {
        let drawn = table.draw.iter().flat_map(Entries::names).map(|(name, _)| name.to_owned());
        let always: BTreeSet<String> = BUILT_IN.map(str::to_owned).into_iter().chain(drawn).collect();
        let feeds = table.feeds.iter().flat_map(Entries::names).map(|(name, _)| name.to_owned()).collect();
        let mut given = Given { somewhere: always.clone(), always, feeds, ..Given::default() };
        for steps in table.blocks() {
            walk(steps, &mut |step| match step {
                StepTable::Request(request) => {
                    for (name, capture) in request.capture.iter().flat_map(Entries::iter) {
                        given.capture(name, capture);
                    }
                }
                StepTable::Each(each) => {
                    given.somewhere.insert(each.r#as.value.0.clone());
                    // An item of JSON may be an array itself.
                    given.lists.insert(each.r#as.value.0.clone());
                }
                _ => {}
            });
        }
        given
    }

    fn capture(&mut self, name: &str, capture: &CaptureTable) {
        self.somewhere.insert(name.to_owned());
        if capture.is_kept() {
            self.kept.insert(name.to_owned());
        }
        if capture.may_be_list() {
            self.lists.insert(name.to_owned());
        }
    }
}

impl Given {
    /// Why nobody ever knows a value of this name, if so.
    fn fault_of(&self, name: &str, place: &Span) -> Option<Fault> {
        match name.split_once('.') {
            Some((feed, _)) => (!self.feeds.contains(feed)).then(|| self.no_feed(feed, place)),
            None => (!self.somewhere.contains(name)).then(|| self.nothing_gives(name, place)),
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
            None => format!("values here are {}", all_of(self.somewhere.iter().map(String::as_str))),
        };
        Fault::error(place, format!("nothing gives a value named `{name}`"))
            .label("nothing fills this value")
            .help(help)
    }

    fn near(&self, name: &str) -> Option<&str> {
        nearest(name, self.somewhere.iter().map(String::as_str))
    }
}

/// The values without which conditions do not hold: only two tests pass without one.
fn needed(conditions: &Conditions) -> impl Iterator<Item = ValueUse> {
    let passes_without = |test: &str| test == "absent" || test.starts_with("!=");
    let tests = conditions.iter().map(move |(_, test)| passes_without(test.as_written().trim()));
    conditions.subjects().into_iter().zip(tests).filter(|(_, passes)| !passes).map(|(subject, _)| subject)
}

/// Goes through the steps as a user does.
struct Check<'a> {
    table: &'a HttpTable,
    given: &'a Given,
    faults: &'a mut Faults,
}

/// What users know at a place.
#[derive(Clone)]
struct Known {
    /// Whatever has happened before.
    surely: BTreeSet<String>,
    /// Where certain steps have been made before; all of `surely` too.
    perhaps: BTreeSet<String>,
}

impl Known {
    fn add(&mut self, name: String) {
        self.perhaps.insert(name.clone());
        self.surely.insert(name);
    }

    /// The same inside of a loop, where an earlier round may have captured something.
    fn in_rounds_of(&self, steps: &[StepTable]) -> Known {
        Known { surely: self.surely.clone(), perhaps: &self.perhaps | &captured_in(steps) }
    }

    /// The same where conditions hold.
    fn where_holds(&self, conditions: &Conditions) -> Known {
        let mut known = self.clone();
        needed(conditions).for_each(|one| known.add(one.value.name));
        known
    }

    /// The fault for a value that is given somewhere, but not surely known at `place`.
    fn doubt(&self, name: &str, place: &Span) -> Fault {
        if self.perhaps.contains(name) {
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

impl Check<'_> {
    fn steps(&mut self, steps: &[StepTable], known: &mut Known) {
        for step in steps {
            match step {
                StepTable::Request(request) => self.request(request, known),
                StepTable::Pause(_) => {}
                StepTable::When(table) => {
                    self.conditions(&table.when, known);
                    let (mut then, mut otherwise) = (known.where_holds(&table.when), known.clone());
                    self.steps(&table.steps, &mut then);
                    self.steps(table.otherwise.as_deref().unwrap_or_default(), &mut otherwise);
                    known.surely = &then.surely & &otherwise.surely;
                    known.perhaps = &then.perhaps | &otherwise.perhaps;
                }
                StepTable::Repeat(table) => {
                    *known = known.in_rounds_of(&table.steps);
                    self.steps(&table.steps, known);
                }
                StepTable::Each(table) => {
                    *known = known.in_rounds_of(std::slice::from_ref(step));
                    self.each(table, known);
                }
                StepTable::While(table) => {
                    self.first_round(&table.r#while, known);
                    *known = known.in_rounds_of(&table.steps);
                    self.conditions(&table.r#while, known);
                    self.steps(&table.steps, &mut known.where_holds(&table.r#while));
                }
            }
        }
    }

    fn request(&mut self, request: &HttpStepTable, known: &mut Known) {
        let mut inside = known.clone();
        if let Some(when) = &request.when {
            self.conditions(when, known);
            inside = known.where_holds(when);
        }
        self.uses(request.uses(), &inside);
        self.uses(self.inherited(request), &inside);
        // Without a reply nothing is captured; a capture that fails ends the iteration.
        if request.when.is_none() {
            known.surely.extend(captured_by(request));
        }
        known.perhaps.extend(captured_by(request));
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

    fn each(&mut self, table: &EachTable, known: &Known) {
        let list = &table.each;
        if !self.given.somewhere.contains(&list.value.0) {
            let fault = Fault::error(&list.span, format!("nothing gives a value named `{}`", list.value.0));
            let help = format!(
                "capture it before, as in `capture = {{ {} = {{ json = \"$.ids[*]\", pick = \"all\" }} }}`",
                list.value.0
            );
            self.faults.add(match self.given.near(&list.value.0) {
                Some(near) => fault.help(format!("did you mean `{near}`?")),
                None => fault.help(help),
            });
        } else if !self.given.lists.contains(&list.value.0) {
            let fault = Fault::error(&list.span, format!("`{}` is no list", list.value.0));
            self.faults.add(fault.help("capture it with `pick = \"all\"`"));
        } else if !known.surely.contains(&list.value.0) {
            self.faults.add(known.doubt(&list.value.0, &list.span));
        }
        let mut inside = known.clone();
        inside.add(table.r#as.value.0.clone());
        self.steps(&table.steps, &mut inside);
    }

    /// A condition may well ask for a value that is not known, if anything before it can give it.
    fn conditions(&mut self, conditions: &Conditions, known: &Known) {
        self.uses(conditions.subjects(), &Known { surely: known.perhaps.clone(), perhaps: known.perhaps.clone() });
        self.uses(conditions.uses(), known);
    }

    /// Before the first round of a loop nothing is known that only its steps capture.
    fn first_round(&mut self, conditions: &Conditions, known: &Known) {
        let perhaps = || known.perhaps.clone();
        self.uses(needed(conditions).collect(), &Known { surely: perhaps(), perhaps: perhaps() });
    }

    fn uses(&mut self, uses: Vec<ValueUse>, known: &Known) {
        for one in uses {
            let name = &one.value.name;
            if known.surely.contains(name) {
                continue;
            }
            let place = one.place(self.faults);
            let perhaps = || (!name.contains('.')).then(|| known.doubt(name, &place));
            let fault = self.given.fault_of(name, &place).or_else(perhaps);
            fault.into_iter().for_each(|fault| self.faults.add(fault));
        }
    }
}
