//! Compiles a flow: requests into templates over one pool of bytes, blocks into a program.

use super::capture::compiled;
use super::check::{Condition, Test};
use super::feeds::Feeds;
use super::program::{Choices, Op, Program};
use super::request::{Basic, Request};
use super::socket::CompiledSocket;
use super::template::{Draft, Encoding, Piece, Template, ValueRef};
use super::value::Value;
use plimsoll_engine::diagnostic::WorkloadDiagnostic;
use plimsoll_feed::IntegerSampler;
use plimsoll_model::flow::{
    self, Block, Flow, Instruction, JsonPiece, JsonText, Lifetime, MOST_LOOPS, Reference, Text, ValueId, WorkloadPart,
};
use plimsoll_model::sql::Parameter;
use plimsoll_model::workload::Target;
use plimsoll_web::{Url, form};

/// A compiled flow, which all threads share.
pub struct CompiledFlow {
    pub(super) pool: Vec<u8>,
    pub(super) names: Vec<String>,
    pub(super) requests: Vec<Request>,
    pub(super) basics: Vec<Basic>,
    pub(super) program: Program,
    pub(super) draws: Vec<(u16, RandomValue)>,
    /// The values that are cleared before each iteration.
    pub(super) iteration_values: Vec<u16>,
    pub(super) feeds: Feeds,
    /// The server, without a path.
    pub(super) origin: Url,
    pub(super) cookies: bool,
    pub(super) redirects: u8,
    pub(super) lifetime: Lifetime,
    /// The step of all requests, where they share one.
    pub(super) first_step: Option<usize>,
    pub(super) socket: Option<CompiledSocket>,
    /// The names of recorded steps.
    pub(super) steps: Vec<String>,
}

/// A value that is drawn for each iteration.
pub(super) enum RandomValue {
    Number(IntegerSampler),
    Text(u32),
    Constant(Value),
}

impl CompiledFlow {
    /// Compiles the flow for a server.
    ///
    /// # Errors
    /// All faults of the flow: paths, patterns, feeds, files, passwords that are not set.
    pub fn new(flow: &Flow, target: &Target) -> Result<CompiledFlow, Vec<WorkloadDiagnostic>> {
        let mut faults = Vec::new();
        let feeds = Feeds::read(&flow.feeds, &mut faults);
        let mut compiler = Compiler::new(flow, target, &feeds, faults);
        let origin = compiler.origin();
        let draws = compiler.draws();
        let numbered = flow.requests.iter().enumerate();
        let requests: Vec<Request> = numbered.filter_map(|(number, one)| compiler.request(number, one)).collect();
        let socket = flow.socket.as_ref().and_then(|socket| compiler.socket(socket));
        let program = compiler.program();
        let first_step = program.first_request().map(|request| request as usize);
        let Compiler { pool, basics, faults, steps, .. } = compiler;
        match origin {
            Some(origin) if faults.is_empty() => Ok(CompiledFlow {
                pool,
                names: flow.values.clone(),
                first_step: first_step.map(|request| requests[request].step),
                requests,
                basics,
                program,
                draws,
                iteration_values: flow.iteration_values().into_iter().map(|value| value.0).collect(),
                feeds,
                origin,
                cookies: flow.cookies,
                redirects: flow.redirects,
                lifetime: flow.lifetime,
                socket,
                steps: steps.into_iter().map(str::to_owned).collect(),
            }),
            _ => Err(faults),
        }
    }

    /// The reason why users stopped before the end of the load, if they did.
    pub fn stopped(&self) -> Option<String> {
        self.feeds.ended()
    }

    /// The warnings about deliveries since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        self.socket.iter().filter_map(CompiledSocket::take_warning).collect()
    }
}

/// The state while the parts of a flow are compiled.
pub(super) struct Compiler<'a> {
    pub(super) flow: &'a Flow,
    pub(super) target: &'a Target,
    pub(super) pool: Vec<u8>,
    pub(super) basics: Vec<Basic>,
    faults: Vec<WorkloadDiagnostic>,
    /// The source of each value.
    places: Vec<ValueRef>,
    /// The names of recorded steps.
    pub(super) steps: Vec<&'a str>,
}

impl<'a> Compiler<'a> {
    fn new(flow: &'a Flow, target: &'a Target, feeds: &Feeds, faults: Vec<WorkloadDiagnostic>) -> Compiler<'a> {
        let places = (0..flow.values.len() as u16).map(|value| feeds.value_ref(value).unwrap_or(ValueRef::Kept(value)));
        let (pool, basics) = (Vec::new(), Vec::new());
        Compiler { flow, target, pool, basics, faults, places: places.collect(), steps: flow.names() }
    }

    /// Unwraps the result, or records a fault of this part.
    pub(super) fn or_fault<T>(&mut self, of: Option<WorkloadPart>, result: Result<T, String>) -> Option<T> {
        result
            .map_err(|what| {
                self.faults
                    .push(WorkloadDiagnostic { part: of, ..WorkloadDiagnostic::new(self.fault_prefix(of) + &what) });
            })
            .ok()
    }

    /// The beginning of a fault of this part.
    fn fault_prefix(&self, part: Option<WorkloadPart>) -> String {
        match part {
            Some(WorkloadPart::Request(request)) => format!("step `{}`: ", self.flow.requests[request].name),
            Some(WorkloadPart::Message(message)) => {
                let messages = self.flow.socket.as_ref().map_or(&[][..], |socket| &socket.messages);
                format!("message `{}`: ", messages[message].name)
            }
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

    fn draws(&mut self) -> Vec<(u16, RandomValue)> {
        let mut draws = Vec::new();
        for (value, parameter) in &self.flow.draws {
            if let Some(random_value) = self.or_fault(Some(WorkloadPart::Value(*value)), random_value(parameter)) {
                draws.push((value.0, random_value));
            }
        }
        draws
    }

    /// The source of a value.
    pub(super) fn value_ref(&self, reference: Reference) -> ValueRef {
        match reference {
            Reference::Value(ValueId(value)) => self.places[value as usize],
            Reference::User => ValueRef::User,
            Reference::Iteration => ValueRef::Iteration,
            Reference::Uuid => ValueRef::Uuid,
            Reference::Now => ValueRef::Now,
            Reference::Message => ValueRef::Message,
        }
    }

    /// Appends a text to a draft. In forms, literals are encoded like values.
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
                    draft.piece(Piece::Value(self.value_ref(*value), encoding));
                }
            }
        }
    }

    /// Appends JSON to a draft.
    pub(super) fn write_json(&self, json: &JsonText, draft: &mut Draft) {
        for piece in &json.0 {
            match piece {
                JsonPiece::Literal(literal) => draft.literal(literal),
                JsonPiece::Inside(value) => draft.piece(Piece::Value(self.value_ref(*value), Encoding::InString)),
                JsonPiece::Whole(value) => draft.piece(Piece::Value(self.value_ref(*value), Encoding::Json)),
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
        program.on_start = self.top_level_block(&self.flow.on_start, &mut program);
        program.on_stop = self.top_level_block(&self.flow.on_stop, &mut program);
        let mut actions = Vec::new();
        for action in &self.flow.actions {
            actions.push((self.top_level_block(&action.steps, &mut program), action.weight));
        }
        program.actions = self.choices(&actions, "an action", &mut program);
        program
    }

    /// Choices of a program, of which one at least can be drawn.
    fn choices(&mut self, choices: &[(u32, u32)], what: &str, program: &mut Program) -> Choices {
        if choices.iter().all(|(_, weight)| *weight == 0) {
            self.faults.push(WorkloadDiagnostic::new(format!("expected {what} with a weight above zero, found none")));
        }
        program.push_choices(choices)
    }

    fn top_level_block(&mut self, block: &Block, program: &mut Program) -> u32 {
        let address = program.next_address();
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
            Instruction::OpenSocket => drop(program.push(Op::OpenSocket)),
            Instruction::Message(index) => drop(program.push(Op::Message(*index as u32))),
            Instruction::CloseSocket => drop(program.push(Op::CloseSocket)),
            Instruction::When { conditions, then, otherwise } => {
                let (unless, _) = self.jump_unless(conditions, program);
                self.block(then, loops, program);
                let jump = (!otherwise.0.is_empty()).then(|| program.push(Op::Jump(0)));
                program.patch_target(unless);
                self.block(otherwise, loops, program);
                jump.into_iter().for_each(|jump| program.patch_target(jump));
            }
            Instruction::Choose(actions) => {
                let jump = program.push(Op::JumpToOneOf(Choices::default()));
                let (mut choices, mut ends) = (Vec::new(), Vec::new());
                for action in actions {
                    choices.push((program.next_address(), action.weight));
                    self.block(&action.steps, loops, program);
                    ends.push(program.push(Op::Jump(0)));
                }
                ends.into_iter().for_each(|end| program.patch_target(end));
                program.ops[jump as usize] = Op::JumpToOneOf(self.choices(&choices, "a choice", program));
            }
            Instruction::Repeat { times, steps } => {
                self.loop_block(steps, loops, program, |_, counter, program| {
                    program.push(Op::CountRound { counter, times: *times, end: 0 })
                });
            }
            Instruction::Each { list, item, at_most, steps } => {
                let list = self.value_ref(Reference::Value(*list));
                self.loop_block(steps, loops, program, |_, counter, program| {
                    program.push(Op::NextItem { counter, list, item: item.0, at_most: *at_most, end: 0 })
                });
            }
            Instruction::While { conditions, at_most, steps } => {
                self.loop_block(steps, loops, program, |compiler, counter, program| {
                    let (unless, conditions) = compiler.jump_unless(conditions, program);
                    program.push(Op::LimitRounds { counter, at_most: *at_most, conditions });
                    unless
                });
            }
        }
    }

    /// Compiles a loop. `head` writes the operation that decides if another round follows, and returns its
    /// address. The steps of a round come after it.
    fn loop_block(
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
        program.push(Op::ResetCounter(counter));
        let begin = program.next_address();
        let head = head(self, counter, program);
        self.block(steps, loops + 1, program);
        program.push(Op::Jump(begin));
        program.patch_target(head);
    }

    /// Compiles a jump that is taken unless all conditions hold. Returns its address, and the range of its
    /// conditions.
    fn jump_unless(&mut self, conditions: &[flow::Condition], program: &mut Program) -> (u32, (u32, u32)) {
        let first = program.conditions.len() as u32;
        for condition in conditions {
            if let Some(test) = self.test(&condition.test) {
                program.conditions.push(Condition { place: self.value_ref(condition.value), test });
            }
        }
        let conditions = (first, program.conditions.len() as u32);
        (program.push(Op::JumpUnless { conditions, to: 0 }), conditions)
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

fn random_value(parameter: &Parameter) -> Result<RandomValue, String> {
    Ok(match parameter {
        Parameter::Number { low, high, distribution } => {
            RandomValue::Number(IntegerSampler::checked(*low, *high, *distribution)?)
        }
        Parameter::Text(length) => RandomValue::Text(*length),
        Parameter::Constant(text) => RandomValue::Constant(Value::Text(text.as_str().into())),
        Parameter::Same(_) | Parameter::Feed { .. } => {
            return Err("expected a range, a text or a constant, found what only SQL has".to_owned());
        }
    })
}
