//! What the integration tests of this crate start servers under: a warden.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(word) if word == "warden" => plimsoll_system::warden::main(arguments),
        other => {
            eprintln!("expected `warden`, found {other:?}");
            ExitCode::from(2)
        }
    }
}
