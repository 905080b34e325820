//! Plimsoll runs performance studies: see the README for what that is, and `plimsoll help`.

use std::process::ExitCode;

mod arguments;
mod command;
mod exit;
mod forecast;
mod machine;
mod printable;
mod progress;
mod say;

/// Scripts allocate many small pieces of memory. This allocator also replaces `malloc`, for their engine, which is
/// written in C.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything else, and before any thread: a warden is this program in another role.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == command::WARDEN) {
        return plimsoll_system::warden::main(words);
    }
    command::run(arguments::Arguments::read()).unwrap_or_else(|failure| failure.report())
}
