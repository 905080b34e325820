//! Plans as their users make them.

use crate::service::{Service, plan};
use serde_json::{Value, json};

const DATASET: &str = "00000000-0000-4000-8000-0000000000a1";

fn states(plan: &Value) -> Vec<(&str, &str)> {
    let products = plan["data_products"].as_array().unwrap();
    products.iter().map(|product| (product["id"].as_str().unwrap(), product["state"].as_str().unwrap())).collect()
}

fn in_state(plan: &Value, state: &str) -> usize {
    states(plan).iter().filter(|(_, found)| *found == state).count()
}

#[test]
fn a_user_logs_in_posts_a_plan_and_follows_next_until_it_is_done() {
    let Some(service) = Service::start() else { return };
    let login = service.send_with("", "POST", "/api/authenticate", Some(&json!({"service": "local", "key": "abc123"})));
    let login = login.json();
    assert_eq!((&login["token_type"], &login["expires_in"]), (&json!("Bearer"), &json!(3600)));
    assert_eq!(login["roles"], json!(["publish", "pause", "update", "disable"]));
    let token = login["access_token"].as_str().unwrap();

    let mut whole = service.send_with(token, "POST", "/api/plan", Some(&plan(DATASET))).json();
    assert_eq!(whole["dataset"], plan(DATASET)["dataset"]);
    assert_eq!((in_state(&whole, "queued"), in_state(&whole, "waiting")), (1, 10));
    let mut updates = 0;
    while whole["done"] != true {
        let update = json!([whole["next"][0]]);
        whole = service.send_with(token, "PUT", &format!("/api/data_product/{DATASET}/update"), Some(&update)).json();
        updates += 1;
    }
    assert_eq!(updates, 22);
    assert_eq!(whole["next"], json!([]));

    let sql = service.sql();
    assert_eq!(sql.number("SELECT count(*) FROM dataset WHERE NOT paused AND modified_by = 'local'"), 1);
    assert_eq!(sql.number("SELECT count(*) FROM dependency"), 16);
    let made = "SELECT count(*) FROM data_product WHERE state = 'success' AND modified_by = 'local'";
    assert_eq!(sql.number(made), 11);

    let stored = service.get(&format!("/api/plan/{DATASET}")).json();
    assert_eq!(&stored, &whole);
    let cleared = service.send("PUT", &format!("/api/data_product/{DATASET}/clear"), Some(&json!(["FSLI", "MIDA"])));
    let cleared = cleared.json();
    assert_eq!((in_state(&cleared, "success"), in_state(&cleared, "queued")), (7, 1));
    assert_eq!(sql.number(made), 7);
}

#[test]
fn a_plan_is_posted_again_with_changes() {
    let Some(service) = Service::start() else { return };
    let update = format!("/api/data_product/{DATASET}/update");
    service.send("POST", "/api/plan", Some(&plan(DATASET))).json();
    service
        .send("PUT", &update, Some(&json!([{"id": "BKPF", "state": "running", "link": "https://log.example"}])))
        .json();
    let mut again = plan(DATASET);
    again["dataset"]["extra"] = json!("renamed");
    again["data_products"][0]["version"] = json!("2.0.0");
    let whole = service.send("POST", "/api/plan", Some(&again)).json();
    assert_eq!(whole["dataset"]["extra"], "renamed");
    assert_eq!((whole["data_products"].as_array().unwrap().len(), in_state(&whole, "running")), (11, 1));
    let product = service.get(&format!("/api/data_product/{DATASET}/BKPF")).json();
    assert_eq!((&product["version"], &product["link"]), (&json!("2.0.0"), &json!("https://log.example")));
    let sql = service.sql();
    assert_eq!(sql.number("SELECT count(*) FROM data_product WHERE version = '2.0.0' AND state = 'running'"), 1);
    assert_eq!(sql.number("SELECT count(*) FROM data_product"), 11);
}

#[test]
fn a_paused_dataset_triggers_nothing_and_a_disabled_product_is_not_waited_for() {
    let Some(service) = Service::start() else { return };
    let path = format!("/api/plan/{DATASET}");
    service.send("POST", "/api/plan", Some(&plan(DATASET))).json();
    assert_eq!(service.send("PUT", &format!("{path}/pause"), None).status, 204);
    assert_eq!(service.get(&path).json()["dataset"]["paused"], true);

    let made: Value = ["BKPF", "BSEG", "GLT0"].iter().map(|id| json!({"id": id, "state": "success"})).collect();
    let whole = service.send("PUT", &format!("/api/data_product/{DATASET}/update"), Some(&made)).json();
    assert_eq!(in_state(&whole, "queued"), 1);
    let disabled = service.send("DELETE", &format!("/api/data_product/{DATASET}"), Some(&json!(["T001"])));
    assert_eq!(disabled.status, 204);
    assert_eq!(service.send("PUT", &format!("{path}/unpause"), None).status, 204);
    let whole = service.get(&path).json();
    assert_eq!((in_state(&whole, "queued"), in_state(&whole, "disabled")), (3, 1), "MIDA, EDM_GL and EDM_TB");
}

#[test]
fn updates_of_the_same_dataset_at_the_same_time_are_all_seen() {
    let Some(service) = Service::start() else { return };
    service.send("POST", "/api/plan", Some(&plan(DATASET))).json();
    let path = format!("/api/data_product/{DATASET}/update");
    std::thread::scope(|scope| {
        for id in ["BKPF", "BSEG", "T001", "GLT0", "FSLI", "MIDA"] {
            let (service, path) = (&service, &path);
            scope.spawn(move || {
                for state in ["running", "success"] {
                    service.send("PUT", path, Some(&json!([{"id": id, "state": state}]))).json();
                }
            });
        }
    });
    let whole = service.get(&format!("/api/plan/{DATASET}")).json();
    assert_eq!((in_state(&whole, "success"), in_state(&whole, "queued")), (6, 2), "{whole}");
}

#[test]
fn a_search_finds_plans_by_their_id_and_their_notes() {
    let Some(service) = Service::start() else { return };
    let other = "00000000-0000-4000-8000-0000000000b2";
    for (dataset, notes) in [(DATASET, "Monthly closing"), (other, "Yearly closing")] {
        let mut plan = plan(dataset);
        plan["dataset"]["extra"] = json!({"notes": notes});
        service.send("POST", "/api/plan", Some(&plan)).json();
    }
    let found = |query: &str| {
        let found = service.get(&format!("/api/plan/search?{query}")).json();
        let plans = found.as_array().unwrap().iter();
        plans.map(|plan| plan["dataset"]["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found(""), [other, DATASET], "the last changed comes first");
    assert_eq!(found("search_by=monthly&page=0"), [DATASET]);
    assert_eq!(found("search_by=0000b2"), [other]);
    assert_eq!(found("search_by=CLOSING&page=1"), [""; 0]);
    let all = service.get("/api/plan/search").json();
    let counts = ["data_products", "successful", "dependencies"].map(|count| all[0][count].as_i64().unwrap());
    assert_eq!(counts, [11, 0, 16]);
}
