//! The module `k6/net/grpc`: clients, their calls and streams. `reflection` asks servers
//! for their services, `calls` makes calls, `params` reads the parameters of scripts.
#![expect(elided_lifetimes_in_paths, reason = "what the bindings derive names types without their lifetimes")]

mod calls;
mod client;
mod params;
mod reflection;
mod stream;

use crate::native::joined;
use client::Client;
use plimsoll_javascript::NativeModule;
use rquickjs::class::{Class, JsClass};
use rquickjs::{Ctx, Object, Result};
use stream::Stream;

/// See the module.
pub(crate) struct Grpc;

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
