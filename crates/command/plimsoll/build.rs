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
        if packed_relocations_load() {
            println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        }
    }
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
