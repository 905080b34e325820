//! Users that are stopped, wherever they are parked and whatever they would do about it.

use crate::common::{User, program};
use plimsoll_javascript::{End, Parked};

#[test]
fn a_stop_is_neither_caught_nor_put_off() {
    let bodies = [
        "ask('x');",
        "for (;;) { try { ask('x'); } catch (e) {} }",
        "for (;;) { try { ask('x'); } finally { ask('y'); continue; } }",
        "try { ask('x'); } finally { console.log('finally'); }",
        "[1, 2].map(() => { try { return ask('x'); } catch (e) { return ask('y'); } });",
        "JSON.stringify({ toJSON() { return ask('x'); } });",
        "return (async () => { for (;;) { try { await null; ask('x'); } catch (e) {} finally { ask('y'); } } })();",
        "return (async () => { try { await askLater('x'); } finally { console.log('finally'); } })();",
        "return Promise.all([askLater('x'), askLater('y')]).finally(() => console.log('finally'));",
        "setInterval(() => { try { ask('x'); } finally { console.log('finally'); } }, 1); ask('y');",
        "function* all() { try { yield ask('x'); } finally { console.log('finally'); } } for (const one of all()) {}",
        "new Proxy({}, { get() { return ask('x'); } }).field;",
    ];
    for body in bodies {
        let text = format!("import {{ ask, askLater }} from 'wire'; export default function () {{ {body} }}");
        let mut user = User::loaded(&text);
        assert_eq!(user.iterate(), Parked::Waiting, "{body}");
        assert_eq!(user.vm.stop(), Parked::Ended(End::Stopped), "{body}");
        assert!(user.vm.has_ended(), "{body}");
        assert_eq!(*user.host.lines.borrow(), [], "{body}");
    }
}

/// The engine frees what such a module waits for in the wrong order: its runtime is left where it is.
#[test]
fn a_user_is_stopped_while_its_modules_wait() {
    let mut user =
        User::of(&program("import { askLater, ask } from 'wire'; try { await askLater('x'); } finally { ask('y'); }"));
    assert_eq!(user.load(), Parked::Waiting);
    assert_eq!(user.vm.stop(), Parked::Ended(End::Stopped));
}

#[test]
fn a_user_is_stopped_between_its_calls_and_before_them() {
    let program = program("console.log('loaded'); export default () => 1;");
    let mut loaded = User::of(&program);
    assert_eq!(loaded.load(), Parked::Over(Ok(None)));
    assert_eq!(loaded.vm.stop(), Parked::Ended(End::Stopped));
    let mut unborn = User::of(&program);
    assert_eq!(unborn.vm.stop(), Parked::Ended(End::Stopped));
    assert_eq!(unborn.vm.stop(), Parked::Ended(End::Stopped), "and again");
    assert_eq!(*unborn.host.lines.borrow(), [], "it never ran");
}

#[test]
fn a_user_that_is_dropped_is_stopped() {
    let mut user =
        User::loaded("import { ask } from 'wire'; export default () => { for (;;) { try { ask('x'); } catch {} } };");
    assert_eq!(user.iterate(), Parked::Waiting);
    drop(user.vm);
    assert_eq!(std::rc::Rc::strong_count(&user.host), 1, "nothing of it is left");
}
