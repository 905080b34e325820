//! A web service that plans data products: which ones a dataset has, which is made from which others, and how far each
//! is. Its plans are in PostgreSQL. Whoever makes the products reports here, and is told what to make next.
//!
//! It is the system that the study `planner-capacity` measures, and stands in for a service of the same purpose whose
//! code has another licence: the same endpoints and tables, the same rules, the same slow search, none of the code.
//!
//! `planner migrate` creates the schema in the database of `DATABASE_URL`. `planner serve --listen ADDRESS:PORT` serves
//! with at most `MAX_CONNECTIONS` connections, and prints a line whenever a request waited long for one.

mod api;
mod app;
mod error;
mod extract;
mod hs256;
mod pages;
mod plan;
mod pool;
mod server;
mod settings;
mod store;
mod token;

use settings::Failure;
use std::io::{Write, stdout};
use std::net::SocketAddr;
use std::process::ExitCode;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned()).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("planner: {}", failure.reason());
            ExitCode::from(failure.status())
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["migrate"] => runtime()?.block_on(server::migrate()),
        ["serve", "--listen", address] => runtime()?.block_on(server::serve(listen_address(address)?)),
        ["version"] => writeln!(stdout(), "{} {}", env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .map_err(|error| Failure::Run(format!("the version cannot be printed: {error}"))),
        other => Err(Failure::Setting(format!(
            "expected `migrate`, `serve --listen ADDRESS:PORT` or `version`, found `{}`",
            other.join(" ")
        ))),
    }
}

fn listen_address(text: &str) -> Result<SocketAddr, Failure> {
    text.parse()
        .map_err(|_| Failure::Setting(format!("--listen is `{text}`: expected ADDRESS:PORT, as 127.0.0.1:3000")))
}

fn runtime() -> Result<Runtime, Failure> {
    Runtime::new().map_err(|error| Failure::Run(format!("no thread starts: {error}")))
}
