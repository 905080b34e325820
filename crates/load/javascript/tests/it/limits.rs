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
        // Between two turns of a promise nothing of the script runs.
        let has_none = limit == Limit::Memory || body.contains("await");
        assert!(matches!(line, Some(1 | 2)) || has_none && line.is_none(), "{body}: {line:?}");
        assert!(user.vm.has_ended(), "{body}");
    }
}

/// The engine throws null where not even the error of an exhausted memory fits.
#[test]
fn a_null_that_a_script_throws_is_no_exhausted_memory() {
    for body in [
        "throw null",
        "throw 'null'",
        "return Promise.reject(null)",
        "return (async () => { await 1; throw null; })()",
        "return new Promise((resolve, reject) => reject(null))",
    ] {
        let mut user = User::loaded(&format!("export default () => {{ {body}; }};"));
        assert_eq!(user.thrown(), "null", "{body}");
        assert_eq!(user.thrown(), "null", "it goes on: {body}");
    }
    let mut user = greedy("export default () => { let all = null; for (;;) all = { all }; throw null; };");
    user.host.step.set(0);
    assert_eq!(broken(user.iterate()).0, Limit::Memory, "the script has a null to throw, and did not throw it");
}

#[test]
fn a_native_that_takes_too_long_is_stopped_where_it_stands() {
    let cases = [
        ("labour()", 2),
        ("try { labour(); } catch (e) { return 'caught'; } finally { for (;;) {} }", 2),
        ("[1].map(() => {\n labour(() => 1); })", 3),
        ("return (async () => {\n await null;\n labour(); })()", 4),
    ];
    for (body, line) in cases {
        let text = format!("import {{ labour }} from 'wire'; export default () => {{\n{body}; }};");
        let mut user = greedy(&text);
        assert_eq!(broken(user.iterate()), (Limit::Busy, Some(line)), "{body}");
        assert!(user.vm.has_ended(), "{body}");
        assert_eq!(user.vm.stop(), Parked::Ended(End::Stopped), "it never goes on: {body}");
    }
    let mut user = User::of(&program("import { labour } from 'wire';\nlabour();"));
    user.host.step.set(100_000_000);
    assert_eq!(broken(user.load()), (Limit::Busy, Some(2)));
}

#[test]
fn natives_of_a_user_do_not_spend_the_time_of_another() {
    let program =
        program("import { labour } from 'wire'; export default () => { if (__VU === 7) labour(); return 1; };");
    let (mut one, mut other) = (User::of(&program), User::of(&program));
    for user in [&mut one, &mut other] {
        assert_eq!(user.load(), Parked::Over(Ok(None)));
    }
    one.host.step.set(100_000_000);
    assert_eq!(broken(one.iterate()).0, Limit::Busy);
    drop(one);
    plimsoll_javascript::busy::spend(usize::MAX);
    assert!(!other.vm.has_ended());
}

#[test]
fn a_script_can_catch_that_it_went_too_deep_or_took_too_much() {
    let cases = [
        ("let d = 0; (function deep() { d++; deep(); })()", "RangeError: Maximum call stack size exceeded"),
        (
            "new Array(2 ** 32 - 1).join('')",
            "RangeError: expected an array of at most 16777216 elements, found one of 4294967295",
        ),
        (
            "const few = [1]; few[2 ** 31] = 2; few.forEach(() => 1)",
            "RangeError: expected an array of at most 16777216 elements, found one of 2147483649",
        ),
        (
            "Array.prototype.map.call({ length: 2 ** 53 - 1 }, String)",
            "RangeError: expected an array of at most 16777216 elements, found one of 9007199254740991",
        ),
        (
            "[].concat(new Array(2 ** 32 - 1))",
            "RangeError: expected an array of at most 16777216 elements, found one of 4294967295",
        ),
        (
            "[new Array(2 ** 32 - 1)].flat()",
            "RangeError: expected an array of at most 16777216 elements, found one of 4294967295",
        ),
        (
            "[1].flatMap(() => new Array(2 ** 32 - 1))",
            "RangeError: expected an array of at most 16777216 elements, found one of 4294967295",
        ),
        (
            "String(Object.assign([], { length: 2 ** 30 }))",
            "RangeError: expected an array of at most 16777216 elements, found one of 1073741824",
        ),
        (
            "'a'.repeat(1 << 20).indexOf('a'.repeat(1 << 19) + 'b')",
            "RangeError: expected a shorter text to look for: 524289 characters in 1048576 may take too long",
        ),
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
fn functions_of_the_engine_that_are_bounded_do_what_they_did() {
    let text = "export default () => [
        [3, 1, 2].sort().join('+'), [1, [2, [3]]].flat().length, [1, 2, 3].map((n) => n * 2).indexOf(4), String([1, null, 2]),
        [1, 2, 3].reduce((a, b) => a + b), 'abcabc'.split('b').length, 'abcabc'.replace(/b/g, 'x'), 'abc'.includes('c'),
        new Array(1000).join('x').length, Array.prototype.map.name, Object.keys([].concat([1])).length,
        [1, 2].flatMap(function (n, i) { return [n, i + this.more]; }, { more: 5 }).join('+'),
        [1, [2, [[3]]]].flat(Infinity).length,
    ].join(' ');";
    assert_eq!(User::loaded(text).returned(), "\"1+2+3 3 1 1,,2 6 3 axcaxc true 999 map 1 1+5+2+6 3\"");
    for (body, thrown) in [("[].map(1)", "TypeError"), ("Array.prototype.join.call(null)", "TypeError")] {
        let text = format!("export default () => {{ try {{ {body}; }} catch (e) {{ return e.name; }} }};");
        assert_eq!(User::loaded(&text).returned(), format!("\"{thrown}\""), "{body}");
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
