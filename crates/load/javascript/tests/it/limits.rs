//! Users that take more than they may: each is ended with the reason, or catches what the language lets it catch.

use crate::common::{User, program};
use plimsoll_javascript::{End, Limit, Limits, Parked};

/// A user of `text` with a small heap, whose clock goes on by a tenth of a second whenever the engine looks at it.
fn greedy(text: &str) -> User {
    let limits = Limits { memory: 8 << 20, ..Limits::default() };
    let mut user = User::limited(&program(text), limits);
    assert_eq!(user.load(), Parked::Over(Ok(None)));
    user.host.step.set(100_000_000);
    user
}

/// The limit that ended a user, and the line where it was broken.
fn broken(parked: Parked) -> (Limit, Option<usize>) {
    match parked {
        Parked::Ended(End::Limit(limit, place)) => (limit, place.map(|place| place.line)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn limits_that_are_broken_end_the_user() {
    let cases = [
        ("for (;;) {}", Limit::Busy),
        ("for (;;) { try { for (;;) {} } catch (e) {} finally { for (;;) {} } }", Limit::Busy),
        ("return (async () => { for (;;) { try { await null; } finally { continue; } } })()", Limit::Busy),
        (
            "return new Promise((go) => go()).then(function again() { return Promise.resolve().then(again); })",
            Limit::Memory,
        ),
        ("/^(a+)+$/.test('a'.repeat(40) + 'b')", Limit::Busy),
        ("const all = []; for (;;) all.push('x'.repeat(100000) + all.length)", Limit::Memory),
        ("let all = null; for (;;) all = { all }", Limit::Memory),
        ("const all = []; for (;;) all.push(new Array(1000).fill(1))", Limit::Memory),
        ("'x'.repeat(1 << 29)", Limit::Memory),
        ("new ArrayBuffer(1 << 30)", Limit::Memory),
        ("(function deep(n) { return n + deep(n + 1); })(0)", Limit::Stack),
        ("const o = { toString() { return '' + this; } }; '' + o", Limit::Stack),
    ];
    for (body, limit) in cases {
        let mut user = greedy(&format!("export default () => {{\n{body}; }};"));
        // The time that filling the heap takes is no matter of this test.
        if limit != Limit::Busy {
            user.host.step.set(0);
        }
        let (found, line) = broken(user.iterate());
        assert_eq!(found, limit, "{body}");
        // What has no place of its own is in its function; with no memory left for the error, nobody knows where it was.
        assert!(matches!(line, Some(1 | 2)) || limit == Limit::Memory && line.is_none(), "{body}: {line:?}");
        assert!(user.vm.has_ended(), "{body}");
    }
}

#[test]
fn a_script_can_catch_that_it_went_too_deep_or_took_too_much() {
    let cases = [
        ("let d = 0; (function deep() { d++; deep(); })()", "RangeError: Maximum call stack size exceeded"),
        ("JSON.parse('['.repeat(100000))", "RangeError: Maximum call stack size exceeded"),
        ("JSON.parse('{\"a\":'.repeat(100000))", "RangeError: Maximum call stack size exceeded"),
        // What does not fit is large, so that there is room for the error, in whose place null would be thrown.
        ("const all = []; for (;;) all.push(new ArrayBuffer(1 << 20))", "InternalError: out of memory"),
    ];
    for (body, caught) in cases {
        let text = format!("export default () => {{ try {{ {body}; }} catch (e) {{ return String(e); }} }};");
        let mut user = User::limited(&program(&text), Limits { memory: 8 << 20, ..Limits::default() });
        assert_eq!(user.load(), Parked::Over(Ok(None)));
        assert_eq!(user.returned(), format!("\"{caught}\""), "{body}");
        assert_eq!(user.returned(), format!("\"{caught}\""), "once more: {body}");
    }
}

#[test]
fn a_megabyte_of_stack_is_good_for_more_than_a_thousand_calls() {
    let mut user = User::loaded(
        "export default () => { let d = 0; try { (function f() { d++; f(); })(); } catch { return d; } };",
    );
    let depth: usize = user.returned().parse().expect("a number");
    assert!(depth > 1000, "{depth}");
}

#[test]
fn waiting_does_not_count_as_running() {
    let text = "import { sleep } from 'wire'; export default () => { for (let i = 0; i < 50; i++) { sleep(10); } return 'done'; };";
    assert_eq!(User::loaded(text).returned(), "\"done\"");
}

#[test]
fn limits_hold_while_a_script_is_loaded() {
    let mut user = User::of(&program("let a = 1;\nfor (;;) {\n a++; }"));
    user.host.step.set(100_000_000);
    assert!(matches!(broken(user.load()), (Limit::Busy, Some(1..=3))));
    let mut user = User::limited(&program("export default 1;"), Limits { memory: 10_000, ..Limits::default() });
    assert_eq!(broken(user.load()).0, Limit::Memory);
}

#[test]
fn others_go_on() {
    let program = program(
        "export default () => { if (__VU === 7 && globalThis.greedy) for (;;) {} return 1; }; export const f = () => { globalThis.greedy = true; };",
    );
    let (mut one, mut other) = (User::of(&program), User::of(&program));
    for user in [&mut one, &mut other] {
        assert_eq!(user.load(), Parked::Over(Ok(None)));
    }
    let greedy = plimsoll_javascript::Call {
        function: "f".into(),
        arguments: vec![],
        globals: vec![],
        result: plimsoll_javascript::ResultFormat::Nothing,
    };
    assert_eq!(one.vm.call(greedy), Parked::Over(Ok(None)));
    one.host.step.set(100_000_000);
    assert_eq!(broken(one.iterate()).0, Limit::Busy);
    assert_eq!(other.returned(), "1");
}
