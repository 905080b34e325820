//! The source of scripts. They are read and compiled, and do not run.

use super::text;
use plimsoll_javascript::{Entry, Files, Natives, Program};

/// Reads the input as a module of JavaScript.
pub(super) fn javascript(input: &[u8]) {
    load("script.js", input);
}

/// Reads the input as a module of TypeScript.
pub(super) fn typescript(input: &[u8]) {
    load("script.ts", input);
}

fn load(name: &str, input: &[u8]) {
    let files = Files::within::<&str>([]).expect("no folder");
    let text = text(input);
    let loaded = Program::load(Entry::Text { name, text: &text }, files, Natives::default());
    if let Err(faults) = loaded {
        assert!(!faults.is_empty(), "expected a fault where there is no program");
        faults.iter().for_each(|fault| drop(fault.to_string()));
    }
}
