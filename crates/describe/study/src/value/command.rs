//! Commands: a program and its arguments, split as a shell would, but without a shell.

use super::scope::{Scope, place_of};
use super::template::Template;
use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, level_in_words};
use plimsoll_model::factor::{Assignment, Level};
use plimsoll_model::system::CommandLine;
use serde_json::{Value, json};

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

    /// The command for people, with the levels that are known.
    pub(crate) fn shown(&self, levels: &Assignment) -> String {
        let word = |word: &Template| {
            let text = word.shown(levels);
            if text.is_empty() || text.contains(char::is_whitespace) { format!("'{text}'") } else { text }
        };
        self.words.iter().map(word).collect::<Vec<String>>().join(" ")
    }

    /// What looks like a port that the command names itself, and where it stands: the end of
    /// `HOST:PORT`, an argument after `--port`, or one of its own.
    pub(crate) fn literal_port(&self, faults: &Faults) -> Option<(u16, Span)> {
        let words: Vec<String> = self.words.iter().map(Template::to_string).collect();
        words.windows(2).find_map(|pair| {
            let port = port_at_end(&pair[0], &pair[1])?;
            Some((port, place_of(&port.to_string(), &self.span, faults)))
        })
    }
}

/// The port at the end of `word`, which follows `previous`.
fn port_at_end(previous: &str, word: &str) -> Option<u16> {
    let before = word.trim_end_matches(|character: char| character.is_ascii_digit());
    let port = word[before.len()..].parse().ok().filter(|port| *port >= 1024)?;
    let says_port = |text: &str| text == "-p" || text.to_lowercase().contains("port");
    let alone = before.is_empty() && (says_port(previous) || !previous.starts_with('-'));
    (alone || before.ends_with(':') || before.ends_with('=') && says_port(before)).then_some(port)
}

impl FromToml for Command {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let Some(Level::Text(text)) = node.scalar() else {
            faults.add(node.wrong_type("a command such as \"./server --port {port}\""));
            return None;
        };
        let Ok(words) = shell_words::split(&text) else {
            let message = format!("{} has a quote that is not closed", node.name());
            faults.add(Fault::error(&node.span, message).label(level_in_words(&Level::Text(text))));
            return None;
        };
        if words.first().is_none_or(String::is_empty) {
            faults.add(Fault::error(&node.span, format!("{} names no program", node.name())));
            return None;
        }
        warn_of_shell_operators(&text, &words, node, faults);
        // A stray brace has been reported where all placeholders are looked at.
        let words = words.iter().map(|word| Template::parse(word).ok()).collect::<Option<_>>()?;
        Some(Command { words, span: node.span.clone(), path: node.path.clone() })
    }

    fn json_schema(_: &mut Schemas) -> Value {
        json!({ "type": "string", "minLength": 1 })
    }
}

/// Redirections and the like would reach the program as arguments.
fn warn_of_shell_operators(text: &str, words: &[String], node: &Node<'_>, faults: &mut Faults) {
    // What is in quotes is meant as it is: there the word looks different in the text.
    let unquoted = |word: &&String| text.split_whitespace().any(|written| written == word.as_str());
    let Some(operator) = words.iter().filter(|word| is_shell_operator(word)).find(unquoted) else { return };
    let message = format!("{} has `{operator}`, but no shell is involved", node.name());
    let fault = Fault::warning(&place_of(operator, &node.span, faults), message);
    faults.add(fault.label("an argument of the program").help("for a shell write `sh -c '…'`"));
}

fn is_shell_operator(word: &str) -> bool {
    matches!(word, "|" | "||" | "&" | "&&" | ";" | "<" | "<<")
        || [">", "1>", "2>", "&>"].iter().any(|to| word.starts_with(to))
}

#[cfg(test)]
mod tests {
    use super::port_at_end;
    use crate::table::system::SystemTable;
    use crate::table::testing::faults_of;

    #[test]
    fn a_port_is_recognised() {
        for (previous, word, port) in [
            ("x", "8080", Some(8080)),
            ("--port", "8080", Some(8080)),
            ("-p", "8080", Some(8080)),
            ("x", "--http-port=8080", Some(8080)),
            ("--listen", ":8080", Some(8080)),
            ("--listen", "127.0.0.1:8080", Some(8080)),
            ("--cache", "4096", None),
            ("x", "--cache=4096", None),
            ("x", "80", None),
            ("x", "99999", None),
            ("x", "v1024", None),
        ] {
            assert_eq!(port_at_end(previous, word), port, "{previous} {word}");
        }
    }

    #[test]
    fn what_only_a_shell_understands_is_a_warning() {
        for (command, operator) in
            [("x > log", ">"), ("x 2>&1", "2>&1"), ("x | y", "|"), ("x && y", "&&"), ("x &", "&"), ("x < in", "<")]
        {
            let faults = faults_of::<SystemTable>(&format!("start = \"{command}\""));
            assert_eq!(faults.len(), 1, "{command}: {faults:?}");
            assert!(
                faults[0].contains(&format!("warning: `table.start` has `{operator}`, but no shell")),
                "{faults:?}"
            );
        }
        for fine in ["sh -c 'x > log 2>&1 | y &'", "grep '|' x", "x -> y"] {
            assert_eq!(faults_of::<SystemTable>(&format!("start = \"{fine}\"")), [""; 0], "{fine}");
        }
    }
}
