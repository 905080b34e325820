//! Bounds how deep the parser goes into the text of a script. The parser, and all that walks through its tree, call
//! themselves for each level of nesting, and a stack that overflows ends the whole process.

use std::io;
use std::thread;

/// The most brackets that may be open at once.
pub(crate) const DEEPEST: usize = 1000;

/// A stack that serves any script without nesting, in bytes.
const LEAST_STACK: usize = 4 * 1024 * 1024;

/// The stack that a level takes at most, in bytes. A bracket took 1.2 KiB in a release build (8 MiB ended at 6,800 of
/// them); the rest is for builds without optimisation.
const STACK_OF_A_LEVEL: usize = 8 * 1024;

/// The offset of the first bracket that is nested deeper than [`DEEPEST`]. Texts and comments are left aside as far as
/// that is possible without a parser: a quote that stands in a template or in a regular expression counts as the
/// beginning of a text, to the end of its line at most.
pub(crate) fn too_deep(source: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut bytes = source.bytes().enumerate().peekable();
    while let Some((offset, byte)) = bytes.next() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' | b'\'' => {
                while let Some((_, inside)) = bytes.next_if(|(_, inside)| *inside != b'\n') {
                    match inside {
                        b'\\' => drop(bytes.next()),
                        _ if inside == byte => break,
                        _ => {}
                    }
                }
            }
            b'/' if bytes.peek().is_some_and(|(_, next)| *next == b'/') => {
                while bytes.next_if(|(_, inside)| *inside != b'\n').is_some() {}
            }
            _ => {}
        }
        if depth > DEEPEST {
            return Some(offset);
        }
    }
    None
}

/// A stack that no nesting in a script can overflow, in bytes.
pub(crate) fn stack_for(source: &str) -> usize {
    levels(source).saturating_mul(STACK_OF_A_LEVEL).saturating_add(LEAST_STACK)
}

/// Does work in a thread with a stack of this size. Only touched pages of it take memory.
///
/// # Errors
/// There is no address space for such a stack.
pub(crate) fn on_stack<T: Send>(stack: usize, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let parsing = thread::Builder::new().name("parser".to_owned()).stack_size(stack).spawn_scoped(scope, work)?;
        Ok(parsing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// More levels than a text can have: each has a sign of its own, or a word with a space behind it.
fn levels(source: &str) -> usize {
    let mut levels = 0;
    let mut after_space = false;
    for byte in source.bytes() {
        let is_space = byte.is_ascii_whitespace();
        let is_word = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii();
        let goes_on = is_word || (is_space && after_space);
        levels += usize::from(!goes_on);
        after_space = is_space;
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_counted_where_they_nest() {
        let nested = |depth| format!("const a = {}1{};", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(too_deep(&nested(DEEPEST)), None);
        assert_eq!(too_deep(&nested(DEEPEST + 1)), Some("const a = ".len() + DEEPEST));
        let many = "f(); [1]; ({}); // (((\n'((('; \"\\\"(((\"; it(`don't (`)\n)".repeat(DEEPEST);
        assert_eq!(too_deep(&many), None);
    }

    #[test]
    fn every_level_is_counted() {
        assert!(levels(&"[".repeat(7)) >= 7 && levels(&"typeof ".repeat(7)) >= 7 && levels(&"a=>".repeat(7)) >= 7);
        assert!(levels("   \n\n  abc_$ü   ") <= 2);
    }

    #[test]
    fn a_deep_recursion_fits() {
        fn sum(depth: u64) -> u64 {
            let frame = std::hint::black_box([depth; 64]);
            if depth == 0 { 0 } else { frame[7] + sum(depth - 1) }
        }
        let depth = 100_000;
        let found = on_stack(stack_for(&"[".repeat(depth)), || sum(depth as u64)).expect("address space");
        assert_eq!(found, depth as u64 * (depth as u64 + 1) / 2);
    }
}
