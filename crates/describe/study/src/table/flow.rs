//! What makes a flow of an HTTP workload: users that keep values, branch and wait.

use crate::document::{Fault, Faults, Span};
use crate::table::http::{HttpActionTable, HttpTable, RequestDefaults};
use crate::table::socket::{SocketWord, check_without_socket};
use crate::table::step::{Compiler, StepTable, exchanges, messages, problem_of_name, requests, walk};
use crate::table::value_check;
use crate::value::{Entries, Scope, Templated, ValueNames, resolve_all, resolve_optional, written_or};
use plimsoll_model::flow::{Flow, FlowAction, FlowSocket, Lifetime, MOST_LOOPS, ValueId, WorkloadPart};
use plimsoll_model::sql::Parameter;
use std::collections::BTreeSet;

/// A kind of iteration: an action with its weight, or the steps of the only kind.
pub(crate) struct IterationKind<'a> {
    pub(crate) name: Option<&'a str>,
    weight: Option<&'a HttpActionTable>,
    pub(crate) steps: &'a [StepTable],
    place: &'a Span,
}

// What is known before any trial.
impl HttpTable {
    /// Returns true if users do more than send the same requests each time.
    pub(crate) fn is_flow(&self) -> bool {
        let own = [
            self.headers.is_some(),
            self.auth.is_some(),
            self.cookies.is_some(),
            self.redirects.is_some(),
            self.compression.is_some(),
            self.state.is_some(),
            self.draw.is_some(),
            self.feeds.is_some(),
            self.socket.is_some(),
            self.on_start.is_some(),
            self.on_stop.is_some(),
            self.actions.is_some(),
        ];
        own.contains(&true) || self.steps.iter().flatten().any(StepTable::is_of_flow)
    }

    /// The kinds of iteration.
    pub(crate) fn kinds(&self) -> Vec<IterationKind<'_>> {
        let alone =
            self.steps.iter().map(|steps| IterationKind { name: None, weight: None, steps, place: &self.place });
        let several = self.actions.iter().flatten().map(|action| IterationKind {
            name: action.name.as_ref().map(Templated::as_written),
            weight: Some(action),
            steps: &action.steps,
            place: &action.place,
        });
        alone.chain(several).collect()
    }

    /// All lists of steps, in the order in which a user comes to them.
    pub(crate) fn blocks(&self) -> Vec<&[StepTable]> {
        let of_kinds = self.kinds().into_iter().map(|kind| kind.steps);
        self.on_start.as_deref().into_iter().chain(of_kinds).chain(self.on_stop.as_deref()).collect()
    }

    /// The names of the requests as the study has them, and where each stands; in a flow a name once.
    pub(crate) fn step_names(&self) -> Vec<(String, Span)> {
        let steps = self.blocks().into_iter().flat_map(exchanges);
        let socket = self.socket.iter().map(|socket| (socket.name(), &socket.place));
        let all = steps.chain(socket).map(|(name, place)| (name, place.clone()));
        if !self.is_flow() {
            return all.collect();
        }
        let mut names: Vec<(String, Span)> = Vec::new();
        for (name, place) in all {
            if !names.iter().any(|(known, _)| *known == name) {
                names.push((name, place));
            }
        }
        names
    }

    /// The most requests that an iteration makes, one of each name, if that is known.
    pub(crate) fn most_steps(&self) -> Option<usize> {
        let (mut loops, mut names) = (false, BTreeSet::new());
        self.kinds().iter().for_each(|kind| walk(kind.steps, &mut |step| loops |= step.is_loop()));
        let all: Vec<_> = self.kinds().iter().map(|kind| exchanges(kind.steps)).collect();
        let once = all.iter().all(|of_kind| {
            names.clear();
            of_kind.iter().all(|(name, _)| names.insert(name.clone()))
        });
        (once && !loops).then(|| all.iter().map(Vec::len).max().unwrap_or(0))
    }

    /// Whether users pause inside iterations.
    pub(crate) fn has_pauses(&self) -> bool {
        let mut pauses = false;
        self.blocks()
            .into_iter()
            .for_each(|steps| walk(steps, &mut |step| pauses |= matches!(step, StepTable::Pause(_))));
        pauses
    }

    /// The names of all values: drawn, fed, captured, and items of lists.
    pub(crate) fn value_names(&self) -> ValueNames {
        let mut names = ValueNames::default();
        self.draw.iter().flat_map(Entries::names).for_each(|(name, _)| names.add(name));
        for one in value_check::uses(self) {
            let feed = one.value.name.split_once('.').map(|(feed, _)| feed);
            if self.feeds.iter().flat_map(Entries::names).any(|(name, _)| Some(name) == feed) {
                names.add(&one.value.name);
            }
        }
        for steps in self.blocks() {
            walk(steps, &mut |step| match step {
                StepTable::Request(request) => {
                    request.capture.iter().flat_map(Entries::names).for_each(|(name, _)| names.add(name));
                }
                StepTable::Message(message) => {
                    message.capture.iter().flat_map(Entries::names).for_each(|(name, _)| names.add(name));
                }
                StepTable::Each(each) => names.add(&each.r#as.value.0),
                _ => {}
            });
        }
        names
    }

    /// True if `is_such` holds of a step, however deep.
    pub(crate) fn has_step(&self, is_such: impl Fn(&StepTable) -> bool) -> bool {
        let mut found = false;
        self.blocks().into_iter().for_each(|steps| walk(steps, &mut |step| found |= is_such(step)));
        found
    }
}

// What is wrong in all trials.
impl HttpTable {
    /// Faults and warnings that no level changes.
    pub(crate) fn check(&self, faults: &mut Faults) -> Option<()> {
        if let Some(fault) = self.fault_of_work() {
            // In a file that is not all TOML, the steps may stand in the part that could not be read.
            if faults.well_formed() {
                faults.add(fault);
            }
            return None;
        }
        self.auth.iter().for_each(|auth| auth.check(faults));
        self.check_names(faults);
        self.check_draws(faults);
        self.check_kept(faults);
        for steps in self.blocks() {
            requests(steps).into_iter().for_each(|request| request.check(faults));
            messages(steps).into_iter().for_each(|message| message.check(faults));
            check_loops(steps, 0, faults);
            check_choices(steps, faults);
        }
        self.check_socket(faults);
        value_check::check(self, faults);
        Some(())
    }

    fn check_socket(&self, faults: &mut Faults) {
        match &self.socket {
            Some(socket) => socket.check(self, faults),
            None => check_without_socket(self, faults),
        }
        if self.socket.as_ref().is_some_and(|socket| socket.listens_to().is_some()) {
            return;
        }
        let all = self.blocks().into_iter().flat_map(requests);
        for topic in all.filter_map(|request| request.delivers_to.as_ref()) {
            let fault = Fault::error(&topic.span, "the workload does not say who listens");
            faults.add(fault.help(
                "give its socket deliveries: `[workload.socket.deliveries]` with `listens_to`, the name of a value",
            ));
        }
    }

    fn fault_of_work(&self) -> Option<Fault> {
        match (&self.steps, &self.actions) {
            (None, None) => {
                let help = "add `steps`, as in `steps = [{ get = \"/\" }]`, or `actions` with a weight and steps each";
                return Some(Fault::error(&self.place, "`workload` does not say what users do").help(help));
            }
            (Some(_), Some(_)) => {
                let fault = Fault::error(&self.place, "`workload` has both `steps` and `actions`");
                return Some(fault.help("keep `actions` alone: each has steps of its own"));
            }
            (None, Some(actions)) if actions.is_empty() => {
                let fault = Fault::error(&self.place, "`workload.actions` is empty");
                return Some(fault.help("a user must do something: give it at least one action"));
            }
            _ => {}
        }
        // A user that holds a socket may do nothing else.
        let is_idle = |kind: &IterationKind<'_>| match &self.socket {
            Some(_) => kind.steps.is_empty(),
            None => requests(kind.steps).is_empty(),
        };
        let idle = self.kinds().into_iter().find(is_idle)?;
        if self.actions.is_none() && idle.steps.is_empty() {
            return None; // told for all protocols alike
        }
        let message = if self.actions.is_some() { "an action makes no request" } else { "the steps make no request" };
        Some(Fault::error(idle.place, message).help("give it a step such as `{ get = \"/\" }`, or leave it out"))
    }

    /// Values of one name mean one thing.
    fn check_names(&self, faults: &mut Faults) {
        let drawn: Vec<(&str, &Span)> = self.draw.iter().flat_map(Entries::names).collect();
        let fed: Vec<(&str, &Span)> = self.feeds.iter().flat_map(Entries::names).collect();
        let requests = self.blocks().into_iter().flat_map(requests);
        let messages = self.blocks().into_iter().flat_map(messages);
        let of_requests = requests.filter_map(|request| request.capture.as_ref());
        let captures = of_requests.chain(messages.filter_map(|message| message.capture.as_ref()));
        let captured = captures.flat_map(Entries::names);
        for (name, place) in captured {
            if let Some(problem) = problem_of_name(name) {
                faults.add(problem.fault(place, &format!("capture.{name}")));
            } else if drawn.iter().any(|(known, _)| *known == name) {
                let fault = Fault::error(place, format!("`{name}` is captured, but it is drawn too"));
                faults.add(fault.help("give one of the two another name"));
            }
        }
        for (kind, names) in [("draw", drawn), ("feeds", fed)] {
            for (name, place) in names {
                if let Some(problem) = problem_of_name(name) {
                    faults.add(problem.fault(place, &format!("{kind}.{name}")));
                }
            }
        }
    }

    /// Nothing can be kept for another user.
    fn check_kept(&self, faults: &mut Faults) {
        if self.state.as_ref().and_then(Templated::fixed) != Some(&Lifetime::Iteration) {
            return;
        }
        let requests = self.blocks().into_iter().flat_map(requests);
        let captures = requests.flat_map(|request| request.capture.iter().flat_map(Entries::iter));
        for keep in captures.filter(|(_, capture)| capture.is_kept()).filter_map(|(_, capture)| capture.keep.as_ref()) {
            let message = "`keep` has no meaning where `state` is \"every iteration\"";
            faults.add(Fault::error(&keep.span, message).help("leave one of the two out"));
        }
    }

    /// What is drawn has no parameters before it, and no file.
    fn check_draws(&self, faults: &mut Faults) {
        for (name, templated) in self.draw.iter().flat_map(Entries::iter) {
            let help = match templated.fixed() {
                Some(Parameter::Same(_)) => format!("write `{{${name}}}` wherever the same value is wanted"),
                Some(Parameter::Feed { .. }) => {
                    "give the workload a feed: `[workload.feeds.NAME]` with `file`".to_owned()
                }
                _ => continue,
            };
            let fault = Fault::error(&templated.span, format!("`{}` is of transactions", templated.as_written()));
            faults.add(fault.help(help));
        }
    }
}

/// Something can be drawn wherever there is a choice.
fn check_choices(steps: &[StepTable], faults: &mut Faults) {
    walk(steps, &mut |step| {
        if let StepTable::Choose(table) = step
            && table.choose.is_empty()
        {
            let fault = Fault::error(&table.place, "`choose` is empty");
            faults.add(fault.help("give it choices: `choose = [{ weight = 4, steps = [ … ] }, { steps = [ … ] }]`"));
        }
    });
}

/// Loops lie in one another only so deep.
fn check_loops(steps: &[StepTable], depth: usize, faults: &mut Faults) {
    for step in steps {
        let inside = depth + usize::from(step.is_loop());
        if inside > MOST_LOOPS {
            let fault = Fault::error(step.place(), format!("more than {MOST_LOOPS} loops lie in one another"));
            faults.add(fault.help("a user of so many loops is a script: `script = \"FILE.js\"`"));
            return;
        }
        step.blocks().into_iter().for_each(|block| check_loops(block, inside, faults));
    }
}

// What becomes of it in a trial.
impl HttpTable {
    /// The flow of the trial that `scope` stands for.
    pub(crate) fn flow(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Flow> {
        let names = self.value_names();
        let defaults = RequestDefaults { headers: self.headers.as_ref(), auth: self.auth.as_ref(), values: &names };
        let mut compiler = Compiler { scope, defaults, requests: Vec::new(), messages: Vec::new() };
        let on_start = compiler.block(self.on_start.as_deref().unwrap_or_default(), faults);
        let kinds = self.kinds();
        let actions: Vec<Option<FlowAction>> = kinds
            .iter()
            .zip(1..)
            .map(|(kind, number)| compiler.action(kind.weight, number, kind.steps, faults))
            .collect();
        let on_stop = compiler.block(self.on_stop.as_deref().unwrap_or_default(), faults);
        let socket = resolve_optional(self.socket.as_ref(), |socket| socket.resolve(scope, &defaults, faults));
        let Compiler { mut requests, messages, .. } = compiler;
        let socket = socket?.map(|(opening, socket)| {
            requests.push(opening);
            FlowSocket { opening: requests.len() - 1, messages, ..socket }
        });
        let draws = self.draws(scope, &names, faults);
        let feeds = resolve_optional(self.feeds.as_ref(), |feeds| {
            resolve_all(&feeds.0, |(name, _, feed)| feed.resolve(name, scope, &names, faults))
        });
        let cookies = resolve_optional(self.cookies.as_ref(), |cookies| cookies.resolve(scope, faults));
        let redirects = resolve_optional(self.redirects.as_ref(), |most| most.resolve(scope, faults));
        let compression =
            resolve_optional(self.compression.as_ref(), |all_of| resolve_all(all_of, |one| one.resolve(scope, faults)));
        let lifetime = resolve_optional(self.state.as_ref(), |state| state.resolve(scope, faults));
        Some(Flow {
            requests,
            actions: actions.into_iter().collect::<Option<_>>()?,
            on_start: on_start?,
            on_stop: on_stop?,
            draws: draws?,
            feeds: feeds?.unwrap_or_default(),
            cookies: cookies?.unwrap_or(false),
            redirects: redirects?.map_or(0, |most| most.u16().try_into().unwrap_or(u8::MAX)),
            compression: compression?.unwrap_or_default(),
            lifetime: lifetime?.unwrap_or_default(),
            socket,
            values: names.0,
        })
    }

    fn draws(&self, scope: &Scope<'_>, names: &ValueNames, faults: &mut Faults) -> Option<Vec<(ValueId, Parameter)>> {
        let Some(draw) = &self.draw else { return Some(Vec::new()) };
        resolve_all(&draw.0, |(name, _, templated)| Some((names.id(name)?, templated.resolve(scope, faults)?)))
    }

    /// Where a part of the flow stands: the step of a request, the file of a feed, the first use of a column.
    pub(crate) fn place_of(&self, part: WorkloadPart, faults: &Faults) -> Option<Span> {
        match part {
            WorkloadPart::Request(number) => {
                let steps = self.blocks().into_iter().flat_map(requests).map(|request| &request.place);
                steps.chain(self.socket.iter().map(|socket| &socket.place)).nth(number).cloned()
            }
            WorkloadPart::Message(number) => {
                self.blocks().into_iter().flat_map(messages).nth(number).map(|message| message.place.clone())
            }
            WorkloadPart::Feed(number) => {
                self.feeds.iter().flat_map(Entries::iter).nth(number).map(|(_, feed)| feed.file.span.clone())
            }
            WorkloadPart::Value(value) => {
                let names = self.value_names();
                let name = names.0.get(usize::from(value.0))?;
                let used = || value_check::uses(self).into_iter().find(|one| one.value.name == *name);
                let drawn = self.draw.iter().flat_map(Entries::names).find(|(known, _)| known == name);
                drawn.map(|(_, place)| place.clone()).or_else(|| Some(used()?.place(faults)))
            }
            WorkloadPart::Function => None,
        }
    }

    /// What users do and keep, as reports say it.
    pub(crate) fn work_in_words(&self) -> String {
        let kinds = self.kinds();
        let words = |kind: &IterationKind<'_>| kind.in_words(kinds.len() > 1);
        let mut work = kinds.iter().map(words).collect::<Vec<_>>().join(" or ");
        if !self.is_flow() {
            return work;
        }
        for (what, steps) in [("before that", &self.on_start), ("at the end", &self.on_stop)] {
            if let Some(steps) = steps {
                work += &format!("; {what} {}", steps_in_words(steps));
            }
        }
        if written_or(self.cookies.as_ref(), "false") != "false" {
            work += "; cookies kept";
        }
        if let Some(most) = &self.redirects {
            work += &format!("; {} redirects followed, each an exchange of its own", most.as_written());
        }
        if let Some(codings) = &self.compression {
            let codings: Vec<&str> = codings.iter().map(Templated::as_written).collect();
            work += &format!("; compressed by {}", codings.join(" or "));
        }
        if let Some(state) = &self.state {
            work += &format!("; state {}", state.as_written());
        }
        if let Some(socket) = &self.socket {
            work += &format!("; a WebSocket at {}", socket.path.as_written());
        }
        if let Some(feeds) = &self.feeds {
            let feeds: Vec<String> = feeds.iter().map(|(name, feed)| feed.in_words(name)).collect();
            work += &format!("; feeds {}", feeds.join(", "));
        }
        work
    }
}

impl IterationKind<'_> {
    /// Its name, or its steps, with the weight among several.
    fn in_words(&self, with_weight: bool) -> String {
        match self.weight {
            Some(action) if with_weight => action_in_words(action),
            _ => self.name.map_or_else(|| steps_in_words(self.steps), str::to_owned),
        }
    }
}

/// Its name, or its steps, with its weight.
fn action_in_words(action: &HttpActionTable) -> String {
    let name = action.name.as_ref().map(|name| name.as_written().to_owned());
    let work = name.unwrap_or_else(|| steps_in_words(&action.steps));
    format!("{work} (weight {})", written_or(action.weight.as_ref(), "1"))
}

fn steps_in_words(steps: &[StepTable]) -> String {
    steps.iter().map(step_in_words).collect::<Vec<_>>().join(", then ")
}

fn step_in_words(step: &StepTable) -> String {
    match step {
        StepTable::Request(request) => match &request.when {
            Some(when) => format!("if {} ({})", when.in_words(), request.name()),
            None => request.name(),
        },
        StepTable::Pause(table) => format!("a pause ({})", table.pause.in_words()),
        StepTable::Socket(table) => match table.socket.value {
            SocketWord::Open => "its socket opened".to_owned(),
            SocketWord::Close => "its socket closed".to_owned(),
        },
        StepTable::Message(message) => message.name(),
        StepTable::When(table) => {
            let then = format!("if {} ({})", table.when.in_words(), steps_in_words(&table.steps));
            let otherwise = table.otherwise.as_ref().map(|steps| format!(", else ({})", steps_in_words(steps)));
            then + &otherwise.unwrap_or_default()
        }
        StepTable::Choose(table) => {
            format!("one of ({})", table.choose.iter().map(action_in_words).collect::<Vec<_>>().join(" or "))
        }
        StepTable::Repeat(table) => format!("{} times ({})", table.repeat.as_written(), steps_in_words(&table.steps)),
        StepTable::Each(table) => format!("for each of {} ({})", table.each.value.0, steps_in_words(&table.steps)),
        StepTable::While(table) => {
            let (holds, most) = (table.r#while.in_words(), table.at_most.as_written());
            format!("while {holds}, at most {most} times ({})", steps_in_words(&table.steps))
        }
    }
}
