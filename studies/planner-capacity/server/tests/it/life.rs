//! A service from its start to its end, and requests that wait for a connection.

use crate::service::{PATIENCE, Service, Session, plan};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const DATASET: &str = "00000000-0000-4000-8000-0000000000e5";

/// Keeps the plan from changes until the session commits.
fn hold_plan(service: &Service) -> Session {
    let session = service.sql();
    session.run("BEGIN; SELECT FROM dataset FOR UPDATE");
    session
}

fn update() -> (String, Value) {
    (format!("/api/data_product/{DATASET}/update"), json!([{"id": "BKPF", "state": "running"}]))
}

#[test]
fn sigterm_ends_an_idle_service_in_spite_of_its_connections() {
    let Some(service) = Service::start() else { return };
    let unused = TcpStream::connect(&service.address).unwrap();
    assert_eq!(service.get("/health").status, 200);
    service.terminate();
    assert_eq!(service.wait(), (Some(0), String::new()));
    drop(unused);
}

#[test]
fn sigterm_lets_a_request_that_is_under_way_be_answered() {
    let Some(service) = Service::start() else { return };
    service.send("POST", "/api/plan", Some(&plan(DATASET))).json();
    let holder = hold_plan(&service);
    let (path, body) = update();
    std::thread::scope(|scope| {
        let request = scope.spawn(|| service.send("PUT", &path, Some(&body)));
        holder.wait_for_blocked(1);
        service.terminate();
        wait_until_it_refuses(&service.address);
        holder.run("COMMIT");
        let state = |reply: Value| reply["data_products"].to_string().contains("\"running\"");
        assert!(state(request.join().unwrap().json()));
    });
    assert_eq!(service.wait().0, Some(0));
}

#[test]
fn a_request_that_waits_for_a_connection_is_told_in_a_line() {
    let Some(service) = Service::start_with_connections(1) else { return };
    service.send("POST", "/api/plan", Some(&plan(DATASET))).json();
    let holder = hold_plan(&service);
    let (path, body) = update();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| service.send("PUT", &path, Some(&body)));
        holder.wait_for_blocked(1);
        let second = scope.spawn(|| service.get("/health"));
        // The second is in the queue long before.
        std::thread::sleep(Duration::from_secs(1));
        holder.run("COMMIT");
        assert_eq!((first.join().unwrap().status, second.join().unwrap().status), (200, 200));
    });
    service.terminate();
    let (status, said) = service.wait();
    let lines: Vec<&str> = said.lines().collect();
    let [line] = lines[..] else { panic!("{said:?} is not one line") };
    let waited = line.strip_prefix("waited ").and_then(|line| line.strip_suffix(" ms for a connection"));
    assert!(waited.is_some_and(|waited| waited.parse::<u64>().is_ok()), "{line}");
    assert_eq!(status, Some(0));
}

#[test]
fn a_service_whose_database_is_gone_is_not_healthy() {
    let Some(service) = Service::start() else { return };
    service.drop_database();
    let health = service.get("/health");
    assert_eq!((health.status, health.error().as_str()), (500, "the service failed; its log has the reason"));
}

/// Waits until nobody listens there.
fn wait_until_it_refuses(address: &str) {
    let begin = Instant::now();
    while TcpStream::connect(address).is_ok() {
        assert!(begin.elapsed() < PATIENCE, "it still listens");
        std::thread::sleep(Duration::from_millis(5));
    }
}
