//! Runs the target that `PLIMSOLL_FUZZ_TARGET` names under libFuzzer.
#![no_main]

use plimsoll_fuzz::{TARGETS, Target};
use std::sync::LazyLock;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("PLIMSOLL_FUZZ_TARGET").unwrap_or_default();
    let known = || TARGETS.map(|target| target.name).join(", ");
    *TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| {
        eprintln!("PLIMSOLL_FUZZ_TARGET names a target: {}", known());
        std::process::exit(2);
    })
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| (TARGET.run)(input));
