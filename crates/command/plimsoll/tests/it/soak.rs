//! Soak tests: what changes over the time of a load.

use crate::common::{Place, START, TINY, edited};

/// One system, under load for so long.
fn study(start: &str, seconds: u32) -> String {
    let one = edited(TINY, "mode  = { levels = [\"mutex\", \"inputQ\"], compare = true, baseline = \"mutex\" }\n", "");
    let one = edited(&edited(&one, START, start), "design   = \"trials\"\nrepeats  = 2", "repeats = 1");
    edited(&one, "duration = \"300ms\"", &format!("profile = \"soak\"\nduration = \"{seconds}s\""))
}

#[test]
fn memory_that_grows_is_told_with_its_pace() {
    let place = Place::with_study(&study("start = \"sh leaks.sh '{plimsoll}' {address}\"", 20));
    // A second process of the system keeps half a megabyte more each fifth of a second.
    let leaks = "import os, time\nkept = []\nwhile True:\n    kept.append(os.urandom(500_000))\n    time.sleep(0.2)\n";
    place.write("leaks.py", leaks);
    place.write("leaks.sh", "python3 leaks.py &\n\"$1\" demo-server --mode mutex --listen \"$2\"\n");
    place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with_any_verdict();
    place.nothing_runs();
    let report = place.read("bundle/report/report.md");
    for told in [
        "Mean memory of counter: over 20 s of load the system changes by +",
        ", from the first half to the second, and goes on",
        "## Over the time of a load",
        "what is measured becomes worse, and still did at its end",
        " per hour",
    ] {
        assert!(report.contains(told), "{told}:\n{report}");
    }
}
