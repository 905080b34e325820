//! Real processes with known use, seen by the sampler.
//!
//! Each test is the process above its system: the system is started by a child of the test's own
//! that stands for the warden.

mod format_cases;
mod scraping;

use plimsoll_model::sample::{ProcessSample, Samples};
use plimsoll_telemetry::{Roots, Sampler, SystemPart, Target};
use plimsoll_testkit::{ControlGroup, Limit, skipped};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A system below a shell that stands for the warden. The system says `ready`, and goes on each
/// time that it is given a line; it ends with its input.
struct System {
    above: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl System {
    fn start(script: &str) -> System {
        // `; :` keeps the outer shell from becoming the inner one.
        let mut command = Command::new("sh");
        command.args(["-c", "bash -c \"$1\"; :", "sh", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut above = command.spawn().unwrap();
        let input = above.stdin.take();
        let output = BufReader::new(above.stdout.take().unwrap());
        System { above, input, output }
    }

    fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), word);
    }

    fn go_on(&mut self) {
        self.input.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    fn target(&self) -> Target {
        Target {
            system: "server".to_owned(),
            variant: 1,
            parts: vec![SystemPart {
                name: "server".to_owned(),
                roots: Roots::Warden(i32::try_from(self.above.id()).unwrap()),
            }],
            waits: None,
            metrics: None,
            complaints: Vec::new(),
        }
    }

    fn end(mut self) {
        drop(self.input.take());
        self.above.wait().unwrap();
    }
}

fn sampler(system: &System) -> Sampler {
    Sampler::start("here", vec![system.target()], &|| false).unwrap()
}

/// Long enough for a last sample of its own.
fn let_pass(span: Duration) {
    std::thread::sleep(span);
}

/// CPU in seconds: cores times spans.
fn cpu_seconds(samples: &[ProcessSample], began: f64) -> f64 {
    let mut from = began;
    let mut sum = 0.0;
    for sample in samples {
        assert!(sample.cpu_cores >= 0.0, "{sample:?}");
        sum += sample.cpu_cores * (sample.at - from);
        from = sample.at;
    }
    sum
}

#[test]
fn cpu_is_what_two_processes_say_they_used_though_they_have_ended() {
    // Two side by side, then one alone, all ended before the last look; `times` is the system's own
    // account of itself and of them.
    let burn = "burn() { for n in $(seq 1 100000); do :; done; }; read; (burn) & (burn) & wait; (burn); times; echo done; read";
    let mut system = System::start(burn);
    let earliest = Instant::now();
    let sampler = sampler(&system);
    let first_look_took = earliest.elapsed().as_secs_f64();
    system.go_on();
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        system.output.read_line(&mut line).unwrap();
        if line.trim() == "done" {
            break;
        }
        lines.push(line);
    }
    let_pass(Duration::from_millis(150));
    let Samples { processes, .. } = sampler.stop(earliest).samples;
    let own: f64 = lines.iter().flat_map(|line| line.split_whitespace()).map(seconds).sum();
    // The first span began at the first look, somewhere between these two instants.
    let (least, most) = (cpu_seconds(&processes, first_look_took), cpu_seconds(&processes, 0.0));
    let allowed = 0.05 + 0.1 * own;
    assert!(own > 0.1, "the test burns something: {own}");
    assert!(
        least < own + allowed && most > own - allowed,
        "seen {least} to {most} s, the system itself says {own} s: {processes:?}"
    );
    system.end();
}

/// `0m1.234s`, as bash's `times` prints.
fn seconds(text: &str) -> f64 {
    let (minutes, rest) = text.split_once('m').unwrap();
    minutes.parse::<f64>().unwrap() * 60.0 + rest.trim_end_matches('s').parse::<f64>().unwrap()
}

#[test]
fn memory_shows() {
    let mut system = System::start("echo ready; read; x=$(head -c 50000000 /dev/zero | tr '\\0' x); echo filled; read");
    system.wait_for("ready");
    let started = sampler(&system);
    let_pass(Duration::from_millis(150));
    let Samples { processes: before, .. } = started.stop(Instant::now()).samples;
    system.go_on();
    system.wait_for("filled");
    let started = sampler(&system);
    let_pass(Duration::from_millis(150));
    let Samples { processes: after, .. } = started.stop(Instant::now()).samples;
    let grown = after[0].resident.saturating_sub(before[0].resident);
    assert!((50_000_000..250_000_000).contains(&grown), "{grown}");
    system.end();
}

#[test]
fn open_files_and_processes_show() {
    let script =
        "echo ready; read; for n in $(seq 50); do exec {fd}</dev/null; done; sleep 1000 & echo open; read; kill $!";
    let mut system = System::start(script);
    system.wait_for("ready");
    let started = sampler(&system);
    let_pass(Duration::from_millis(150));
    let Samples { processes: before, .. } = started.stop(Instant::now()).samples;
    system.go_on();
    system.wait_for("open");
    let started = sampler(&system);
    let_pass(Duration::from_millis(150));
    let Samples { processes: after, .. } = started.stop(Instant::now()).samples;
    assert_eq!((before[0].processes, after[0].processes), (1, 2));
    assert_eq!((before[0].threads, after[0].threads), (1, 2));
    assert!(after[0].open_files >= before[0].open_files + 50, "{before:?} {after:?}");
    system.end();
}

#[test]
fn written_bytes_show_though_the_writer_has_ended() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("written");
    let script = format!(
        "echo ready; read; dd if=/dev/zero of='{}' bs=1M count=8 conv=fsync 2>/dev/null; echo written; read",
        file.display()
    );
    let mut system = System::start(&script);
    system.wait_for("ready");
    let started = sampler(&system);
    system.go_on();
    system.wait_for("written");
    let_pass(Duration::from_millis(150));
    let Samples { processes, .. } = started.stop(Instant::now()).samples;
    let written: u64 = processes.iter().map(|sample| sample.written_bytes).sum();
    assert!((8 << 20..9 << 20).contains(&written), "{written}");
    system.end();
}

#[test]
fn context_switches_show() {
    let mut system =
        System::start("echo ready; read; for n in $(seq 100); do read -t 0.001 <> <(:); done; echo done; read");
    system.wait_for("ready");
    let started = sampler(&system);
    system.go_on();
    system.wait_for("done");
    let_pass(Duration::from_millis(150));
    let Samples { processes, host, .. } = started.stop(Instant::now()).samples;
    let switches: u64 = processes.iter().map(|sample| sample.context_switches).sum();
    let of_host: u64 = host.iter().map(|sample| sample.context_switches).sum();
    assert!(switches >= 100, "{switches}");
    assert!(of_host >= switches, "the host's are all of them: {of_host} {switches}");
    system.end();
}

#[test]
fn samples_come_each_second_and_once_at_the_end_counted_from_zero() {
    let mut system = System::start("echo ready; read");
    system.wait_for("ready");
    let before = Instant::now();
    let sampler = sampler(&system);
    let zero = Instant::now();
    let first_look_took = zero.duration_since(before).as_secs_f64();
    let_pass(Duration::from_millis(4400));
    let until = zero.elapsed().as_secs_f64();
    let Samples { processes, host, .. } = sampler.stop(zero).samples;
    // How late a thread is woken is up to the machine; that none is early, and the last is at the end, is not.
    let at: Vec<f64> = host.iter().map(|sample| sample.at).collect();
    assert!(at.len() >= 2 && at.is_sorted_by(|one, next| one < next), "{at:?}");
    assert!(at[0] >= 1.0 - first_look_took, "the first look is a second after the start: {at:?}");
    assert!(*at.last().unwrap() >= until - 0.1, "the last look is at the end, which is {until}: {at:?}");
    assert_eq!(processes.iter().map(|sample| sample.at).collect::<Vec<_>>(), at);
    assert!(processes.iter().all(|sample| sample.system == "server"));
    assert!(host.iter().all(|sample| sample.memory_available > 0 && sample.runnable > 0));
    system.end();
}

#[test]
fn a_system_that_is_gone_shows_as_nothing() {
    let mut system = System::start("echo ready");
    system.wait_for("ready");
    let target = system.target();
    system.end();
    let sampler = Sampler::start("here", vec![target], &|| false).unwrap();
    let_pass(Duration::from_millis(150));
    let Samples { processes, host, .. } = sampler.stop(Instant::now()).samples;
    assert!(processes.iter().all(|sample| (sample.processes, sample.resident) == (0, 0)), "{processes:?}");
    assert!(!host.is_empty() && host.len() == processes.len());
    assert_eq!((host[0].machine.as_str(), processes[0].machine.as_str()), ("here", "here"));
}

#[test]
fn a_system_that_cannot_be_sampled_has_a_gap_and_a_complaint() {
    let complaints = vec!["its processes are elsewhere".to_owned()];
    let (system, parts) = ("server".to_owned(), Vec::new());
    let target = Target { system, variant: 1, parts, waits: None, metrics: None, complaints: complaints.clone() };
    let sampler = Sampler::start("here", vec![target], &|| false).unwrap();
    let_pass(Duration::from_millis(150));
    let last = sampler.stop(Instant::now());
    assert!(last.samples.processes.is_empty() && !last.samples.host.is_empty());
    assert_eq!(last.complaints, complaints);
}

#[test]
fn a_quota_shows_and_how_often_it_was_used_up() {
    const WORK: &str = "read; while :; do :; done & read; kill $!; wait $! 2>/dev/null; echo done; read";
    let Some(group) = ControlGroup::with(Limit::Cpu(20)) else {
        return skipped("no control group that limits CPU can be made (root, the controller `cpu`)");
    };
    let mut system = System::start(&format!("{}; {WORK}", group.enter()));
    let sampler = sampler(&system);
    system.go_on();
    // On a busy machine it may take a while until it gets as much as its quota.
    let mut samples: Vec<ProcessSample> = Vec::new();
    let was_throttled = |sample: &ProcessSample| sample.throttled.is_some_and(|share| share > 0.0 && share <= 1.0);
    for _ in 0..60 {
        let_pass(Duration::from_secs(1));
        samples.extend(sampler.take(Instant::now()).processes);
        if samples.iter().any(was_throttled) {
            break;
        }
    }
    system.go_on();
    system.wait_for("done");
    system.end();
    assert!(samples.iter().any(was_throttled), "{samples:?}");
    assert!(samples.iter().all(|sample| sample.cpu_quota == Some(0.2)), "{samples:?}");
}
