//! Steps of an HTTP workload: requests, messages on a socket, pauses, branches and loops.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, all_of, table};
use crate::table::condition::Conditions;
use crate::table::http::{HttpActionTable, HttpStepTable, RequestDefaults};
use crate::table::socket::{MessageStepTable, SocketStepTable, SocketWord};
use crate::table::stage::ThinkValue;
use crate::value::{BUILT_IN, Literal, Problem, Scalar, Scope, Templated, WholeNumber, is_name, resolve_optional};
use plimsoll_model::factor::Level;
use plimsoll_model::flow::{Block, FlowAction, FlowMessage, FlowRequest, Instruction};
use serde_json::{Value, json};

/// One step. Which kind it is, one key of it says.
#[derive(Clone, Debug)]
pub(crate) enum StepTable {
    Request(Box<HttpStepTable>),
    Pause(PauseTable),
    Socket(SocketStepTable),
    Message(Box<MessageStepTable>),
    When(WhenTable),
    Choose(ChooseTable),
    Repeat(RepeatTable),
    Each(EachTable),
    While(WhileTable),
}

table! {
    /// The user waits, which the duration of the iteration leaves out.
    struct PauseTable {
        /// How long: a duration, or a table as of `load.think`.
        pause: ThinkValue,
    }
}

table! {
    /// Steps under a condition.
    struct WhenTable {
        /// Values by name with what must hold of them, all together: "== x", "!= x", "< 5", "contains x", "matches PATTERN", "exists" or "absent".
        when: Conditions,
        /// What is done then.
        steps: Vec<StepTable>,
        /// What is done else. Default: nothing.
        otherwise: Option<Vec<StepTable>>,
    }
}

table! {
    /// The steps of one of several choices.
    struct ChooseTable {
        /// The choices, of which one is drawn by weight each time.
        choose: Vec<HttpActionTable>,
    }
}

table! {
    /// Steps so many times.
    struct RepeatTable {
        /// How often.
        repeat: Templated<Times>,
        /// What is done each time.
        steps: Vec<StepTable>,
    }
}

table! {
    /// Steps for each item of a list.
    struct EachTable {
        /// The name of a value that was captured with `pick = "all"`, or is an array of JSON.
        each: Literal<ValueName>,
        /// The name under which the steps know the item.
        r#as: Literal<ValueName>,
        /// How many items are gone through at most. Default: 1000.
        at_most: Option<Templated<Times>>,
        /// What is done for each.
        steps: Vec<StepTable>,
    }
}

table! {
    /// Steps as long as a condition holds.
    struct WhileTable {
        /// Values by name with what must hold of them, as in `when`.
        r#while: Conditions,
        /// How often at most; if the condition still holds then, the iteration fails.
        at_most: Templated<Times>,
        /// What is done each time.
        steps: Vec<StepTable>,
    }
}

pub(crate) type Times = WholeNumber<1, 1_000_000>;

/// How many items of a list are gone through where the study does not say.
const ITEMS: u32 = 1000;

impl StepTable {
    /// Whether only a flow has such a step.
    pub(crate) fn is_of_flow(&self) -> bool {
        match self {
            StepTable::Request(request) => request.is_of_flow(),
            _ => true,
        }
    }

    /// The steps in it, if it has some.
    pub(crate) fn blocks(&self) -> Vec<&[StepTable]> {
        match self {
            StepTable::Request(_) | StepTable::Pause(_) | StepTable::Socket(_) | StepTable::Message(_) => Vec::new(),
            StepTable::When(WhenTable { steps, otherwise, .. }) => {
                [steps.as_slice()].into_iter().chain(otherwise.as_deref()).collect()
            }
            StepTable::Choose(table) => table.choose.iter().map(|choice| choice.steps.as_slice()).collect(),
            StepTable::Repeat(RepeatTable { steps, .. })
            | StepTable::Each(EachTable { steps, .. })
            | StepTable::While(WhileTable { steps, .. }) => vec![steps],
        }
    }

    pub(crate) fn is_loop(&self) -> bool {
        matches!(self, StepTable::Repeat(_) | StepTable::Each(_) | StepTable::While(_))
    }

    pub(crate) fn place(&self) -> &Span {
        match self {
            StepTable::Request(table) => &table.place,
            StepTable::Pause(table) => &table.place,
            StepTable::Socket(table) => &table.place,
            StepTable::Message(table) => &table.place,
            StepTable::When(table) => &table.place,
            StepTable::Choose(table) => &table.place,
            StepTable::Repeat(table) => &table.place,
            StepTable::Each(table) => &table.place,
            StepTable::While(table) => &table.place,
        }
    }
}

/// All requests among `steps`, however deep.
pub(crate) fn requests(steps: &[StepTable]) -> Vec<&HttpStepTable> {
    let mut found = Vec::new();
    walk(steps, &mut |step| {
        if let StepTable::Request(request) = step {
            found.push(&**request);
        }
    });
    found
}

/// All messages on the socket among `steps`, however deep.
pub(crate) fn messages(steps: &[StepTable]) -> Vec<&MessageStepTable> {
    let mut found = Vec::new();
    walk(steps, &mut |step| {
        if let StepTable::Message(message) = step {
            found.push(&**message);
        }
    });
    found
}

/// The names of all exchanges among `steps`, and where each stands: requests, and messages that are awaited.
pub(crate) fn exchanges(steps: &[StepTable]) -> Vec<(String, &Span)> {
    let mut found = Vec::new();
    walk(steps, &mut |step| match step {
        StepTable::Request(request) => found.push((request.name(), &request.place)),
        StepTable::Message(message) if message.r#await.is_some() => found.push((message.name(), &message.place)),
        _ => {}
    });
    found
}

/// Goes through `steps`, however deep, in the order of the file.
pub(crate) fn walk<'a>(steps: &'a [StepTable], visit: &mut dyn FnMut(&'a StepTable)) {
    for step in steps {
        visit(step);
        step.blocks().into_iter().for_each(|block| walk(block, visit));
    }
}

/// Makes blocks of steps, and lists of all their requests and messages.
pub(crate) struct Compiler<'a> {
    pub(crate) scope: &'a Scope<'a>,
    pub(crate) defaults: RequestDefaults<'a>,
    pub(crate) requests: Vec<FlowRequest>,
    pub(crate) messages: Vec<FlowMessage>,
}

impl Compiler<'_> {
    /// The steps of a trial; every one is looked at, also behind a faulty one.
    pub(crate) fn block(&mut self, steps: &[StepTable], faults: &mut Faults) -> Option<Block> {
        let resolved: Vec<Option<Instruction>> = steps.iter().map(|step| self.instruction(step, faults)).collect();
        resolved.into_iter().collect::<Option<_>>().map(Block)
    }

    fn instruction(&mut self, step: &StepTable, faults: &mut Faults) -> Option<Instruction> {
        let (scope, values) = (self.scope, self.defaults.values);
        match step {
            StepTable::Request(request) => self.request(request, faults),
            StepTable::Pause(table) => table.pause.resolve(scope, faults).map(Instruction::Pause),
            StepTable::Socket(table) => Some(match table.socket.value {
                SocketWord::Open => Instruction::OpenSocket,
                SocketWord::Close => Instruction::CloseSocket,
            }),
            StepTable::Message(table) => {
                let message = table.resolve(scope, values, faults)?;
                self.messages.push(message);
                Some(Instruction::Message(self.messages.len() - 1))
            }
            StepTable::When(table) => {
                let conditions = table.when.resolve(scope, values, faults);
                let then = self.block(&table.steps, faults);
                let otherwise = self.block(table.otherwise.as_deref().unwrap_or_default(), faults);
                Some(Instruction::When { conditions: conditions?, then: then?, otherwise: otherwise? })
            }
            StepTable::Choose(table) => {
                let numbered = table.choose.iter().zip(1..);
                let choices: Vec<Option<FlowAction>> =
                    numbered.map(|(choice, number)| self.action(Some(choice), number, &choice.steps, faults)).collect();
                choices.into_iter().collect::<Option<_>>().map(Instruction::Choose)
            }
            StepTable::Repeat(table) => {
                let times = table.repeat.resolve(scope, faults);
                let steps = self.block(&table.steps, faults);
                Some(Instruction::Repeat { times: times?.u32(), steps: steps? })
            }
            StepTable::Each(table) => {
                let at_most =
                    table.at_most.as_ref().map_or(Some(ITEMS), |most| Some(most.resolve(scope, faults)?.u32()));
                let steps = self.block(&table.steps, faults);
                let (list, item) = (values.id(&table.each.value.0)?, values.id(&table.r#as.value.0)?);
                Some(Instruction::Each { list, item, at_most: at_most?, steps: steps? })
            }
            StepTable::While(table) => {
                let conditions = table.r#while.resolve(scope, values, faults);
                let at_most = table.at_most.resolve(scope, faults);
                let steps = self.block(&table.steps, faults);
                Some(Instruction::While { conditions: conditions?, at_most: at_most?.u32(), steps: steps? })
            }
        }
    }

    /// An action or a choice with these steps; one that the study has no table for counts once and has its number as its name.
    pub(crate) fn action(
        &mut self,
        table: Option<&HttpActionTable>,
        number: usize,
        steps: &[StepTable],
        faults: &mut Faults,
    ) -> Option<FlowAction> {
        let scope = self.scope;
        let name = resolve_optional(table.and_then(|table| table.name.as_ref()), |name| name.resolve(scope, faults));
        let weight =
            resolve_optional(table.and_then(|table| table.weight.as_ref()), |weight| weight.resolve(scope, faults));
        let steps = self.block(steps, faults);
        Some(FlowAction {
            name: name?.map_or_else(|| number.to_string(), |name| name.0),
            weight: weight?.map_or(1, WholeNumber::u32),
            steps: steps?,
        })
    }

    /// A request, under its own condition if it has one.
    fn request(&mut self, table: &HttpStepTable, faults: &mut Faults) -> Option<Instruction> {
        let request = table.resolve(self.scope, &self.defaults, faults);
        let conditions = match &table.when {
            Some(when) => Some(when.resolve(self.scope, self.defaults.values, faults)),
            None => None,
        };
        self.requests.push(request?);
        let made = Instruction::Request(self.requests.len() - 1);
        Some(match conditions {
            Some(conditions) => {
                Instruction::When { conditions: conditions?, then: Block(vec![made]), otherwise: Block::default() }
            }
            None => made,
        })
    }
}

impl FromToml for StepTable {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let table = node.table(faults)?;
        let has = |key: &str| table.get(key).is_some();
        let mut kinds: Vec<&str> =
            ["pause", "socket", "choose", "repeat", "each", "while"].into_iter().filter(|key| has(key)).collect();
        if let Some(key) = ["send", "await"].into_iter().find(|key| has(key)) {
            kinds.push(key);
        }
        // A request may have a condition of its own.
        if has("when") && (has("steps") || has("otherwise")) {
            kinds.push("when");
        }
        let requested =
            ["get", "path", "method"].into_iter().filter(|key| has(key)).take(usize::from(!kinds.is_empty()));
        let told: Vec<&str> = kinds.iter().copied().chain(requested).collect();
        if told.len() > 1 {
            let fault = Fault::error(&node.place(), format!("a step does one thing, not {}", all_of(told)));
            faults.add(fault.help("make a step of each"));
            return None;
        }
        Some(match kinds.first() {
            None => StepTable::Request(Box::new(HttpStepTable::from_toml(node, faults)?)),
            Some(&"pause") => StepTable::Pause(PauseTable::from_toml(node, faults)?),
            Some(&"socket") => StepTable::Socket(SocketStepTable::from_toml(node, faults)?),
            Some(&("send" | "await")) => StepTable::Message(Box::new(MessageStepTable::from_toml(node, faults)?)),
            Some(&"choose") => StepTable::Choose(ChooseTable::from_toml(node, faults)?),
            Some(&"repeat") => StepTable::Repeat(RepeatTable::from_toml(node, faults)?),
            Some(&"each") => StepTable::Each(EachTable::from_toml(node, faults)?),
            Some(&"while") => StepTable::While(WhileTable::from_toml(node, faults)?),
            Some(_) => StepTable::When(WhenTable::from_toml(node, faults)?),
        })
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        schemas.reference("StepTable", |schemas| {
            json!({
                "description": "A request, a message, a pause, a branch or a loop.",
                "anyOf": [
                    HttpStepTable::json_schema(schemas),
                    PauseTable::json_schema(schemas),
                    SocketStepTable::json_schema(schemas),
                    MessageStepTable::json_schema(schemas),
                    WhenTable::json_schema(schemas),
                    ChooseTable::json_schema(schemas),
                    RepeatTable::json_schema(schemas),
                    EachTable::json_schema(schemas),
                    WhileTable::json_schema(schemas),
                ],
            })
        })
    }
}

/// The name of a value of the study's own.
#[derive(Clone, Debug)]
pub(crate) struct ValueName(pub(crate) String);

impl Scalar for ValueName {
    const EXPECTED: &'static str = "the name of a value";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text) => match problem_of_name(text) {
                Some(problem) => Err(problem),
                None => Ok(ValueName(text.clone())),
            },
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

/// Why a value cannot have this name.
pub(crate) fn problem_of_name(name: &str) -> Option<Problem> {
    let plain = name.trim_start_matches("{$").trim_end_matches('}');
    if BUILT_IN.contains(&name) {
        return Some(
            Problem::new(format!("cannot be `{name}`, which every user knows by itself")).help("give it another name"),
        );
    }
    let problem = || Problem::new(format!("must be the name of a value, which `{name}` is not"));
    let help = if plain != name && is_name(plain) {
        format!("write the name alone: \"{plain}\"")
    } else {
        "a name is a letter, then letters, digits, `_` and `-`".to_owned()
    };
    (!is_name(name)).then(|| problem().help(help))
}
