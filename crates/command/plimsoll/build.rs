//! Makes the released program smaller where Cargo's profiles cannot.

use std::env::var;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CARGO_PROFILE_RELEASE_STRIP");
    if var("PROFILE").is_ok_and(|profile| profile == "release") {
        // Cargo 1.95 forgets `strip` of a profile for a package that has an override in it, as this
        // one has for its `opt-level`.
        if var("CARGO_PROFILE_RELEASE_STRIP").is_err() {
            println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
        }
        if linker_is_rusts_own() {
            println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
        }
        if packed_relocations_load() {
            println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        }
    }
}

/// Whether the linker is the one that comes with Rust, as it is on this target from 1.90 on unless
/// another one was chosen. It can keep functions with the same code once. No code here depends on the
/// addresses of functions, but for a few of QuickJS that nothing else is equal to; tables of
/// functions and other data keep addresses of their own.
fn linker_is_rusts_own() -> bool {
    let flags = var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let is_chosen = var("RUSTC_LINKER").is_ok() || ["linker", "fuse-ld"].iter().any(|word| flags.contains(word));
    let version = Command::new(var("RUSTC").unwrap_or_default()).arg("--version").output();
    let version = version.ok().filter(|output| output.status.success()).and_then(|output| rustc(&output.stdout));
    var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu") && !is_chosen && version >= Some((1, 90))
}

/// The version in a line such as `rustc 1.95.0 (1a2b3c4d5 2026-04-14)`.
fn rustc(line: &[u8]) -> Option<(u32, u32)> {
    let mut numbers = std::str::from_utf8(line).ok()?.strip_prefix("rustc ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Whether programs that are linked here may keep their relocations packed, as bitmaps: 1.6 MB of
/// this program. The loader knows them from glibc 2.36 on, and an older one refuses the program.
fn packed_relocations_load() -> bool {
    let here = var("HOST").is_ok() && var("HOST") == var("TARGET");
    here && Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .is_ok_and(|output| output.status.success() && glibc(&output.stdout) >= Some((2, 36)))
}

/// The version in a line such as `glibc 2.36`.
fn glibc(line: &[u8]) -> Option<(u32, u32)> {
    let (major, minor) = std::str::from_utf8(line).ok()?.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
