//! Commands: a program and its arguments, split as a shell would, but without a shell.

use crate::diagnostic::{Fault, Span};
use crate::faults::Faults;
use crate::node::{FromToml, Node, in_words};
use crate::scope::Scope;
use crate::template::Template;
use plimsoll_model::factor::Level;
use plimsoll_model::system::CommandLine;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// A command whose words may hold placeholders. It is split before they are filled in: a level
/// with a space in it stays one argument.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    words: Vec<Template>,
    pub(crate) span: Span,
    path: String,
}

impl Command {
    /// The command for the trial that `scope` stands for.
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<CommandLine> {
        let filled: Vec<Option<Level>> = self.words.iter().map(|word| scope.fill(word, &self.span, faults)).collect();
        let words: Vec<String> = filled.into_iter().map(|word| Some(word?.to_string())).collect::<Option<_>>()?;
        if words[0].is_empty() {
            faults.add(Fault::error(&self.span, format!("`{}` names no program", self.path)));
            return None;
        }
        Some(CommandLine(words))
    }
}

impl FromToml for Command {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let Some(Level::Text(text)) = node.scalar() else {
            faults.add(node.wrong_type("a command such as \"./server --port {port}\""));
            return None;
        };
        let Ok(words) = shell_words::split(&text) else {
            let message = format!("{} has a quote that is not closed", node.name());
            faults.add(Fault::error(&node.span, message).label(in_words(&Level::Text(text))));
            return None;
        };
        if words.first().is_none_or(String::is_empty) {
            faults.add(Fault::error(&node.span, format!("{} names no program", node.name())));
            return None;
        }
        // A stray brace has been reported where all placeholders are looked at.
        let words = words.iter().map(|word| Template::parse(word).ok()).collect::<Option<_>>()?;
        Some(Command { words, span: node.span.clone(), path: node.path.clone() })
    }
}

impl JsonSchema for Command {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Command".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1 })
    }
}
