//! Compiles a flow: requests into templates over one pool of bytes, blocks into a program.

use super::capture::compiled;
use super::check::{Condition, Test};
use super::feeds::Feeds;
use super::program::{Op, Program};
use super::request::{Basic, Request};
use super::template::{Draft, Encoding, Piece, Place, Template};
use super::value::Value;
use plimsoll_engine::diagnostic::WorkloadDiagnostic;
use plimsoll_feed::IntegerSampler;
use plimsoll_model::flow::{
    self, Block, Flow, Instruction, JsonPiece, JsonText, Lifetime, MOST_LOOPS, Reference, Text, ValueId, WorkloadPart,
};
use plimsoll_model::sql::Parameter;
use plimsoll_model::workload::Target;
use plimsoll_web::{Url, form};

/// A flow, compiled once and read by all threads.
pub struct CompiledFlow {
    pub(super) pool: Vec<u8>,
    pub(super) names: Vec<String>,
    pub(super) requests: Vec<Request>,
    pub(super) basics: Vec<Basic>,
    pub(super) program: Program,
    pub(super) draws: Vec<(u16, Chance)>,
    /// The values that end with an iteration.
    pub(super) passing: Vec<u16>,
    pub(super) feeds: Feeds,
    /// The server, without a path.
    pub(super) origin: Url,
    pub(super) cookies: bool,
    pub(super) redirects: u8,
    pub(super) lifetime: Lifetime,
    /// The step of all requests, where they share one.
    pub(super) first_step: Option<usize>,
}

/// What is drawn for each iteration.
pub(super) enum Chance {
    Number(IntegerSampler),
    Text(u32),
    Constant(Value),
}

impl CompiledFlow {
    /// Compiles the flow for a server.
    ///
    /// # Errors
    /// Everything that is wrong with it: paths, patterns, feeds, files, passwords that are not set.
    pub fn new(flow: &Flow, target: &Target) -> Result<CompiledFlow, Vec<WorkloadDiagnostic>> {
        let mut faults = Vec::new();
        let feeds = Feeds::read(&flow.feeds, &mut faults);
        let mut compiler = Compiler::new(flow, target, &feeds, faults);
        let origin = compiler.origin();
        let draws = compiler.draws();
        let numbered = flow.requests.iter().enumerate();
        let requests: Vec<Request> = numbered.filter_map(|(number, one)| compiler.request(number, one)).collect();
        let program = compiler.program();
        let first_step = program.first_request().map(|request| request as usize);
        let Compiler { pool, basics, faults, .. } = compiler;
        match origin {
            Some(origin) if faults.is_empty() => Ok(CompiledFlow {
                pool,
                names: flow.values.clone(),
                first_step: first_step.map(|request| requests[request].step),
                requests,
                basics,
                program,
                draws,
                passing: flow.passing().into_iter().map(|value| value.0).collect(),
                feeds,
                origin,
                cookies: flow.cookies,
                redirects: flow.redirects,
                lifetime: flow.lifetime,
            }),
            _ => Err(faults),
        }
    }

    /// Why users have stopped before the load was over, if they have.
    pub fn stopped(&self) -> Option<String> {
        self.feeds.ended()
    }
}

/// What the parts of a flow are compiled with.
pub(super) struct Compiler<'a> {
    pub(super) flow: &'a Flow,
    pub(super) target: &'a Target,
    pub(super) pool: Vec<u8>,
    pub(super) basics: Vec<Basic>,
    faults: Vec<WorkloadDiagnostic>,
    /// Where each value is found.
    places: Vec<Place>,
    /// The names of recorded steps.
    pub(super) steps: Vec<&'a str>,
}

impl<'a> Compiler<'a> {
    fn new(flow: &'a Flow, target: &'a Target, feeds: &Feeds, faults: Vec<WorkloadDiagnostic>) -> Compiler<'a> {
        let places = (0..flow.values.len() as u16).map(|value| feeds.place(value).unwrap_or(Place::Kept(value)));
        let (pool, basics) = (Vec::new(), Vec::new());
        Compiler { flow, target, pool, basics, faults, places: places.collect(), steps: flow.names() }
    }

    /// The result, or nothing and one more fault of this part.
    pub(super) fn or_fault<T>(&mut self, of: Option<WorkloadPart>, result: Result<T, String>) -> Option<T> {
        result
            .map_err(|what| {
                self.faults.push(WorkloadDiagnostic { part: of, ..WorkloadDiagnostic::new(self.named(of) + &what) });
            })
            .ok()
    }

    /// What a fault of this part begins with.
    fn named(&self, part: Option<WorkloadPart>) -> String {
        match part {
            Some(WorkloadPart::Request(request)) => format!("step `{}`: ", self.flow.requests[request].name),
            Some(WorkloadPart::Feed(feed)) => format!("feed `{}`: ", self.flow.feeds[feed].name),
            Some(WorkloadPart::Value(value)) => format!("the draw of `{}`: ", self.flow.values[value.0 as usize]),
            Some(WorkloadPart::Function) | None => String::new(),
        }
    }

    fn origin(&mut self) -> Option<Url> {
        let scheme = if self.target.tls.is_some() { "https" } else { "http" };
        let url = Url::parse(&format!("{scheme}://{}/", crate::http::authority(self.target)));
        self.or_fault(None, url.map_err(|fault| format!("the target: {fault}")))
    }

    fn draws(&mut self) -> Vec<(u16, Chance)> {
        let mut draws = Vec::new();
        for (value, parameter) in &self.flow.draws {
            if let Some(chance) = self.or_fault(Some(WorkloadPart::Value(*value)), chance(parameter)) {
                draws.push((value.0, chance));
            }
        }
        draws
    }

    /// Where a value is found.
    pub(super) fn place(&self, reference: Reference) -> Place {
        match reference {
            Reference::Value(ValueId(value)) => self.places[value as usize],
            Reference::User => Place::User,
            Reference::Iteration => Place::Iteration,
            Reference::Uuid => Place::Uuid,
            Reference::Now => Place::Now,
        }
    }

    /// Appends a text. In forms, literals are encoded as values are.
    pub(super) fn write(&self, text: &Text, encoding: Encoding, draft: &mut Draft) {
        for piece in &text.0 {
            match piece {
                flow::Piece::Literal(literal) if encoding == Encoding::Form => {
                    let mut bytes = Vec::new();
                    form::write(literal, &mut bytes);
                    draft.literal(bytes);
                }
                flow::Piece::Literal(literal) => draft.literal(literal),
                flow::Piece::Value { value, raw } => {
                    let is_link = *raw && encoding == Encoding::Component;
                    let encoding = if is_link { Encoding::Link } else { encoding };
                    draft.piece(Piece::Value(self.place(*value), encoding));
                }
            }
        }
    }

    /// Appends JSON.
    pub(super) fn write_json(&self, json: &JsonText, draft: &mut Draft) {
        for piece in &json.0 {
            match piece {
                JsonPiece::Literal(literal) => draft.literal(literal),
                JsonPiece::Inside(value) => draft.piece(Piece::Value(self.place(*value), Encoding::InString)),
                JsonPiece::Whole(value) => draft.piece(Piece::Value(self.place(*value), Encoding::Json)),
            }
        }
    }

    pub(super) fn template(&mut self, text: &Text, encoding: Encoding) -> Template {
        let mut draft = Draft::default();
        self.write(text, encoding, &mut draft);
        draft.finish(&mut self.pool)
    }

    pub(super) fn json_template(&mut self, json: &JsonText) -> Template {
        let mut draft = Draft::default();
        self.write_json(json, &mut draft);
        draft.finish(&mut self.pool)
    }

    fn program(&mut self) -> Program {
        let mut program = Program::default();
        program.on_start = self.block_alone(&self.flow.on_start, &mut program);
        program.on_stop = self.block_alone(&self.flow.on_stop, &mut program);
        let mut up_to = 0;
        for action in &self.flow.actions {
            up_to += u64::from(action.weight);
            let address = self.block_alone(&action.steps, &mut program);
            program.actions.push((address, up_to));
        }
        if up_to == 0 {
            self.faults.push(WorkloadDiagnostic::new("expected an action with a weight above zero, found none"));
        }
        program
    }

    fn block_alone(&mut self, block: &Block, program: &mut Program) -> u32 {
        let address = program.here();
        self.block(block, 0, program);
        program.push(Op::End);
        address
    }

    fn block(&mut self, block: &Block, loops: usize, program: &mut Program) {
        block.0.iter().for_each(|instruction| self.instruction(instruction, loops, program));
    }

    fn instruction(&mut self, instruction: &Instruction, loops: usize, program: &mut Program) {
        match instruction {
            Instruction::Request(index) => drop(program.push(Op::Request(*index as u32))),
            Instruction::Pause(think) => drop(program.push(Op::Pause(*think))),
            Instruction::When { conditions, then, otherwise } => {
                let (unless, _) = self.unless(conditions, program);
                self.block(then, loops, program);
                let jump = (!otherwise.0.is_empty()).then(|| program.push(Op::Jump(0)));
                program.close(unless);
                self.block(otherwise, loops, program);
                jump.into_iter().for_each(|jump| program.close(jump));
            }
            Instruction::Repeat { times, steps } => {
                self.round(steps, loops, program, |_, counter, program| {
                    program.push(Op::Repeat { counter, times: *times, end: 0 })
                });
            }
            Instruction::Each { list, item, at_most, steps } => {
                let list = self.place(Reference::Value(*list));
                self.round(steps, loops, program, |_, counter, program| {
                    program.push(Op::Each { counter, list, item: item.0, at_most: *at_most, end: 0 })
                });
            }
            Instruction::While { conditions, at_most, steps } => {
                self.round(steps, loops, program, |compiler, counter, program| {
                    let (unless, conditions) = compiler.unless(conditions, program);
                    program.push(Op::Bound { counter, at_most: *at_most, conditions });
                    unless
                });
            }
        }
    }

    /// A loop: what decides whether it goes on, which `head` writes and says where, then its steps.
    fn round(
        &mut self,
        steps: &Block,
        loops: usize,
        program: &mut Program,
        head: impl FnOnce(&mut Self, u8, &mut Program) -> u32,
    ) {
        if loops == MOST_LOOPS {
            self.faults.push(WorkloadDiagnostic::new(format!(
                "expected at most {MOST_LOOPS} loops in one another, found more"
            )));
            return;
        }
        let counter = loops as u8;
        program.push(Op::Zero(counter));
        let begin = program.here();
        let head = head(self, counter, program);
        self.block(steps, loops + 1, program);
        program.push(Op::Jump(begin));
        program.close(head);
    }

    /// Says where the operation stands, and which conditions are its.
    fn unless(&mut self, conditions: &[flow::Condition], program: &mut Program) -> (u32, (u32, u32)) {
        let first = program.conditions.len() as u32;
        for condition in conditions {
            if let Some(test) = self.test(&condition.test) {
                program.conditions.push(Condition { place: self.place(condition.value), test });
            }
        }
        let conditions = (first, program.conditions.len() as u32);
        (program.push(Op::Unless { conditions, to: 0 }), conditions)
    }

    fn test(&mut self, test: &flow::Test) -> Option<Test> {
        Some(match test {
            flow::Test::Exists => Test::Exists,
            flow::Test::Absent => Test::Absent,
            flow::Test::Compare { comparison, with } => {
                Test::Compare(*comparison, self.template(with, Encoding::Plain))
            }
            flow::Test::Contains(part) => Test::Contains(self.template(part, Encoding::Plain)),
            flow::Test::Matches(pattern) => {
                let pattern = compiled(pattern).map_err(|fault| format!("a condition: {fault}"));
                Test::Matches(self.or_fault(None, pattern)?)
            }
        })
    }
}

fn chance(parameter: &Parameter) -> Result<Chance, String> {
    Ok(match parameter {
        Parameter::Number { low, high, distribution } => {
            Chance::Number(IntegerSampler::checked(*low, *high, *distribution)?)
        }
        Parameter::Text(length) => Chance::Text(*length),
        Parameter::Constant(text) => Chance::Constant(Value::Text(text.as_str().into())),
        Parameter::Same(_) | Parameter::Feed { .. } => {
            return Err("expected a range, a text or a constant, found what only SQL has".to_owned());
        }
    })
}
