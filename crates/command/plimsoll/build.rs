//! Strips the released program. Cargo 1.95 forgets `strip` of a profile for a package that has an
//! override in it, as this one has for its `opt-level`.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CARGO_PROFILE_RELEASE_STRIP");
    let released = var("PROFILE").is_ok_and(|profile| profile == "release");
    if released && var("CARGO_PROFILE_RELEASE_STRIP").is_err() {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
}
