//! Blocking, promises, timers, and what is left of them when an iteration is over.

use crate::common::{User, program};
use plimsoll_javascript::{Argument, Call, Level, Parked, Request, ResultFormat, Wakeup};
use plimsoll_model::units::Instant;
use std::rc::Rc;

#[test]
fn a_call_blocks_the_script_until_it_is_answered() {
    let mut user = User::loaded("import { ask } from 'wire'; export default () => ask('a') + ask('b');");
    user.answers.insert("a", vec!["1"]);
    user.answers.insert("b", vec!["2"]);
    assert_eq!(user.returned(), "\"12\"");
    assert_eq!(user.asked, ["a", "b"]);
}

/// The lock that the bindings have on a runtime is one for each runtime, and is held while its user is parked.
#[test]
fn users_of_one_thread_are_parked_inside_natives_at_the_same_time() {
    let program = program("import { ask } from 'wire'; let n = 0; export default () => [++n, ask('x'), ++n];");
    let mut users = [User::of(&program), User::of(&program), User::of(&program)];
    let mut asked = Vec::new();
    for user in &mut users {
        assert_eq!(user.load(), Parked::Over(Ok(None)));
        assert_eq!(user.begin(), Parked::Waiting);
        let Some(Request::Start(id, _)) = user.vm.next_request() else { panic!("it asks") };
        asked.push(id);
    }
    for (at, user) in users.iter_mut().enumerate().rev() {
        let over = user.vm.wake(asked[at], Wakeup::Operation(format!("user {at}")));
        assert_eq!(over, Parked::Over(Ok(Some(format!("[1,\"user {at}\",2]")))));
    }
}

#[test]
fn several_operations_are_open_at_once_and_answered_in_any_order() {
    let mut user = User::loaded("import { askAll } from 'wire'; export default () => askAll('a', 'b', 'c');");
    assert_eq!(user.begin(), Parked::Waiting);
    let mut ids = Vec::new();
    while let Some(Request::Start(id, _)) = user.vm.next_request() {
        ids.push(id);
    }
    for (id, answer) in [(ids[2], "C"), (ids[0], "A")] {
        assert_eq!(user.vm.wake(id, Wakeup::Operation(answer.to_owned())), Parked::Waiting);
    }
    let over = user.vm.wake(ids[1], Wakeup::Operation("B".to_owned()));
    assert_eq!(over, Parked::Over(Ok(Some(r#"["A","B","C"]"#.to_owned()))));
}

/// As k6's sockets do: the call blocks, and runs the script's handlers meanwhile, which may block themselves.
#[test]
fn a_call_can_attend_to_a_stream_and_timers() {
    let text = "import { attend, ask } from 'wire';
        export default () => { const all = []; attend('s', (what) => { all.push(what, ask(what)); }); return all; };";
    let mut user = User::loaded(text);
    assert_eq!(user.begin(), Parked::Waiting);
    let Some(Request::Start(stream, _)) = user.vm.next_request() else { panic!("it attends") };
    let Some(Request::Timer(timer, _)) = user.vm.next_request() else { panic!("it has a timer") };
    let answer = |user: &mut User, id, text: &str| user.vm.wake(id, Wakeup::Operation(text.to_owned()));
    assert_eq!(answer(&mut user, stream, "a"), Parked::Waiting);
    let Some(Request::Start(asked, _)) = user.vm.next_request() else { panic!("its handler asks") };
    // What comes while the handler is blocked waits for it.
    assert_eq!(answer(&mut user, stream, "b"), Parked::Waiting);
    assert_eq!(user.vm.wake(timer, Wakeup::Timer), Parked::Waiting);
    assert_eq!(answer(&mut user, asked, "1"), Parked::Waiting);
    for text in ["2", "3"] {
        let next = std::iter::from_fn(|| user.vm.next_request()).find_map(|request| match request {
            Request::Start(id, _) => Some(id),
            _ => None,
        });
        assert_eq!(answer(&mut user, next.expect("its handler asks"), text), Parked::Waiting);
    }
    let over = answer(&mut user, stream, "end");
    assert_eq!(over, Parked::Over(Ok(Some(r#"["a","1","b","2","tick","3"]"#.to_owned()))));
}

#[test]
#[should_panic(expected = "makes one call at a time")]
fn a_user_makes_one_call_at_a_time() {
    let mut user = User::loaded("import { ask } from 'wire'; export default () => ask('x');");
    assert_eq!(user.begin(), Parked::Waiting);
    user.begin();
}

#[test]
fn promises_are_settled_by_answers() {
    let text = "import { askLater } from 'wire';
        export default async () => {
            const first = askLater('a');
            const second = await askLater('b');
            try { await askLater('c'); } catch (error) { return [await first, second, error.message]; }
        };";
    let mut user = User::loaded(text);
    user.answers.insert("a", vec!["1"]);
    user.answers.insert("b", vec!["2"]);
    user.answers.insert("c", vec!["!no"]);
    assert_eq!(user.returned(), r#"["1","2","no"]"#);
}

#[test]
fn a_stream_answers_more_than_once() {
    let text = "import { listen } from 'wire';
        export default () => new Promise((resolve) => {
            const all = [];
            listen('s', (message) => { all.push(message); if (message === 'end') resolve(all); });
        });";
    let mut user = User::loaded(text);
    user.answers.insert("s", vec!["1", "2", "end"]);
    assert_eq!(user.returned(), r#"["1","2","end"]"#);
}

#[test]
fn a_call_inside_a_handler_blocks_the_handlers_of_others() {
    let text = "import { listen, ask } from 'wire';
        const all = [];
        export default () => new Promise((resolve) => {
            listen('s', (message) => { all.push(message + ask('x')); if (message === 'end') resolve(all); });
        });";
    let mut user = User::loaded(text);
    user.answers.insert("s", vec!["1", "2", "end"]);
    user.answers.insert("x", vec!["!"]);
    assert_eq!(user.returned(), r#"["1!","2!","end!"]"#);
}

#[test]
fn timers_come_in_the_order_of_their_instants() {
    let text = "const said = [];
        export default () => new Promise((resolve) => {
            setTimeout((a, b) => { said.push(a + b); resolve(said); }, 30, 'la', 'st');
            setTimeout(() => said.push('second'), 20);
            const never = setTimeout(() => said.push('never'), 10);
            let times = 0;
            const every = setInterval(() => { said.push('tick'); if (++times === 2) clearInterval(every); }, 7);
            setTimeout(() => said.push('first'));
            clearTimeout(never);
            clearTimeout(4711); clearTimeout(undefined);
        });";
    let mut user = User::loaded(text);
    assert_eq!(user.returned(), r#"["first","tick","tick","second","last"]"#);
    assert_eq!(user.host.now.get(), 30_000_000);
}

#[test]
fn a_wrong_number_cancels_nothing_but_timers() {
    let text = "import { askLater } from 'wire';
        export default async () => {
            const answer = askLater('a');
            for (let i = 0; i < 9; i++) clearTimeout(i);
            return await answer;
        };";
    let mut user = User::loaded(text);
    user.answers.insert("a", vec!["1"]);
    assert_eq!(user.returned(), "\"1\"");
}

#[test]
fn an_iteration_is_over_when_nothing_is_left_that_could_go_on() {
    let mut user = User::loaded("let n = 0; export default () => { setTimeout(() => { n += 1; }, 1000); return n; };");
    assert_eq!(user.returned(), "0");
    assert_eq!(user.host.now.get(), 1_000_000_000);
    assert_eq!(user.returned(), "1");
}

#[test]
fn a_sleep_is_a_timer() {
    let mut user = User::loaded("import { sleep } from 'wire'; export default () => { sleep(0.5); };");
    assert_eq!(user.begin(), Parked::Waiting);
    let Some(Request::Timer(id, due)) = user.vm.next_request() else { panic!("it sleeps") };
    assert_eq!(due, Instant(500_000_000));
    assert_eq!(user.vm.wake(id, Wakeup::Timer), Parked::Over(Ok(None)));
}

#[test]
fn an_exception_ends_the_iteration_and_what_it_began_but_not_the_user() {
    let text = "import { askLater } from 'wire';
        let n = 0;
        export default () => {
            n += 1;
            if (n === 1) { askLater('a'); setTimeout(() => { n = 100; }, 5); undefinedThing.field; }
            return n;
        };";
    let mut user = User::loaded(text);
    assert_eq!(user.thrown(), "ReferenceError: undefinedThing is not defined (load.js:5:78)");
    assert_eq!(user.asked, ["a", "cancel", "cancel"]);
    assert_eq!(user.returned(), "2");
}

#[test]
fn late_events_are_ignored() {
    let mut user =
        User::loaded("import { askLater } from 'wire'; export default () => { askLater('a'); throw 'out'; };");
    assert_eq!(
        user.begin(),
        Parked::Over(Err(plimsoll_javascript::Exception {
            message: "out".to_owned(),
            place: None,
            stack: String::new()
        }))
    );
    let Some(Request::Start(id, _)) = user.vm.next_request() else { panic!("it asked") };
    assert_eq!(user.vm.wake(id, Wakeup::Operation("late".to_owned())), Parked::Waiting);
    assert_eq!(user.thrown(), "out");
}

#[test]
fn a_rejection_that_nobody_handles_is_an_exception() {
    let cases = [
        ("async () => { null.x; }", "TypeError: cannot read property 'x' of null (load.js:1:35)"),
        ("() => { Promise.reject(new Error('lost')); }", "Error: lost (load.js:1:43)"),
        ("async () => { Promise.reject(7); await new Promise(() => {}); }", "7"),
        ("() => { queueMicrotask(() => { throw new RangeError('job'); }); }", "RangeError: job (load.js:1:57)"),
        ("() => { setTimeout(() => { throw new Error('timer'); }, 5); }", "Error: timer (load.js:1:53)"),
    ];
    for (function, thrown) in cases {
        let mut user = User::loaded(&format!("export default {function};"));
        assert_eq!(user.thrown(), thrown, "{function}");
        assert_eq!(user.thrown(), thrown, "once more: {function}");
    }
}

#[test]
fn a_rejection_that_is_handled_in_the_same_turn_is_none() {
    let text = "export default async () => {
        const refused = Promise.reject(new Error('late'));
        await null;
        return refused.catch((error) => error.message);
    };";
    assert_eq!(User::loaded(text).returned(), "\"late\"");
}

#[test]
fn a_promise_that_nothing_settles_does_not_hold_an_iteration() {
    let mut user = User::loaded("export default async () => { await new Promise(() => {}); };");
    assert_eq!(user.iterate(), Parked::Over(Ok(None)));
}

#[test]
fn variables_come_from_outside() {
    let mut user = User::loaded("const env = __ENV.TARGET; export default () => [env, __VU, __ITER];");
    assert_eq!(user.returned(), r#"["here",7,3]"#);
}

#[test]
fn a_shared_argument_is_the_same_object_in_each_call() {
    let mut user = User::loaded("export default (kept, anew) => [++kept.n, ++anew.n];");
    let (kept, anew): (Rc<str>, Rc<str>) = (r#"{"n": 0}"#.into(), r#"{"n": 0}"#.into());
    for expected in ["[1,1]", "[2,1]"] {
        let arguments = vec![Argument::SharedJson(Rc::clone(&kept)), Argument::Json(Rc::clone(&anew))];
        let call = Call { function: "default".into(), arguments, globals: vec![], result: ResultFormat::Json };
        assert_eq!(user.vm.call(call), Parked::Over(Ok(Some(expected.to_owned()))));
    }
}

#[test]
fn the_buffers_of_a_result_are_given_as_bytes() {
    let text = "export default () => {
        const bytes = new Uint8Array([0, 65, 255]);
        return { all: bytes.buffer, part: bytes.subarray(1), text: 'é' };
    };";
    let format = ResultFormat::JsonWithBytes;
    let call = Call { function: "default".into(), arguments: vec![], globals: vec![], result: format };
    let expected = r#"{"all":{"bytes":"\u0000Aÿ"},"part":{"bytes":"Aÿ"},"text":"é"}"#;
    assert_eq!(User::loaded(text).vm.call(call), Parked::Over(Ok(Some(expected.to_owned()))));
}

/// Jobs cannot be taken from the engine: they run before the user can be called again.
#[test]
fn the_next_call_does_not_run_jobs_of_an_exception() {
    let text = "let n = 0;
        export default () => {
            n += 1;
            if (n > 1) return n;
            Promise.resolve().then(() => { n += 10; throw new Error('too late'); });
            throw new Error('first');
        };";
    let mut user = User::loaded(text);
    assert_eq!(user.thrown(), "Error: first (load.js:6:23)");
    assert_eq!(user.returned(), "12");
}

#[test]
fn exports_are_read_as_json() {
    let mut user = User::loaded("export const options = { vus: 10, tags: ['a'] }; export function setup() {}");
    assert_eq!(user.vm.read("options"), Parked::Over(Ok(Some(r#"{"vus":10,"tags":["a"]}"#.to_owned()))));
    assert_eq!(user.vm.read("setup"), Parked::Over(Ok(None)));
    assert_eq!(user.vm.read("nothing"), Parked::Over(Ok(None)));
    assert_eq!(user.thrown(), "TypeError: the script exports no function `default`");
}

#[test]
fn the_console_says_what_it_is_given() {
    let text = "console.log('a', 1, { b: [2] }, undefined, null);
        console.error(new TypeError('bad')); console.warn(Symbol('s'), () => 1); console.debug(1n);
        const circle = {}; circle.self = circle; console.info(circle);";
    let user = User::loaded(text);
    let lines = user.host.lines.borrow();
    assert_eq!(lines[0], (Level::Info, r#"a 1 {"b":[2]} undefined null"#.to_owned()));
    assert_eq!(lines[1], (Level::Error, "TypeError: bad\n    at <anonymous> (load.js:2:27)".to_owned()));
    assert_eq!(lines[2], (Level::Warn, "a symbol function () {\n    [native code]\n}".to_owned()));
    assert_eq!(lines[3], (Level::Debug, "1".to_owned()));
    assert_eq!(lines[4], (Level::Info, "[object Object]".to_owned()));
}

#[test]
fn a_script_may_wait_while_it_is_loaded() {
    let text = "import { askLater } from 'wire'; const got = await askLater('a'); export default () => got;";
    let mut user = User::of(&program(text));
    user.answers.insert("a", vec!["top"]);
    assert_eq!(user.load(), Parked::Over(Ok(None)));
    assert_eq!(user.returned(), "\"top\"");
}
