//! Seeded faults: each run of a small study meets one at a random instant, goes on with `--resume`, and ends with nothing
//! lost, doubled or left. docs/reliability.md has the count of a long campaign; `PLIMSOLL_FAULTS` says how many this one
//! has, and `PLIMSOLL_FAULTS_SEED` with which it begins.

mod surroundings;

use crate::common::{Ended, Place, Process, Started, TINY, edited, files, standing};
use plimsoll_bundle::Contents;
use plimsoll_testkit::{ControlGroup, Limit, skipped};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use surroundings::{SmallDisk, SteppedClock, in_shell};

const RUN: [&str; 4] = ["run", "study.toml", "--out", "bundle"];
const RESUME: [&str; 5] = ["run", "study.toml", "--resume", "--out", "bundle"];

/// How many faults there are unless the environment says otherwise.
const FAULTS: u64 = 50;

/// How many run at the same time: they wait most of the time.
const AT_ONCE: u64 = 4;

/// The latest instant of a fault: about as long as the study takes.
const LATEST: Duration = Duration::from_millis(2500);

/// Processes that a fault hits.
#[derive(Clone, Copy, Debug)]
enum Victims {
    Plimsoll,
    Warden,
    System,
    /// Plimsoll, which is stopped first so that it cannot see its wardens end, and all wardens.
    PlimsollAndWardens,
}

/// What happens to a run.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// A signal.
    Signal(Victims, Signal),
    /// They stand still, and go on after a while.
    Pause(Victims, Duration),
    /// `ulimit`: `-n` open files, or `-f` blocks of 512 bytes in a file.
    Limit(&'static str, u32),
    /// The disk of the bundle has so many KiB.
    FullDisk(u32),
    /// All processes together have so many MiB.
    Memory(u32),
    /// There are so many ports for connections and for systems that take any, in a network of the run's own.
    Ports(u32),
    /// The date of all processes moves by so many seconds.
    ClockStep(i64),
}

impl Fault {
    fn draw(random: &mut Pcg64Mcg) -> Fault {
        use Victims::{Plimsoll, PlimsollAndWardens, System, Warden};
        let pause = Duration::from_millis(u64::from(50 + random.next_u32() % 1200));
        match random.next_u32() % 18 {
            0 | 1 => Fault::Signal(Plimsoll, Signal::KILL),
            2 => Fault::Signal(PlimsollAndWardens, Signal::KILL),
            3 => Fault::Signal(Plimsoll, Signal::INT),
            4 => Fault::Signal(Plimsoll, Signal::TERM),
            5 => Fault::Signal(Plimsoll, Signal::HUP),
            6 => Fault::Signal(Plimsoll, Signal::QUIT),
            7 => Fault::Signal(Warden, Signal::KILL),
            8 => Fault::Signal(System, Signal::KILL),
            9 => Fault::Signal(System, Signal::TERM),
            10 => Fault::Pause(Plimsoll, pause),
            11 => Fault::Pause(Warden, pause),
            12 => Fault::Pause(System, pause),
            13 if random.next_u32().is_multiple_of(2) => Fault::Limit("-n", 6 + random.next_u32() % 60),
            13 => Fault::Limit("-f", random.next_u32() % 100),
            14 => Fault::FullDisk(16 + random.next_u32() % 240),
            15 => Fault::Memory(8 + random.next_u32() % 64),
            16 => Fault::Ports(1 + random.next_u32() % 12),
            _ => {
                // From six minutes to two months, forth or back.
                let seconds = 360 << (random.next_u32() % 15);
                Fault::ClockStep(if random.next_u32().is_multiple_of(2) { seconds } else { -seconds })
            }
        }
    }

    /// Why this machine cannot have it, if it cannot.
    fn missing(self) -> Option<&'static str> {
        match self {
            Fault::FullDisk(_) if !geteuid().is_root() => Some("full disks: only root may mount a small one"),
            Fault::Memory(mib) if !Limit::Memory(mib).is_possible() => {
                Some("too little memory: no control group can be made")
            }
            Fault::Ports(_) if !surroundings::can_have_a_network() => {
                Some("too few ports: no network can be made (root, `unshare`, `ip`)")
            }
            Fault::ClockStep(_) if SteppedClock::library().is_none() => {
                Some("steps of the clock: the library that makes them cannot be built (`cc`)")
            }
            _ => None,
        }
    }
}

/// The study in trials or in turns, short.
fn study(in_turns: bool) -> String {
    let short = edited(&edited(TINY, "\"300ms\"", "\"150ms\""), "repeats  = 2", "repeats  = 2\nnoise_floor = false");
    let turns = "design   = \"turns\"\nturns    = { count = 4, slice = \"50ms\", settle = \"20ms\" }";
    if in_turns { edited(&short, "design   = \"trials\"", turns) } else { short }
}

#[test]
fn whatever_happens_to_a_run_nothing_is_lost_doubled_or_left() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let (count, first) = (number("PLIMSOLL_FAULTS").unwrap_or(FAULTS), number("PLIMSOLL_FAULTS_SEED").unwrap_or(1));
    let may_be_missing = [Fault::FullDisk(1), Fault::Memory(1), Fault::Ports(1), Fault::ClockStep(1)];
    may_be_missing.into_iter().filter_map(Fault::missing).for_each(|why| skipped(format!("among the faults {why}")));
    let next = AtomicU64::new(first);
    let kinds = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= first + count {
                            return kinds;
                        }
                        *kinds.entry(one_fault(seed)).or_default() += 1;
                    }
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a fault found something")).collect::<Vec<_>>()
    });
    let mut all: BTreeMap<String, u32> = BTreeMap::new();
    kinds.into_iter().flatten().for_each(|(kind, count)| *all.entry(kind).or_default() += count);
    eprintln!("{count} faults from seed {first}: {all:?}");
}

/// One run with its fault, and what must hold after it. Returns what happened.
fn one_fault(seed: u64) -> String {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let drawn = Fault::draw(&mut random);
    let fault = if drawn.missing().is_some() { Fault::Signal(Victims::Plimsoll, Signal::KILL) } else { drawn };
    let place = Place::with_study(&study(seed.is_multiple_of(2)));
    let after = LATEST.mul_f64(f64::from(random.next_u32()) / f64::from(u32::MAX));
    let case = format!("seed {seed}, {fault:?} after {after:?}");
    // Named in the output of a test that fails.
    eprintln!("{case}");
    let disk = match fault {
        Fault::FullDisk(size) => Some(SmallDisk::mount(&place.path("disk"), size)),
        _ => None,
    };
    if disk.is_some() {
        std::os::unix::fs::symlink("disk/bundle", place.path("bundle")).unwrap();
        fs::create_dir(place.path("disk/bundle")).unwrap();
    }
    let ended = run_with(&place, fault, after, &mut random);
    assert!(!ended.stderr.contains("panicked"), "{case}: {}", ended.stderr);
    if matches!(fault, Fault::ClockStep(_)) {
        assert!(ended.code().is_some_and(|code| [0, 1, 4].contains(&code)), "{case}: the run goes on: {ended:?}");
    }
    if !matches!(fault, Fault::Signal(Victims::PlimsollAndWardens, _)) {
        place.wait_for_silence();
    }
    if let Some(disk) = &disk {
        disk.grow();
    }
    check_after(&place, &case, &ended);
    let kind: String = format!("{fault:?}").chars().filter(|character| !character.is_ascii_digit()).collect();
    format!("{kind}, exit {:?}", ended.code())
}

fn run_with(place: &Place, fault: Fault, after: Duration, random: &mut Pcg64Mcg) -> Ended {
    let (victims, act): (Victims, &dyn Fn(&Process)) = match fault {
        Fault::Limit(flag, most) => {
            return Started::new(in_shell(&place.command(&RUN), &format!("ulimit {flag} {most}"))).end();
        }
        Fault::Memory(mib) => {
            let group = ControlGroup::with(Limit::Memory(mib)).expect("it was looked for");
            return Started::new(in_shell(&place.command(&RUN), &group.enter())).end();
        }
        Fault::Ports(count) => {
            return Started::new(surroundings::in_network_of(&place.command(&RUN), count)).end();
        }
        Fault::FullDisk(_) => return place.plimsoll(&RUN),
        Fault::ClockStep(seconds) => {
            let mut command = place.command(&RUN);
            let clock = SteppedClock::of(&mut command, &place.path("clock step"));
            let run = Started::new(command);
            std::thread::sleep(after);
            clock.step(seconds);
            return run.end();
        }
        Fault::Signal(victims, signal) => (victims, &move |one: &Process| send(one, signal)),
        Fault::Pause(victims, length) => (victims, &move |one: &Process| {
            send(one, Signal::STOP);
            std::thread::sleep(length);
            send(one, Signal::CONT);
        }),
    };
    let run = place.start(&RUN);
    std::thread::sleep(after);
    let all = place.processes();
    let is = |one: &Process, victims| match victims {
        Victims::Plimsoll => one.command.contains(" run study.toml"),
        Victims::Warden => one.name == "warden",
        Victims::System => one.command.contains(" demo-server "),
        Victims::PlimsollAndWardens => false,
    };
    match victims {
        Victims::PlimsollAndWardens => {
            let of = |victims| all.iter().filter(move |one| is(one, victims));
            of(Victims::Plimsoll).for_each(|one| send(one, Signal::STOP));
            of(Victims::Warden).chain(of(Victims::Plimsoll)).for_each(act);
        }
        victims => {
            let hit: Vec<&Process> = all.iter().filter(|one| is(one, victims)).collect();
            if !hit.is_empty() {
                act(hit[random.next_u32() as usize % hit.len()]);
            }
        }
    }
    run.end()
}

/// A process may have ended since it was looked up.
fn send(process: &Process, signal: Signal) {
    let _ = kill_process(Pid::from_raw(process.pid).expect("not zero"), signal);
}

/// Goes on until the study is complete, and compares what was sealed before with what is there then.
fn check_after(place: &Place, case: &str, ended: &Ended) {
    let sealed = sealed(place);
    let code = ended.code();
    let again = if place.has("bundle/manifest.jsonl") {
        place.plimsoll(&RESUME)
    } else {
        // What was begun and holds nothing yet is begun anew, as the message says.
        let _ = fs::remove_dir_all(place.path("bundle"));
        place.plimsoll(&RUN)
    };
    place.nothing_runs();
    // 3: the fault ended a system, and the run with it.
    let codes = if code == Some(3) { &[0, 1, 3, 4][..] } else { &[0, 1, 4][..] };
    assert!(again.code().is_some_and(|code| codes.contains(&code)), "{case}: {ended:?}\nthen {again:?}");
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_eq!(bundle.problems, Vec::<String>::new(), "{case}: {ended:?}\nthen {again:?}");
    assert!(bundle.complete, "{case}");
    if again.code() != Some(3) {
        assert_all_there(&bundle, case);
    }
    let manifest = place.read("bundle/manifest.jsonl");
    for (start, files) in sealed {
        assert_eq!(manifest.matches(&format!("\"{start}\"")).count(), 1, "{case}: {start} is sealed once");
        for (file, content) in files {
            assert_eq!(fs::read(&file).ok(), Some(content), "{case}: {} changed after it was sealed", file.display());
        }
    }
}

/// Every block has one attempt that stands, in the order of the plan.
fn assert_all_there(bundle: &Contents, case: &str) {
    let planned: Vec<u32> =
        bundle.plan.starts.iter().filter(|start| !bundle.plan.is_superseded(start)).map(|start| start.number).collect();
    let found: Vec<u32> = standing(bundle).iter().map(|start| start.summary.start.number).collect();
    assert_eq!(found, planned, "{case}");
}

/// The starts that the manifest calls whole, with their files.
fn sealed(place: &Place) -> BTreeMap<String, BTreeMap<PathBuf, Vec<u8>>> {
    let Ok(manifest) = fs::read_to_string(place.path("bundle/manifest.jsonl")) else { return BTreeMap::new() };
    let whole = manifest.rfind('\n').map_or("", |end| &manifest[..end]);
    let numbers = (1..100).filter(|number| whole.contains(&format!("\"start {number}\"")));
    let content =
        |folder: &Path| files(folder).into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect();
    numbers
        .map(|number| (format!("start {number}"), content(&place.path(&format!("bundle/starts/{number:04}")))))
        .collect()
}
