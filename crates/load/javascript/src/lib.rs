//! Scripts on fibres: a user of a script is a runtime of QuickJS on a stack of its own, so a blocking call
//! parks the user and not the thread.
//!
//! The crate knows neither k6 nor sockets. [`Program::load`] reads a script with all its modules, reports their faults,
//! and compiles them once. A [`Vm`] is a user: it runs until it waits, and hands out its [`Request`]s. Whoever runs it
//! carries these out and wakes it with their events ([`Vm::wake`]). Modules in Rust ([`NativeModule`]) start operations
//! through [`EventLoop::of`], and may park at any depth:
//!
//! ```
//! use plimsoll_javascript::{Argument, Call, Entry, EventLoop, Files, Host, Level, Limits, NativeModule, Natives};
//! use plimsoll_javascript::{Operations, Parked, Program, Request, ResultFormat, Setup, Vm, Wakeup};
//! use rquickjs::{Ctx, Function, Object};
//! use std::rc::Rc;
//!
//! /// The operations of this example: a number, whose event is a number.
//! struct Numbers;
//! impl Operations for Numbers {
//!     type Op = u32;
//!     type Event = u32;
//! }
//!
//! /// The module `numbers`, whose `ask` blocks the script.
//! impl NativeModule for Numbers {
//!     const NAME: &'static str = "numbers";
//!     const EXPORTS: &'static [&'static str] = &["ask"];
//!     fn evaluate<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
//!         let ask = |ctx: Ctx<'js>, number: u32| EventLoop::<Numbers>::of(&ctx)?.call(&ctx, number);
//!         let module = Object::new(ctx.clone())?;
//!         module.set("ask", Function::new(ctx.clone(), ask)?)?;
//!         Ok(module)
//!     }
//! }
//!
//! struct Clock;
//! impl Host for Clock {
//!     fn now(&self) -> plimsoll_model::units::Instant { plimsoll_model::units::Instant(0) }
//!     fn console(&self, _: Level, line: &str) { println!("{line}"); }
//! }
//!
//! let text = "import { ask } from 'numbers'; export default function (n) { return ask(n) + 1; }";
//! let natives = Natives::default().with::<Numbers>();
//! let files = Files::within(["."])?;
//! let program = Program::load(Entry::Text { name: "-", text }, files, natives).expect("it has no faults");
//!
//! let setup = Setup { limits: Limits::default(), host: Rc::new(Clock), globals: vec![], prepare: None };
//! let mut user = Vm::<Numbers>::new(&program, setup)?;
//! assert_eq!(user.load(), Parked::Over(Ok(None)));
//!
//! let arguments = vec![Argument::Number(20.0)];
//! let call = Call { function: "default".into(), arguments, globals: vec![], result: ResultFormat::Json };
//! assert_eq!(user.call(call), Parked::Waiting);
//! let Some(Request::Start(id, 20)) = user.next_request() else { panic!("it asks") };
//! assert_eq!(user.wake(id, Wakeup::Operation(41)), Parked::Over(Ok(Some("42".to_owned()))));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Scripts control nothing but their own time and memory: they read files in allowed folders only, and reach the network
//! only through operations.
//!
//! Notes for modules in Rust:
//! - `JSON.stringify` and `Object.keys` do not see getters on a prototype: give classes a `toJSON`.
//! - A long native is one step for the engine: its loops say what they do by [`busy::spend`].
//! - The engine counts no memory but its own: natives keep what may become large in [`HeldBytes`].
//! - A native must not panic: the bindings turn a panic into an exception, which the script may catch.
//! - An error of [`EventLoop::call`], [`EventLoop::sleep`] and [`EventLoop::next`] means that the user is stopped: return
//!   it.
//! - The engine has no `URL`, `TextEncoder`, `crypto`, `structuredClone` or `Intl` of its own.

mod access;
mod binary;
mod bounds;
pub mod busy;
mod commonjs;
mod compile;
mod copies;
mod event_loop;
mod exception;
mod fault;
pub mod fibre;
mod files;
mod globals;
mod graph;
mod held;
mod import_meta;
mod module;
mod native;
mod nesting;
mod program;
mod reading;
mod scan;
mod stack;
mod typescript;
mod vm;

pub use binary::binary;
pub use copies::{Copies, Copy, FOLDER_OF_COPIES, HASHES_OF_COPIES, RemoteImport};
pub use event_loop::{EventLoop, Handler, Host, Level, OpId, Operations, Request, Then, Wakeup};
pub use fault::{Exception, Fault, ImportChain, Place};
pub use files::{FileError, Files, project_of};
pub use globals::Argument;
pub use held::{HELD_OF_MEMORY, Held, HeldBytes, HeldMemory};
pub use native::{NativeModule, Natives};
pub use program::Program;
pub use reading::{Entry, remote_imports};
pub use rquickjs;
pub use vm::{Call, End, Limit, Limits, Parked, Prepare, ResultFormat, Setup, Vm};
