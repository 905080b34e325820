//! What users of scripts take, and what they leave behind, of the memory of the process. One test, in a program of its
//! own: beside others, it would count theirs.

use plimsoll_javascript::rquickjs::{Ctx, Function, Object, Result};
use plimsoll_javascript::{
    Call, Entry, EventLoop, Files, Host, Level, Limits, NativeModule, Natives, Operations, Parked, Program,
    ResultFormat, Setup, Vm,
};
use plimsoll_model::units::{Instant, Nanos};
use std::rc::Rc;
use std::sync::Arc;

/// Operations that nobody answers.
struct Silent;

impl Operations for Silent {
    type Op = ();
    type Event = ();
}

impl NativeModule for Silent {
    const NAME: &'static str = "silent";
    const EXPORTS: &'static [&'static str] = &["sleep"];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let sleep = |ctx: Ctx<'js>| EventLoop::<Silent>::of(&ctx)?.sleep(&ctx, Nanos(1));
        let module = Object::new(ctx.clone())?;
        module.set("sleep", Function::new(ctx.clone(), sleep)?)?;
        Ok(module)
    }
}

struct Still;

impl Host for Still {
    fn now(&self) -> Instant {
        Instant(0)
    }

    fn console(&self, _: Level, _: &str) {}
}

#[test]
fn users_take_what_they_need_and_leave_nothing() {
    let idle = program(
        "import { sleep } from 'silent';
         let count = 0;
         export const options = { vus: 10 };
         export default function () { count += 1; sleep(); }",
    );
    let before = resident();
    let users: Vec<_> = (0..1000).map(|_| parked(&idle)).collect();
    let each = (resident() - before) / users.len();
    // That of a user who waits is mostly the engine's own objects: some 120 KB.
    assert!(each < 150_000, "{each} bytes a user");
    eprintln!("{each} bytes a user");
    drop(users);

    let busy = program(
        "import { sleep } from 'silent';
         const all = Array.from({ length: 1000 }, (_, i) => ({ i, circle: null }));
         all.forEach((one) => { one.circle = all; });
         export default function () {
             setInterval(() => {}, 1000);
             Promise.reject(new Error('handled')).catch(() => {});
             for (;;) { try { sleep(); } finally { sleep(); } }
         }",
    );
    leaves_nothing(&busy);

    let common_js = program(
        "const { sleep } = require('silent');
         exports.all = Array.from({ length: 1000 }, (_, i) => ({ i, module }));
         try { require('none'); } catch (error) { exports.error = error; }
         exports.default = () => { for (;;) sleep(); };",
    );
    leaves_nothing(&common_js);
}

fn leaves_nothing(program: &Arc<Program>) {
    (0..1000).for_each(|_| drop(parked(program)));
    let before = resident();
    (0..9000).for_each(|_| drop(parked(program)));
    let grown = resident().saturating_sub(before);
    // Had one in a hundred stayed, it would be 27 MB.
    assert!(grown < 8 << 20, "{grown} bytes stay of 9,000 users");
}

/// A user in the middle of its first iteration.
fn parked(program: &Arc<Program>) -> Vm<Silent> {
    let setup = Setup { limits: Limits::default(), host: Rc::new(Still), globals: vec![], prepare: None };
    let mut user = Vm::new(program, setup).expect("there is room for a stack");
    assert_eq!(user.load(), Parked::Over(Ok(None)));
    let call = Call { function: "default".into(), arguments: vec![], globals: vec![], result: ResultFormat::Nothing };
    assert_eq!(user.call(call), Parked::Waiting);
    user
}

fn program(text: &str) -> Arc<Program> {
    let files = Files::within(["."]).expect("the folder is there");
    let natives = Natives::default().with::<Silent>();
    match Program::load(Entry::Text { name: "load.js", text }, files, natives) {
        Ok(program) => program,
        Err(faults) => panic!("{}", faults[0]),
    }
}

/// Bytes of the process that are in memory.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("pages") * 4096
}
