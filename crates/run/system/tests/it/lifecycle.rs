//! Start, run, stop.

use crate::common::{PATIENCE, Place, command, launcher, wait_until};
use plimsoll_model::system::{StopPolicy, StopSignal};
use plimsoll_model::units::Processors;
use plimsoll_system::{Exit, Interrupt, Launcher, SystemError};
use procfs::process::FDTarget;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::net::TcpListener;
use std::time::Duration;

#[test]
fn a_system_is_asked_to_end_and_its_output_is_kept_in_order() {
    let place = Place::new();
    let script = "trap 'echo ends >&2; exit 0' TERM; echo one; echo two >&2; echo three; while :; do sleep 0.01; done";
    let system = launcher().start(&place.system(script), &place.output()).unwrap();
    system.wait_ready(&Interrupt::new()).unwrap();
    wait_until("its output", || fs::read_to_string(place.output()).unwrap().contains("three"));
    assert_eq!(system.has_ended().unwrap(), None);
    let stopped = system.stop().unwrap();
    assert_eq!(stopped.exit, Some(Exit::Code(0)));
    assert_eq!(stopped.killed, 0, "it ended in order");
    let output = fs::read_to_string(place.output()).unwrap();
    let own = output.lines().filter(|line| *line != "Terminated"); // the shell's word on its sleep
    assert_eq!(own.collect::<Vec<_>>(), ["one", "two", "three", "ends"]);
}

#[test]
fn the_output_of_a_system_does_not_fill_the_disk() {
    let place = Place::new();
    let script = "echo first; yes | head -c 300000000; echo last; while :; do sleep 0.01; done";
    let system = launcher().start(&place.system(script), &place.output()).unwrap();
    let length = || fs::metadata(place.output()).unwrap().len();
    wait_until("its last line", || system.last_output().lines.last().is_some_and(|line| line == "last"));
    wait_until("a file within its bound", || length() <= 64 * 1024 * 1024);
    system.stop().unwrap();
    let output = fs::read(place.output()).unwrap();
    assert!(output.starts_with(b"first\ny\ny\n") && output.ends_with(b"\ny\nlast\n"));
    let notice = b" bytes of output are left out here]\n";
    assert!(output.windows(notice.len()).any(|window| window == notice));
}

#[test]
fn each_signal_reaches_the_system() {
    for (signal, name) in [(StopSignal::Term, "TERM"), (StopSignal::Int, "INT"), (StopSignal::Quit, "QUIT")] {
        let place = Place::new();
        let script = format!("trap 'exit 7' {name}; echo set; while :; do sleep 0.01; done");
        let mut spec = place.system(&script);
        spec.stop.signal = signal;
        let system = launcher().start(&spec, &place.output()).unwrap();
        wait_until("the trap", || fs::read_to_string(place.output()).unwrap().contains("set"));
        assert_eq!(system.stop().unwrap().exit, Some(Exit::Code(7)), "{name}");
    }
    let place = Place::new();
    let mut spec = place.system("sleep 1000");
    spec.stop.signal = StopSignal::Kill;
    let system = launcher().start(&spec, &place.output()).unwrap();
    assert_eq!(system.stop().unwrap().exit, Some(Exit::Signal(9)));
}

#[test]
fn a_system_that_ignores_the_signal_is_killed_after_the_grace() {
    let place = Place::new();
    let mut spec = place.system("trap '' TERM; echo deaf; while :; do sleep 1000; done");
    let grace = Duration::from_millis(300);
    spec.stop = StopPolicy { signal: StopSignal::Term, grace };
    let system = launcher().start(&spec, &place.output()).unwrap();
    wait_until("the trap", || fs::read_to_string(place.output()).unwrap().contains("deaf"));
    place.wait_for_alive(2);
    let stopped = system.stop().unwrap();
    assert_eq!(stopped.exit, Some(Exit::Signal(9)));
    assert_eq!(stopped.killed, 2, "the shell and its sleep");
    assert!(stopped.took >= grace, "{stopped:?}");
    assert_eq!(place.alive(), [0; 0]);
}

#[test]
fn a_system_that_dies_during_the_run_fails_with_its_last_output() {
    let place = Place::new();
    let go = place.folder.path().join("go");
    let script =
        "for n in 1 2 3; do echo line $n; done; while [ ! -e go ]; do sleep 0.01; done; echo out of luck >&2; exit 3";
    let system = launcher().start(&place.system(script), &place.output()).unwrap();
    system.wait_ready(&Interrupt::new()).unwrap();
    system.check().unwrap();
    fs::write(go, "").unwrap();
    wait_until("its end", || system.has_ended().unwrap().is_some());
    assert_eq!(system.has_ended().unwrap(), Some(Exit::Code(3)));
    let message = system.stop().unwrap_err().to_string();
    for part in ["`counter`", "exit code 3", "line 3\n    out of luck", "output.log"] {
        assert!(message.contains(part), "{part} is missing in: {message}");
    }
}

#[test]
fn the_signal_that_killed_a_system_is_named() {
    let place = Place::new();
    let system = launcher().start(&place.system("kill -SEGV $$"), &place.output()).unwrap();
    wait_until("its end", || system.has_ended().unwrap().is_some());
    let message = system.stop().unwrap_err().to_string();
    assert!(message.contains("signal 11 (SIGSEGV)"), "{message}");
}

#[test]
fn a_system_runs_in_its_folder_with_its_environment_and_no_input() {
    let place = Place::new();
    let mut spec = place.system("pwd; echo $COLOUR; cat; echo end of input; readlink /proc/$$/fd/0; exec sleep 1000");
    spec.env.insert("COLOUR".to_owned(), "teal".to_owned());
    let system = launcher().start(&spec, &place.output()).unwrap();
    let folder = place.folder.path().canonicalize().unwrap();
    let expected = format!("{}\nteal\nend of input\n/dev/null\n", folder.display());
    wait_until("its output", || fs::read_to_string(place.output()).unwrap().len() >= expected.len());
    assert_eq!(fs::read_to_string(place.output()).unwrap(), expected);
    system.stop().unwrap();
}

#[test]
fn a_system_holds_no_socket_of_plimsoll() {
    let place = Place::new();
    let _held = TcpListener::bind("127.0.0.1:0").unwrap();
    let system = launcher().start(&place.system("exec sleep 1000"), &place.output()).unwrap();
    let alive = place.wait_for_alive(1);
    let files = procfs::process::Process::new(alive[0]).unwrap().fd().unwrap();
    let sockets = files.flatten().filter(|file| matches!(file.target, FDTarget::Socket(_))).count();
    assert_eq!(sockets, 0, "neither a lifeline nor a socket of Plimsoll");
    system.stop().unwrap();
}

#[test]
fn a_system_is_bound_to_its_processors() {
    let place = Place::new();
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..rustix::thread::CpuSet::MAX_CPU).rfind(|&cpu| allowed.is_set(cpu)).unwrap();
    let mut spec = place.system("grep Cpus_allowed_list /proc/self/status; exec sleep 1000");
    spec.cpus = Some(Processors(vec![cpu]));
    let system = launcher().start(&spec, &place.output()).unwrap();
    wait_until("its output", || fs::read_to_string(place.output()).unwrap().ends_with('\n'));
    assert_eq!(fs::read_to_string(place.output()).unwrap(), format!("Cpus_allowed_list:\t{cpu}\n"));
    system.stop().unwrap();

    spec.cpus = Some(Processors(vec![cpu, 1023]));
    let message = launcher().start(&spec, &place.output()).unwrap_err().to_string();
    assert!(message.contains(&format!("processors {cpu},1023, but Plimsoll may use only")), "{message}");
}

#[test]
fn a_system_gets_the_limit_of_open_files_from_before_all_loads() {
    let limit_of_a_system = || {
        let place = Place::new();
        let system = launcher().start(&place.system("ulimit -Sn; exec sleep 1000"), &place.output()).unwrap();
        let output = || fs::read_to_string(place.output()).unwrap();
        wait_until("its output", || output().ends_with('\n'));
        let limit = output();
        system.stop().unwrap();
        limit
    };
    let first = limit_of_a_system();
    let own = getrlimit(Resource::Nofile);
    // A load raises it; by how little it differs keeps other tests in this process from harm.
    let other = Rlimit { current: own.current.map(|current| current - 1), ..own };
    setrlimit(Resource::Nofile, other).unwrap();
    let later = limit_of_a_system();
    setrlimit(Resource::Nofile, own).unwrap();
    assert_eq!(later, first);
}

#[test]
fn a_port_in_use_stops_the_start_and_names_the_holder() {
    let place = Place::new();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let mut spec = place.system("echo started");
    spec.port = Some(port);
    let message = launcher().start(&spec, &place.output()).unwrap_err().to_string();
    assert!(message.contains(&format!("port {port} is in use by process {}", std::process::id())), "{message}");
    assert!(!place.output().exists(), "nothing was started");
}

#[test]
fn a_file_that_the_kernel_cannot_execute_is_refused_with_its_reason() {
    let place = Place::new();
    let file = place.folder.path().join("server");
    fs::write(&file, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut spec = place.system("");
    spec.start = command(&["./server"]);
    let error = launcher().start(&spec, &place.output()).unwrap_err();
    assert!(matches!(error, SystemError::Refused { .. }));
    assert!(error.to_string().contains("No such file or directory"), "{error}");
}

#[test]
fn many_systems_run_side_by_side() {
    let places: Vec<Place> = (0..8).map(|_| Place::new()).collect();
    let start = |place: &Place| launcher().start(&place.system("sleep 1000 & wait"), &place.output()).unwrap();
    let systems: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = places.iter().map(|place| scope.spawn(move || start(place))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    places.iter().for_each(|place| drop(place.wait_for_alive(2)));
    for (system, place) in systems.into_iter().zip(&places) {
        assert!(system.stop().unwrap().took < PATIENCE, "no lifeline is held by another system");
        assert_eq!(place.alive(), [0; 0]);
    }
}

#[test]
fn a_launcher_without_a_warden_is_found_out() {
    let place = Place::new();
    let launcher = Launcher { program: "/bin/false".into(), arguments: vec!["warden".to_owned()], run: String::new() };
    let message = launcher.start(&place.system("true"), &place.output()).unwrap_err().to_string();
    assert!(message.contains("its warden, /bin/false, ended before the command began"), "{message}");
}
