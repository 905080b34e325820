//! Prints docs/method-evidence.md; or, given names of simulations, their sections alone.
#![expect(clippy::print_stdout, reason = "the page goes to the standard output")]

use plimsoll_evidence::page::page;
use plimsoll_evidence::replicates::Effort;
use plimsoll_evidence::sections::ALL;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let simulations = ALL.iter().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|one| one == name));
    let sections: Vec<_> = simulations.flat_map(|(_, make)| make(Effort::full())).collect();
    print!("{}", page(&sections));
}
