//! When a system counts as ready.

use crate::common::{Place, command, launcher, wait_until};
use plimsoll_model::system::{Probe, SystemSpec};
use plimsoll_system::{Interrupt, SystemError, free_port};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

/// Long enough for several probes to fail.
const PROBES_FAIL: Duration = Duration::from_millis(200);

fn probed(place: &Place, script: &str, probe: Probe) -> SystemSpec {
    let mut spec = place.system(script);
    spec.ready.probe = probe;
    spec
}

/// Answers each connection with the next of `replies`, and the last one for ever.
fn server(replies: &'static [&'static str]) -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (seen, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for (index, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let _ = seen.send(line);
            let _ = stream.write_all(replies[index.min(replies.len() - 1)].as_bytes());
        }
    });
    (port, requests)
}

#[test]
fn tcp_is_ready_when_the_port_accepts() {
    let place = Place::new();
    let port = free_port().unwrap();
    let system =
        launcher().start(&probed(&place, "exec sleep 1000", Probe::Tcp(format!("127.0.0.1:{port}"))), &place.output());
    let system = system.unwrap();
    let listener = std::thread::scope(|scope| {
        // The port opens only after the probe has failed a few times.
        let opened = scope.spawn(|| {
            std::thread::sleep(PROBES_FAIL);
            TcpListener::bind(("127.0.0.1", port)).unwrap()
        });
        system.wait_ready(&Interrupt::new()).unwrap();
        assert!(TcpListener::bind(("127.0.0.1", port)).is_err(), "it was not ready before the port was open");
        opened.join().unwrap()
    });
    drop(listener);
    system.stop().unwrap();
}

#[test]
fn http_is_ready_with_the_first_status_below_400() {
    let place = Place::new();
    const REPLIES: &[&str] = &[
        "",
        "no http\r\n",
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.0 404 Not Found\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
    ];
    let (port, requests) = server(REPLIES);
    let probe = Probe::Http(format!("http://127.0.0.1:{port}/health?full"));
    let system = launcher().start(&probed(&place, "exec sleep 1000", probe), &place.output()).unwrap();
    system.wait_ready(&Interrupt::new()).unwrap();
    let requests: Vec<String> = requests.try_iter().collect();
    assert_eq!(requests, ["GET /health?full HTTP/1.1\r\n"; 5]);
    system.stop().unwrap();
}

#[test]
fn https_is_refused_with_what_to_write_instead() {
    let place = Place::new();
    let probe = Probe::Http("https://127.0.0.1:1/".to_owned());
    let system = launcher().start(&probed(&place, "exec sleep 1000", probe), &place.output()).unwrap();
    let message = system.wait_ready(&Interrupt::new()).unwrap_err().to_string();
    assert!(message.contains("starts with `http://`, found `https://127.0.0.1:1/`"), "{message}");
}

#[test]
fn log_is_ready_with_the_line_of_this_start() {
    let place = Place::new();
    fs::write(place.output(), "listening, said the trial before\n").unwrap();
    let script =
        "echo warming up; while [ ! -e go ]; do sleep 0.01; done; echo now listening on 1 >&2; exec sleep 1000";
    let system =
        launcher().start(&probed(&place, script, Probe::Log("listening".to_owned())), &place.output()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(PROBES_FAIL);
            fs::write(place.folder.path().join("go"), "").unwrap();
        });
        system.wait_ready(&Interrupt::new()).unwrap();
    });
    assert!(fs::read_to_string(place.output()).unwrap().contains("now listening on 1"));
    system.stop().unwrap();
}

#[test]
fn a_command_is_ready_when_it_ends_well() {
    let place = Place::new();
    let probe = Probe::Command(command(&["sh", "-c", "echo . >> asked; test $(wc -l < asked) -ge 3"]));
    let system = launcher().start(&probed(&place, "exec sleep 1000", probe), &place.output()).unwrap();
    system.wait_ready(&Interrupt::new()).unwrap();
    assert_eq!(fs::read_to_string(place.folder.path().join("asked")).unwrap().lines().count(), 3);
    system.stop().unwrap();
}

#[test]
fn a_system_that_never_gets_ready_fails_with_what_was_found() {
    let port = free_port().unwrap();
    let (failing, _requests) = server(&["HTTP/1.1 500 Oops\r\n\r\n"]);
    let cases = [
        (Probe::Tcp(format!("127.0.0.1:{port}")), "to be accepted, found Connection refused"),
        (Probe::Http(format!("http://127.0.0.1:{failing}/")), "a status below 400 from http://127.0.0.1"),
        (Probe::Http(format!("http://127.0.0.1:{failing}/")), "found status 500"),
        (Probe::Log("listening".to_owned()), "expected a line with `listening` in its output, found no such line"),
        (
            Probe::Command(command(&["sh", "-c", "echo not yet; exit 4"])),
            "found exit code 4 (its last output:\n    not yet)",
        ),
        (Probe::Command(command(&["sleep", "1000"])), "found that it did not end in time"),
    ];
    let never_ready = |probe, expected| {
        let place = Place::new();
        let mut spec = probed(&place, "echo still loading; exec sleep 1000", probe);
        spec.ready.within = Duration::from_secs(5);
        let system = launcher().start(&spec, &place.output()).unwrap();
        wait_until("its output", || !system.last_output().lines.is_empty());
        let error = system.wait_ready(&Interrupt::new()).unwrap_err();
        assert!(matches!(error, SystemError::NotReady { .. }), "{error}");
        let message = error.to_string();
        for part in ["`counter` was not ready within 5.0 s", expected, "    still loading"] {
            assert!(message.contains(part), "{part} is missing in: {message}");
        }
        drop(system);
        assert_eq!(place.alive(), [0; 0]);
    };
    std::thread::scope(|scope| {
        for (probe, expected) in cases {
            scope.spawn(|| never_ready(probe, expected));
        }
    });
}

#[test]
fn a_system_that_dies_before_it_is_ready_fails_at_once() {
    let place = Place::new();
    let spec = probed(&place, "echo cannot open the database; exit 2", Probe::Log("listening".to_owned()));
    let system = launcher().start(&spec, &place.output()).unwrap();
    let error = system.wait_ready(&Interrupt::new()).unwrap_err();
    assert!(matches!(error, SystemError::Died { .. }), "{error}");
    assert!(error.to_string().contains("exit code 2"), "{error}");
    assert!(error.to_string().contains("cannot open the database"), "{error}");
}

#[test]
fn waiting_can_be_interrupted() {
    let place = Place::new();
    let spec = probed(&place, "exec sleep 1000", Probe::Log("listening".to_owned()));
    let system = launcher().start(&spec, &place.output()).unwrap();
    let interrupt = Interrupt::new();
    interrupt.set();
    let error = system.wait_ready(&interrupt).unwrap_err();
    assert!(matches!(error, SystemError::Interrupted { .. }), "{error}");
}

#[test]
fn a_stranger_that_took_the_port_is_named() {
    let place = Place::new();
    let port = free_port().unwrap();
    let script = "until [ -e go ]; do sleep 0.01; done; echo 'address already in use'; exit 7";
    let mut spec = probed(&place, script, Probe::Tcp(format!("127.0.0.1:{port}")));
    spec.port = Some(port);
    let system = launcher().start(&spec, &place.output()).unwrap();
    // Nobody listened when the system started: it was looked at.
    let _stranger = TcpListener::bind(("127.0.0.1", port)).unwrap();
    fs::write(place.folder.path().join("go"), "").unwrap();
    wait_until("its end", || system.has_ended().unwrap().is_some());
    let message = system.wait_ready(&Interrupt::new()).unwrap_err().to_string();
    let holder = format!("process {} (", std::process::id());
    assert!(message.contains(&holder) && message.contains("which is none of its processes"), "{message}");
    assert!(message.contains(&format!("port {port}")) && message.contains("address already in use"), "{message}");
}
