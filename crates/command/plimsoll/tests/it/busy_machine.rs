//! Runs on a machine that others use, and runs that are given a time.

use crate::common::{Place, TINY, edited};
use std::process::{Child, Command, Stdio};

/// A process for each processor that does nothing but use it.
struct Others(Vec<Child>);

impl Others {
    fn start() -> Others {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let busy = || Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn();
        Others((0..processors).map(|_| busy().expect("a shell")).collect())
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// [`TINY`] with a generator that is always later than it may be.
fn always_late() -> String {
    TINY.replace("repeats  = 2", "repeats  = 5").replace("max_lateness = \"10s\"", "max_lateness = \"1us\"")
}

#[test]
fn a_run_breaks_off_where_others_void_block_after_block_and_goes_on_later() {
    let place = Place::with_study(&always_late());
    let others = Others::start();
    let ended = place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with(4);
    let _ = ended.says(&[
        "others use ",
        " (pid ",
        " cores meanwhile",
        "the last 3 blocks do not count, because the generator fell behind while others used",
        "the run ends here",
        "plimsoll run study.toml --resume --out bundle",
    ]);
    assert!(place.read("bundle/events.jsonl").contains("machine_observed"));
    let sealed = |place: &Place| place.read("bundle/manifest.jsonl").matches("\"start ").count();
    let report = place.read("bundle/report/report.md");
    assert!(report.contains("the run broke off after 3 blocks in a row that do not count"), "{report}");
    let before = sealed(&place);
    assert!((3..=9).contains(&before), "three blocks of three at most: {before}");
    let again = place.plimsoll(&["run", "study.toml", "--resume", "--out", "bundle"]).with(4);
    let _ = again.says(&["the run ends here"]);
    assert!(sealed(&place) > before, "it tried again");
    drop(others);
    let ended = place.plimsoll(&["run", "study.toml", "--resume", "--keep-going", "--out", "bundle"]);
    assert!(!ended.stderr.contains("the run ends here"), "{}", ended.stderr);
    assert!(place.read("bundle/manifest.jsonl").contains("complete"));
}

#[test]
fn a_time_gives_as_many_repeats_as_fit() {
    let place = Place::with_study(TINY);
    // Three trials of 350 ms are a repeat.
    let ended = place.plimsoll(&["plan", "study.toml", "--for", "5s"]).with(0);
    ended.prints(&["repeats     4: as many as fit into 5 s under load"]);
    place
        .plimsoll(&["plan", "study.toml", "--for", "3s"])
        .with(2)
        .says(&["expected at least 4 s for `--for`, found 3 s", "an interval takes 3 repeats of this study"]);
    place.plimsoll(&["plan", "study.toml", "--for", "5"]).with(2).says(&["90s, 10m or 1h30m"]);
    let both = ["run", "study.toml", "--for", "5s", "--until-decided"];
    place.plimsoll(&both).with(2).says(&["cannot be used with"]);
}

#[test]
fn a_time_gives_more_starts_rather_than_long_ones() {
    let in_turns = TINY.replace("design   = \"trials\"\n", "").replace("\"300ms\"", "\"10s\"");
    let place = Place::with_study(&in_turns);
    place.plimsoll(&["plan", "study.toml"]).with(0).prints(&["34 slices of 300 ms for each", "repeats     2\n"]);
    let shorter = place.plimsoll(&["plan", "study.toml", "--for", "5m"]).with(0);
    shorter.prints(&["10 slices of 300 ms for each", "repeats     25: as many as fit into 5 min under load"]);
    // A number in the study stands.
    let given = Place::with_study(&format!("{in_turns}\n[turns]\ncount = 20\n"));
    given.plimsoll(&["plan", "study.toml", "--for", "5m"]).with(0).prints(&["20 slices of 300 ms for each"]);
}

#[test]
fn a_run_of_a_given_time_tells_forecasts_and_says_so_in_its_report() {
    // A busy machine may answer nothing for a third of a second.
    let place = Place::with_study(&edited(TINY, "\"300ms\"", "\"1s\""));
    let ended = place.plimsoll(&["run", "study.toml", "--for", "10s", "--out", "bundle"]);
    let of_trial = |line: &str| line.strip_suffix(" iterations")?.rsplit(' ').next()?.parse::<u32>().ok();
    let iterations: Vec<u32> = ended.stderr.lines().filter_map(of_trial).collect();
    assert_eq!(iterations.len(), 9, "{}", ended.stderr);
    // On a machine that does other things as well a trial may be too short for its median.
    if iterations.iter().all(|count| *count >= 40) {
        let _ = ended.says(&["forecast: "]);
    }
    let report = place.read("bundle/report/report.md");
    assert!(report.contains("The run was given 10 s under load, and 3 repeats fit into that."), "{report}");
    place.plimsoll(&["run", "study.toml", "--for", "10s", "--resume", "--out", "bundle"]).says(&["is complete"]);
    place.plimsoll(&["run", "study.toml", "--resume", "--out", "bundle"]).with(2).says(&["its plan differs"]);
}

#[test]
fn a_system_that_takes_long_to_stop_is_named() {
    let ignores = r#"start = "sh -c 'trap \"\" TERM; \"$0\" demo-server --mode {mode} --listen {address} & wait; sleep 60' '{plimsoll}'""#;
    let study = TINY.replace(crate::common::START, &format!("{ignores}\nstop = {{ grace = \"3s\" }}"));
    let place = Place::with_study(&study.replace("repeats  = 2", "repeats  = 2\nnoise_floor = false"));
    let ended = place.plimsoll(&["run", "study.toml", "--out", "bundle"]);
    let said = "stopping `counter` takes 3 s on each start";
    let ended = ended.says(&[said, "does not end after its stop signal and is killed"]);
    assert_eq!(ended.stderr.matches(said).count(), 1, "once, and not for each of four trials");
    assert!(place.read("bundle/report/report.md").contains(said));
}
