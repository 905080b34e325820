//! Requests that are refused, and why.

use crate::service::{Reply, Service, plan, token};
use serde_json::{Value, json};

const DATASET: &str = "00000000-0000-4000-8000-0000000000c3";

fn refused(reply: &Reply, status: u16, reason: &str) {
    assert_eq!(reply.status, status, "{}", reply.text);
    assert!(reply.error().contains(reason), "{:?} does not say {reason:?}", reply.error());
}

/// The endpoints that ask for a role, which they name.
fn guarded() -> [(&'static str, String, Value, &'static str); 6] {
    let product = format!("/api/data_product/{DATASET}");
    [
        ("POST", "/api/plan".to_owned(), plan(DATASET), "publish"),
        ("PUT", format!("/api/plan/{DATASET}/pause"), Value::Null, "pause"),
        ("PUT", format!("/api/plan/{DATASET}/unpause"), Value::Null, "pause"),
        ("PUT", format!("{product}/update"), json!([]), "update"),
        ("PUT", format!("{product}/clear"), json!([]), "update"),
        ("DELETE", product, json!([]), "disable"),
    ]
}

#[test]
fn nobody_changes_a_plan_without_a_token_and_its_role() {
    let Some(service) = Service::start() else { return };
    let all = ["publish", "pause", "update", "disable"];
    for (method, path, body, role) in guarded() {
        for bad in ["", "none", &token(&all, -1), &format!("{}x", token(&all, 60))] {
            refused(&service.send_with(bad, method, &path, Some(&body)), 401, "token");
        }
        let others: Vec<&str> = all.into_iter().filter(|other| *other != role).collect();
        refused(&service.send_with(&token(&others, 60), method, &path, Some(&body)), 403, &format!("`{role}`"));
    }
    assert_eq!(service.sql().number("SELECT count(*) FROM dataset"), 0);
}

#[test]
fn a_login_takes_the_right_service_and_key() {
    let Some(service) = Service::start() else { return };
    for (name, key) in [("local", "abc124"), ("local", ""), ("remote", "abc123")] {
        let login = service.send("POST", "/api/authenticate", Some(&json!({"service": name, "key": key})));
        refused(&login, 401, "not known");
    }
    refused(&service.send("POST", "/api/authenticate", Some(&json!({"service": "local"}))), 400, "key");
}

#[test]
fn what_is_not_there_is_not_found() {
    let Some(service) = Service::start() else { return };
    for (method, path, body, _) in guarded().into_iter().skip(1) {
        refused(&service.send(method, &path, Some(&body)), 404, DATASET);
    }
    for path in [format!("/api/plan/{DATASET}"), format!("/plan/{DATASET}"), "/other".to_owned()] {
        refused(&service.get(&path), 404, "there is no");
    }
    service.send("POST", "/api/plan", Some(&plan(DATASET))).json();
    refused(&service.get(&format!("/api/data_product/{DATASET}/SKA1")), 404, "`SKA1`");
}

#[test]
fn what_cannot_be_meant_is_a_bad_request() {
    let Some(service) = Service::start() else { return };
    let post = |change: &dyn Fn(&mut Value)| {
        let mut plan = plan(DATASET);
        change(&mut plan);
        service.send("POST", "/api/plan", Some(&plan))
    };
    let push = |plan: &mut Value, list: &str, entry: Value| plan[list].as_array_mut().unwrap().push(entry);
    let dependency = |parent: &str, child: &str| json!({"parent_id": parent, "child_id": child});
    refused(&post(&|plan| push(plan, "dependencies", dependency("Alchemy", "BKPF"))), 400, "cycle");
    refused(&post(&|plan| push(plan, "dependencies", dependency("BKPF", "EDM_GL"))), 400, "twice");
    refused(&post(&|plan| push(plan, "dependencies", dependency("SKA1", "EDM_GL"))), 400, "no data product `SKA1`");
    refused(&post(&|plan| push(plan, "data_products", plan["data_products"][0].clone())), 400, "twice");
    refused(&post(&|plan| plan["data_products"][0]["compute"] = json!("abacus")), 400, "abacus");
    refused(&post(&|plan| plan["data_products"][0]["name"] = json!("a zero byte: \0")), 400, "0x00");
    refused(&post(&|plan| plan["dataset"]["id"] = json!("one")), 400, "dataset.id: UUID");
    refused(&service.send("POST", "/api/plan", None), 400, "application/json");
    assert_eq!(service.sql().number("SELECT count(*) FROM dataset"), 0, "nothing of them stays");

    post(&|_| ()).json();
    let update = |updates: Value| service.send("PUT", &format!("/api/data_product/{DATASET}/update"), Some(&updates));
    for state in ["waiting", "queued", "disabled"] {
        refused(&update(json!([{"id": "BKPF", "state": state}])), 400, "expected running, success or failed");
    }
    refused(&update(json!([{"id": "BKPF", "state": "asleep"}])), 400, "asleep");
    refused(&update(json!([{"id": "SKA1", "state": "running"}])), 400, "no data product `SKA1`");
    refused(&update(json!([{"id": "BKPF", "state": "failed"}, {"id": "BKPF", "state": "running"}])), 400, "twice");
    refused(&service.get("/api/plan/one"), 400, "UUID");
    refused(&service.get("/api/plan/search?page=first"), 400, "page");
}
