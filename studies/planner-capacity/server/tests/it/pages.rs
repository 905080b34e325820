//! The pages for people.

use crate::service::{Service, plan};
use serde_json::json;

const DATASET: &str = "00000000-0000-4000-8000-0000000000d4";

#[test]
fn the_first_page_lists_fifty_plans_and_a_search_the_others() {
    let Some(service) = Service::start() else { return };
    assert!(service.get("/").text.contains("No plan is here."));
    service.sql().run(
        "INSERT INTO dataset SELECT gen_random_uuid(), false, '{\"company\": \"Example\"}', 'tester', now()
         FROM generate_series(1, 51)",
    );
    let rows = |path: &str| {
        let page = service.get(path);
        assert_eq!(page.status, 200, "{}", page.text);
        page.text.matches("<a href=\"/plan/").count()
    };
    assert_eq!(rows("/"), 50);
    assert_eq!(rows("/component/plan_search"), 50);
    assert_eq!(rows("/component/plan_search?page=1&search_by=company"), 1);
    assert_eq!(rows("/component/plan_search?page=0&search_by=nobody"), 0);
    let first = service.get("/").text;
    assert!(first.contains("data-page=\"1\"") && !first.contains("data-page=\"2\""), "{first}");
    for (name, text) in [("index", &first), ("search", &service.get("/component/plan_search").text)] {
        assert!(!text.contains("src=") && !text.contains("http://"), "the page {name} fetches something else");
        assert!((10_000..40_000).contains(&text.len()), "the page {name} has {} bytes", text.len());
    }
}

#[test]
fn the_page_of_a_plan_has_its_products_states_and_dependencies() {
    let Some(service) = Service::start() else { return };
    let mut plan = plan(DATASET);
    plan["dataset"]["extra"] = json!("<b>closing</b>");
    service.send("POST", "/api/plan", Some(&plan)).json();
    let run = json!([{"id": "FSLI", "state": "running", "link": "https://log.example/7"},
                     {"id": "BKPF", "state": "failed", "link": "javascript:alert(1)"}]);
    service.send("PUT", &format!("/api/data_product/{DATASET}/update"), Some(&run)).json();
    let page = service.get(&format!("/plan/{DATASET}")).text;
    for part in [
        DATASET,
        "&lt;b&gt;closing&lt;/b&gt;",
        "<td>Journals of company 2000</td>",
        "<td class=\"queued\">queued</td>",
        "<td class=\"running\">running</td>",
        "<a href=\"https://log.example/7\">log</a>",
        "<td>javascript:alert(1)</td>",
        "<td>EDM_TB</td><td>Alchemy</td>",
    ] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
}
