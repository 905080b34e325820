//! Feeds every target with its corpus and with seeded mutations of it: no input makes a parser panic, hang, or take
//! more memory than its bounds allow.
//!
//! An input that was found to break a promise goes into the corpus once it is mended, under a name that says what it was.

use plimsoll_fuzz::{Mutator, TARGETS, Target};
use plimsoll_testkit::growth_of_memory;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Far above what an input needs on a busy machine.
const LONGEST: Duration = Duration::from_secs(60);

/// The most memory that an input may take, in bytes: the largest answer that is kept has 64 MiB, and a buffer that grows
/// holds it twice.
const MOST_MEMORY: u64 = 192 << 20;

/// Ends the process when an input takes too long, and names it: a parser that hangs cannot be stopped.
#[derive(Clone, Default)]
struct Watchdog(Arc<Mutex<Option<(Instant, String)>>>);

impl Watchdog {
    fn start() -> Watchdog {
        let watchdog = Watchdog::default();
        let watched = watchdog.clone();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_secs(1));
                if let Some((begun, name)) = &*watched.0.lock().unwrap_or_else(PoisonError::into_inner)
                    && begun.elapsed() > LONGEST
                {
                    eprintln!("{name} takes longer than {LONGEST:?}");
                    std::process::abort();
                }
            }
        });
        watchdog
    }

    fn watch(&self, name: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = name.map(|name| (Instant::now(), name));
    }
}

/// The inputs of a target's corpus by name, in the order of their names.
fn corpus(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), fs::read(path).expect("an input"))).collect()
}

/// What an input breaks, if anything.
fn fault(target: &Target, input: &[u8]) -> Option<String> {
    let (ended, grown) = growth_of_memory(|| catch_unwind(|| (target.run)(input)));
    if let Err(panic) = ended {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        return Some(format!("panics: {}", text.unwrap_or("without a text")));
    }
    (grown > MOST_MEMORY).then(|| format!("takes {} MiB", grown >> 20))
}

#[test]
fn no_input_makes_a_parser_panic_hang_or_grow() {
    let watchdog = Watchdog::start();
    let mut faults = Vec::new();
    for target in &TARGETS {
        let named = corpus(target);
        let inputs: Vec<Vec<u8>> = named.iter().map(|(_, input)| input.clone()).collect();
        assert!(!inputs.is_empty(), "expected a corpus of {}", target.name);
        let mutations = Mutator::new(&inputs, 1).zip(0..target.mutations);
        let mutations = mutations.map(|(input, number)| (format!("mutation {number}"), input));
        for (name, input) in named.iter().cloned().chain(mutations) {
            watchdog.watch(Some(format!("{} of {}", name, target.name)));
            if let Some(fault) = fault(target, &input) {
                faults.push(format!("{}, {name}: {fault}\n{}", target.name, input.escape_ascii()));
                break;
            }
        }
        watchdog.watch(None);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn every_folder_of_the_corpus_has_a_target() {
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")).expect("the corpus");
    let names = folders.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let unknown: Vec<String> = names.filter(|name| TARGETS.iter().all(|target| target.name != name)).collect();
    assert_eq!(unknown, Vec::<String>::new());
}
