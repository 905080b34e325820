//! What requests leave in the metrics.

use super::fault;
use crate::operations::{HttpFaultKind, HttpRequest, HttpResponse};
use crate::testing::{TestUser, measuring, reply};
use plimsoll_k6_run::metrics::Aggregation;
use plimsoll_k6_run::options::Options;

fn measured(script: &str, selectors: &[&str], answer: fn(&HttpRequest) -> HttpResponse) -> TestUser {
    let text = format!("import http from 'k6/http'; export default function () {{ {script} }}");
    let mut user = TestUser::sharing(&text, &measuring(Options::defaults(), selectors)).answering(answer);
    user.returned();
    user
}

fn by_path(request: &HttpRequest) -> HttpResponse {
    match request.url.path() {
        "/404" => reply(404, &[], b""),
        "/302" => reply(302, &[("Location", "/end")], b""),
        "/refused" => fault(HttpFaultKind::Refused),
        _ => reply(200, &[], b""),
    }
}

/// As in k6: a forgotten variable must not pass for a run without failures.
#[test]
fn a_url_that_leads_nowhere_is_a_failed_request() {
    let selectors = ["http_reqs{name:undefined/x,status:0,error_code:1000}", "http_reqs{name:named}"];
    let script =
        "http.get('undefined/x'); http.post('http://', 'b', { tags: { name: 'named' } }); http.get('http://[');";
    let user = measured(script, &selectors, by_path);
    assert_eq!(user.measured("http_req_failed", Aggregation::Rate), Some(1.0));
    assert_eq!(["http_reqs", selectors[0], selectors[1]].map(|metric| user.count(metric)), [2.0, 1.0, 1.0]);
}

#[test]
fn each_exchange_is_a_sample_of_every_metric() {
    let user =
        measured("http.get('http://h/302'); http.get('http://h/404'); http.get('http://h/refused');", &[], by_path);
    assert_eq!(user.count("http_reqs"), 4.0);
    assert_eq!(user.measured("http_req_failed", Aggregation::Rate), Some(0.5));
    for (metric, average) in [
        ("http_req_duration", 9.0),
        ("http_req_blocked", 1.0),
        ("http_req_connecting", 0.5),
        ("http_req_tls_handshaking", 0.0),
        ("http_req_sending", 2.0),
        ("http_req_waiting", 3.0),
        ("http_req_receiving", 4.0),
    ] {
        assert_eq!(user.measured(metric, Aggregation::Avg), Some(average), "{metric}");
        assert_eq!(user.measured(metric, Aggregation::Count), Some(4.0), "{metric}");
    }
}

#[test]
fn samples_are_tagged_as_in_k6() {
    let selectors = [
        "http_reqs{method:GET,name:http://h/302,url:http://h/302,status:302,proto:HTTP/1.1,expected_response:true}",
        "http_reqs{name:http://h/end,status:200}",
        "http_reqs{method:POST,name:named,url:named,status:404,error_code:1404,expected_response:false,own:tag}",
        "http_reqs{status:0,error_code:1212,error:dial: connection refused,expected_response:false}",
        "http_reqs{scenario:default}",
        "http_reqs{proto:HTTP/1.1}",
    ];
    let user = measured(
        "http.get('http://h/302'); http.post('http://h/404', 'b', { tags: { name: 'named', own: 'tag', status: 'mine' } });
        http.get('http://h/refused');",
        &selectors,
        by_path,
    );
    let counts = selectors.map(|selector| user.count(selector));
    assert_eq!(counts, [1.0, 1.0, 1.0, 1.0, 4.0, 3.0]);
}

#[test]
fn a_promised_request_has_the_labels_of_when_it_was_made() {
    let text = "import http from 'k6/http'; import { group } from 'k6'; import exec from 'k6/execution';
        export default async () => {
            let later;
            exec.vu.tags.page = 'first';
            group('a', () => { later = http.asyncRequest('GET', 'http://h/302'); });
            exec.vu.tags.page = 'second';
            await later;
        };";
    let selectors = ["http_reqs{group:::a,page:first}", "http_reqs{page:second}"];
    let mut user = TestUser::sharing(text, &measuring(Options::defaults(), &selectors)).answering(by_path);
    user.returned();
    assert_eq!(selectors.map(|selector| user.count(selector)), [2.0, 0.0]);
}

#[test]
fn scripts_say_which_statuses_they_expect() {
    let user = measured(
        "http.get('http://h/404', { responseCallback: http.expectedStatuses(200, { min: 400, max: 404 }) });
        http.get('http://h/404', { responseCallback: null });
        http.setResponseCallback(http.expectedStatuses(404)); http.get('http://h/404'); http.get('http://h/');
        http.setResponseCallback(null); http.get('http://h/404');",
        &["http_reqs{expected_response:true}", "http_reqs{expected_response:false}"],
        by_path,
    );
    assert_eq!(user.count("http_reqs"), 5.0);
    assert_eq!(user.count("http_reqs{expected_response:true}"), 2.0);
    assert_eq!(user.count("http_reqs{expected_response:false}"), 1.0);
    assert_eq!(user.measured("http_req_failed", Aggregation::Rate), Some(1.0 / 3.0));
    let expected: Vec<bool> = user.requests.iter().map(|request| request.expected.is_some()).collect();
    assert_eq!(expected, [true, false, true, true, false]);
}

#[test]
fn wrong_expectations_are_exceptions() {
    let mut user = TestUser::of(
        "import http from 'k6/http';
        export default () => [() => http.expectedStatuses(), () => http.expectedStatuses('a'), () => http.expectedStatuses(1.5),
            () => http.expectedStatuses({ min: 1 }), () => http.setResponseCallback(200)].map((make) => {
            try { make(); } catch (error) { return error.message.length > 20; }
        });",
    );
    assert_eq!(user.returned(), "[true,true,true,true,true]");
}

#[test]
fn tags_that_are_switched_off_are_left_out() {
    let text = "import http from 'k6/http'; export default () => { http.get('http://h/'); };";
    let options = Options { system_tags: Some(vec!["status".to_owned(), "ip".to_owned()]), ..Options::defaults() };
    let selectors = ["http_reqs{status:200,ip:127.0.0.1}", "http_reqs{method:GET}", "http_reqs{name:http://h/}"];
    let mut user = TestUser::sharing(text, &measuring(options, &selectors));
    user.returned();
    assert_eq!(selectors.map(|selector| user.count(selector)), [1.0, 0.0, 0.0]);
}
