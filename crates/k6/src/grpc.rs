//! The module `k6/net/grpc`: clients, their calls and streams. `schema` knows what messages mean, `reflection` asks
//! servers for that, `calls` makes calls, `params` reads what scripts say of them.
#![expect(elided_lifetimes_in_paths, reason = "what the bindings derive names types without their lifetimes")]

mod calls;
mod client;
mod params;
mod reflection;
mod schema;
mod stream;

use crate::module;
use client::Client;
use plimsoll_script::NativeModule;
use rquickjs::class::{Class, JsClass};
use rquickjs::module::Exports;
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

/// Status codes that are made here.
mod status {
    pub(super) const OK: u16 = 0;
    pub(super) const DEADLINE_EXCEEDED: u16 = 4;
    pub(super) const UNIMPLEMENTED: u16 = 12;
    pub(super) const INTERNAL: u16 = 13;
}

impl NativeModule for Grpc {
    const NAME: &'static str = "k6/net/grpc";
    const EXPORTS: &'static [&'static str] = &[
        "default",
        "Client",
        "Stream",
        STATUSES[0],
        STATUSES[1],
        STATUSES[2],
        STATUSES[3],
        STATUSES[4],
        STATUSES[5],
        STATUSES[6],
        STATUSES[7],
        STATUSES[8],
        STATUSES[9],
        STATUSES[10],
        STATUSES[11],
        STATUSES[12],
        STATUSES[13],
        STATUSES[14],
        STATUSES[15],
        STATUSES[16],
        HEALTH[0],
        HEALTH[1],
        HEALTH[2],
        HEALTH[3],
    ];

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        let module = Object::new(ctx.clone())?;
        module.set(Client::NAME, Class::<Client>::create_constructor(ctx)?)?;
        module.set(Stream::NAME, Class::<Stream<'js>>::create_constructor(ctx)?)?;
        for names in [&STATUSES[..], &HEALTH] {
            names.iter().enumerate().try_for_each(|(number, name)| module.set(*name, number))?;
        }
        module::export(exports, &module, Self::EXPORTS)
    }
}
