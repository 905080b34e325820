//! `kill -9` of a real process that writes a bundle. What it reported as sealed is there, what it had not sealed is
//! named, and the run resumes.

use crate::given;
use plimsoll_bundle::{BundleError, BundleWriter, Contents, read};
use plimsoll_model::start::Start;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// More starts than all the processes together can write.
const STARTS: u32 = 5_000;

/// The starts of the plan; all others are added to it two by two, like blocks that are run again.
const PLANNED: u32 = 20;

const KILLS: u64 = 20;

/// The environment variable that makes this test binary the process that will be killed; its value is the folder to
/// write to.
const FOLDER: &str = "PLIMSOLL_TEST_BUNDLE";

#[test]
fn kill_9_at_any_instant_leaves_whole_starts_whole() {
    if let Some(bundle) = std::env::var_os(FOLDER) {
        write_until_killed(Path::new(&bundle));
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (bundle, journal) = (folder.path().join("bundle"), folder.path().join("journal"));
    let mut unfinished = 0;
    for kill in 0..KILLS {
        let mut victim = spawn(&bundle);
        if kill % 2 == 1 {
            wait_for_a_start(&journal);
        }
        // The first kills hit the process while it begins or resumes, later ones in the middle of its starts.
        std::thread::sleep(Duration::from_micros(1_500 + 7_919 * (kill * 13 % KILLS)));
        victim.kill().and_then(|()| victim.wait()).expect("it was running");
        match read(&bundle) {
            Ok(contents) => {
                check(&contents, &announced(&journal));
                unfinished += contents.problems.iter().filter(|problem| problem.contains("was not finished")).count();
            }
            Err(error) => begin_anew(&bundle, &journal, &error),
        }
    }
    assert!(unfinished > 0, "no kill hit a start in the middle");
    go_on(&bundle);
}

/// Everything that was announced is there and intact. Beside it there may be one start for each kill that hit between
/// sealing and announcing.
fn check(contents: &Contents, announced: &[u32]) {
    let found = given::numbers(contents);
    assert_eq!(found, (1..=found.len() as u32).collect::<Vec<_>>());
    assert!(announced.iter().all(|number| found.contains(number)), "{announced:?} announced, {found:?} found");
    assert!(found.len() - announced.len() <= KILLS as usize, "{announced:?} announced, {found:?} found");
    contents.starts.iter().for_each(given::assert_whole);
    for problem in &contents.problems {
        let expected = ["did not come to its end", "left out", "versions.json"];
        assert!(expected.iter().any(|word| problem.contains(word)), "{problem}");
    }
    assert!(contents.problems.len() <= 3, "{:?}", contents.problems);
}

/// A process that was killed before it had written the study has left nothing to go on with.
fn begin_anew(bundle: &Path, journal: &Path, error: &BundleError) {
    assert!(announced(journal).is_empty(), "{error}");
    if bundle.exists() {
        fs::remove_dir_all(bundle).expect("a folder");
    }
}

/// Another run resumes the bundle of the killed ones and adds starts.
fn go_on(folder: &Path) {
    let before = given::numbers(&read(folder).expect("a bundle"));
    assert!(!before.is_empty(), "no process got as far as a start");
    let mut bundle = given::resume(folder, PLANNED);
    assert_eq!(bundle.recorded().starts.keys().copied().collect::<Vec<_>>(), before);
    let next = before.len() as u32 + 1;
    given::tell_versions(&mut bundle, &given::versions());
    (next..next + 3).for_each(|number| seal(&mut bundle, number));
    let contents = read(folder).expect("a bundle");
    assert_eq!(given::numbers(&contents), (1..next + 3).collect::<Vec<_>>());
    assert_eq!(contents.problems.len(), 1, "only that the run has not ended: {:?}", contents.problems);
}

fn spawn(bundle: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "crash::kill_9_at_any_instant_leaves_whole_starts_whole"])
        .env(FOLDER, bundle)
        .stdout(Stdio::null())
        .spawn()
        .expect("this test can be started")
}

/// Waits for the first announced start, however slow the disk is.
fn wait_for_a_start(journal: &Path) {
    let before = announced(journal).len();
    let begun = Instant::now();
    while announced(journal).len() == before {
        assert!(begun.elapsed() < Duration::from_secs(60), "no start was sealed in a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The starts that the processes said were sealed.
fn announced(journal: &Path) -> Vec<u32> {
    let text = fs::read_to_string(journal).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    whole.map(|line| line.parse().expect("a number")).collect()
}

/// Runs a start, which is added to the plan if need be.
fn seal(bundle: &mut BundleWriter, number: u32) {
    let known = |start: &Start| start.number == number;
    if number > PLANNED && !bundle.recorded().decided.iter().any(known) {
        [number, number + 1].map(given::start).iter().for_each(|start| given::decide(bundle, start));
    }
    given::seal(bundle, number);
}

/// The work of the process that is killed.
fn write_until_killed(folder: &Path) {
    let journal = folder.with_file_name("journal");
    let mut journal = OpenOptions::new().append(true).create(true).open(journal).expect("a file");
    let mut bundle = if folder.exists() {
        given::resume(folder, PLANNED)
    } else {
        let plan = given::plan(PLANNED);
        BundleWriter::create(folder, given::STUDY, &given::facts(), &plan, &given::host()).expect("disk")
    };
    given::tell_versions(&mut bundle, &given::versions());
    for number in (1..=STARTS).filter(|number| !bundle.recorded().starts.contains_key(number)).collect::<Vec<_>>() {
        seal(&mut bundle, number);
        journal.write_all(format!("{number}\n").as_bytes()).expect("disk");
    }
}
