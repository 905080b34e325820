//! The module `k6/net/grpc`: clients, their calls and streams. `schema` knows what messages mean, `asking` asks servers
//! for that by `reflection`, `calls` makes calls, `params` reads what scripts say of them.
#![expect(elided_lifetimes_in_paths, reason = "what the bindings derive names types without their lifetimes")]

mod asking;
mod calls;
mod client;
mod params;
pub mod reflection;
mod schema;
pub mod status;
mod stream;

use crate::module::joined;
use client::Client;
use plimsoll_javascript::NativeModule;
use rquickjs::class::{Class, JsClass};
use rquickjs::{Ctx, Object, Result};
use stream::Stream;

pub use schema::Schemas;

/// See the module.
pub struct Grpc;

/// Statuses of calls, in the order of their numbers.
const STATUSES: [&str; 17] = [
    "StatusOK",
    "StatusCanceled",
    "StatusUnknown",
    "StatusInvalidArgument",
    "StatusDeadlineExceeded",
    "StatusNotFound",
    "StatusAlreadyExists",
    "StatusPermissionDenied",
    "StatusResourceExhausted",
    "StatusFailedPrecondition",
    "StatusAborted",
    "StatusOutOfRange",
    "StatusUnimplemented",
    "StatusInternal",
    "StatusUnavailable",
    "StatusDataLoss",
    "StatusUnauthenticated",
];

/// Answers to health checks, in the order of their numbers; the last one is spelt as k6 has it.
const HEALTH: [&str; 4] =
    ["HealthCheckUnknown", "HealthCheckServing", "HealthCheckNotServing", "HealthCheckServiceUnkown"];

impl NativeModule for Grpc {
    const NAME: &'static str = "k6/net/grpc";
    const EXPORTS: &'static [&'static str] = &joined::<24>(&[&["default", "Client", "Stream"], &STATUSES, &HEALTH]);

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let module = Object::new(ctx.clone())?;
        module.set(Client::NAME, Class::<Client>::create_constructor(ctx)?)?;
        module.set(Stream::NAME, Class::<Stream<'js>>::create_constructor(ctx)?)?;
        for names in [&STATUSES[..], &HEALTH] {
            names.iter().enumerate().try_for_each(|(number, name)| module.set(*name, number))?;
        }
        Ok(module)
    }
}
