use super::*;
use crate::scenario::{Curve, Offer, Quota, Source, longest};
use serde_json::json;

fn options(value: &Value) -> Options {
    let read = Options::read(value);
    assert_eq!(read.faults, [], "{value}");
    read.options
}

fn texts(texts: &[(&str, &str)]) -> Options {
    let read = Options::from_texts(texts.iter().map(|(name, text)| (*name, *name, *text)));
    assert_eq!(read.faults, []);
    read.options
}

/// The lines that k6 shows for these scenarios, or all that is wrong.
fn lines(options: &Options) -> Vec<String> {
    match options.scenarios(&["default", "foo"]) {
        Ok(derived) => derived.scenarios.iter().map(ToString::to_string).collect(),
        Err(faults) => faults.iter().map(|fault| format!("! {fault}")).collect(),
    }
}

#[test]
fn options_that_were_written_are_read_as_they_were() {
    let reserve = json!({ "preAllocatedVUs": 2, "maxVUs": 5 });
    let stages = json!([{ "duration": "1m30.5s", "target": 4 }, { "duration": "0s", "target": 2 }]);
    let executor = |name: &str, own: Value, more: &Value| {
        let mut scenario =
            json!({ "executor": name, "exec": "foo", "startTime": "1.25s", "env": { "A": "b" }, "tags": { "t": "1" } });
        let fields = [own, more.clone()];
        let fields = fields.iter().filter_map(Value::as_object).flatten();
        scenario.as_object_mut().expect("an object").extend(fields.map(|(name, value)| (name.clone(), value.clone())));
        scenario
    };
    let nothing = json!({});
    let written = options(&json!({
        "scenarios": {
            "a": executor("shared-iterations", json!({ "vus": 3, "iterations": 9, "maxDuration": "7s" }), &nothing),
            "b": executor("per-vu-iterations", json!({ "vus": 3 }), &nothing),
            "c": executor("constant-vus", json!({ "vus": 3, "duration": "2.001s", "gracefulStop": "0s" }), &nothing),
            "d": executor("ramping-vus", json!({ "stages": stages, "gracefulRampDown": "123us" }), &nothing),
            "e": executor("constant-arrival-rate", json!({ "rate": 7, "timeUnit": "1m", "duration": "9s" }), &reserve),
            "f": executor("ramping-arrival-rate", json!({ "startRate": 1, "stages": stages }), &reserve),
        },
        "thresholds": {
            "checks": ["rate>0.9"],
            "http_req_duration{name:a}": [{ "threshold": "p(95)<1.5", "abortOnFail": true, "delayAbortEval": "3s" }, "avg<=2"],
        },
        "tags": { "team": "shop, east", "tier": "1" }, "rps": 5, "userAgent": "x/1", "hosts": { "a.test:80": "127.0.0.1:8080" },
        "blacklistIPs": ["10.0.0.0/8"], "blockHostnames": ["*.a.test"], "systemTags": ["url", "status"],
        "summaryTrendStats": ["avg", "p(99.9)", "count"], "summaryTimeUnit": "us", "tlsVersion": { "min": "tls1.2", "max": "tls1.3" },
        "setupTimeout": "1h", "minIterationDuration": 250, "httpDebug": "full", "noVUConnectionReuse": true, "discardResponseBodies": false,
    }))
    .over(Options::defaults());
    assert_eq!(options(&written.to_json()), written);
    assert_eq!(written.scenarios.as_ref().map(Vec::len), Some(6));
}

#[test]
fn short_options_become_a_scenario_as_in_k6() {
    let cases = [
        (json!({}), "default: 1 iterations for each of 1 VUs (maxDuration: 10m0s, gracefulStop: 30s)"),
        (json!({ "vus": 3 }), "default: 1 iterations for each of 1 VUs (maxDuration: 10m0s, gracefulStop: 30s)"),
        (json!({ "vus": 5, "duration": "10s" }), "default: 5 looping VUs for 10s (gracefulStop: 30s)"),
        (json!({ "duration": 1500 }), "default: 1 looping VUs for 1.5s (gracefulStop: 30s)"),
        (
            json!({ "vus": 3, "iterations": 6 }),
            "default: 6 iterations shared among 3 VUs (maxDuration: 10m0s, gracefulStop: 30s)",
        ),
        (
            json!({ "vus": 5, "iterations": 30, "duration": "5s" }),
            "default: 30 iterations shared among 5 VUs (maxDuration: 5s, gracefulStop: 30s)",
        ),
        (
            json!({ "stages": [{ "duration": "5s", "target": 4 }, { "duration": 0, "target": 2 }] }),
            "default: Up to 4 looping VUs for 5s over 2 stages (gracefulRampDown: 30s, gracefulStop: 30s)",
        ),
        (json!({ "scenarios": {} }), "default: 1 iterations for each of 1 VUs (maxDuration: 10m0s, gracefulStop: 30s)"),
        (
            json!({ "vus": "2", "iterations": 1 }),
            "! option `iterations`: expected at least one for each of 2 VUs, found 1",
        ),
        (
            json!({ "duration": "10s", "stages": [{ "duration": "5s", "target": 4 }] }),
            "! option `duration`: expected it or `stages`, found both",
        ),
        (json!({ "duration": "0s" }), "! option `duration`: expected at least `1s`, found `0s`"),
        (json!({ "vus": 0, "iterations": 1 }), "! option `vus`: expected at least 1, found 0"),
        (
            json!({ "vus": 0, "stages": [{ "duration": "5s", "target": 0 }] }),
            "! option `scenarios.default`: expected at least one VU at some time, found none",
        ),
    ];
    for (value, expected) in cases {
        assert_eq!(lines(&options(&value)), [expected], "{value}");
    }
}

#[test]
fn scenarios_are_shown_as_in_k6() {
    let value = json!({ "scenarios": {
        "a": { "executor": "shared-iterations", "vus": 2, "iterations": 4, "startTime": "1m5s" },
        "b": { "executor": "per-vu-iterations", "vus": 2, "iterations": 4, "gracefulStop": "0s" },
        "c": { "executor": "ramping-vus", "stages": [{ "duration": "90s", "target": 5 }], "gracefulRampDown": "5s",
               "startTime": "10s", "exec": "foo" },
        "d": { "executor": "constant-arrival-rate", "rate": 90, "timeUnit": "1m", "duration": "5s",
               "preAllocatedVUs": 2, "maxVUs": 4, "startTime": "20s" },
        "e": { "executor": "ramping-arrival-rate", "startRate": 5, "preAllocatedVUs": 4, "startTime": "20s",
               "stages": [{ "target": 20, "duration": "9s" }, { "target": 7, "duration": "1s" }] },
    } });
    assert_eq!(
        lines(&options(&value)),
        [
            "b: 4 iterations for each of 2 VUs (maxDuration: 10m0s)",
            "c: Up to 5 looping VUs for 1m30s over 1 stages (gracefulRampDown: 5s, exec: foo, startTime: 10s, \
         gracefulStop: 30s)",
            "d: 1.50 iterations/s for 5s (maxVUs: 2-4, startTime: 20s, gracefulStop: 30s)",
            "e: Up to 20.00 iterations/s for 10s over 2 stages (maxVUs: 4, startTime: 20s, gracefulStop: 30s)",
            "a: 4 iterations shared among 2 VUs (maxDuration: 10m0s, startTime: 1m5s, gracefulStop: 30s)",
        ]
    );
}

#[test]
fn a_higher_level_says_all_of_the_load() {
    let script = options(&json!({ "vus": 3, "iterations": 10, "rps": 7 }));
    let over = |upper: &[(&str, &str)], lower: &Options| lines(&texts(upper).over(lower.clone())).concat();
    assert_eq!(over(&[("duration", "10s")], &script), "default: 3 looping VUs for 10s (gracefulStop: 30s)");
    let whole = texts(&[("duration", "10s")]).over(script.clone()).over(Options::defaults());
    assert_eq!((whole.rps, whole.batch, whole.iterations), (Some(7), Some(20), None));
    let scenario = options(&json!({ "scenarios": { "a": { "executor": "constant-vus", "duration": "5s" } } }));
    assert_eq!(over(&[("vus", "4")], &scenario), "a: 1 looping VUs for 5s (gracefulStop: 30s)");
    assert_eq!(
        over(&[("vus", "4"), ("duration", "3s")], &scenario),
        "default: 4 looping VUs for 3s (gracefulStop: 30s)"
    );
    assert_eq!(
        over(&[("stages", "2s:5,3s:1")], &script),
        "default: Up to 5 looping VUs for 5s over 2 stages (gracefulRampDown: 30s, gracefulStop: 30s)"
    );
}

#[test]
fn the_environment_has_options_in_capitals() {
    let read = Options::from_environment(|name| {
        let known = [
            ("K6_VUS", "7"),
            ("K6_BATCH_PER_HOST", "3"),
            ("K6_NO_VU_CONNECTION_REUSE", "true"),
            ("K6_INSECURE_SKIP_TLS_VERIFY", "false"),
            ("K6_SUMMARY_TREND_STATS", "avg,p(99.9)"),
            ("K6_MIN_ITERATION_DURATION", "x"),
            ("K6_TAGS", "team:shop,url=http://x"),
        ];
        known.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
    });
    let Options { vus, batch_per_host, no_vu_connection_reuse, insecure_skip_tls_verify, .. } = read.options;
    assert_eq!((vus, batch_per_host, no_vu_connection_reuse), (Some(7), Some(3), Some(true)));
    assert_eq!(insecure_skip_tls_verify, Some(false));
    assert_eq!(read.options.summary_trend_stats, Some(vec![Aggregation::Avg, Aggregation::Percentile(99.9)]));
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(read.options.tags, Some(vec![pair("team", "shop"), pair("url", "http://x")]));
    let faults: Vec<String> = read.faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        faults,
        [
            "option `K6_MIN_ITERATION_DURATION`: expected a duration such as `1m30s`, or a number of milliseconds, found `x`"
        ]
    );
}

#[test]
fn options_without_which_the_load_would_be_another_one_are_refused() {
    let refused =
        |value: Value| -> Vec<String> { Options::read(&value).faults.into_iter().map(|fault| fault.option).collect() };
    let set = json!({
        "tlsVersion": "tls1.1", "tlsCipherSuites": ["TLS_RSA_WITH_RC4_128_SHA"], "paused": true, "localIPs": "127.0.0.2",
        "dns": { "policy": "any" },
    });
    assert_eq!(refused(set), ["tlsVersion", "paused", "localIPs", "tlsCipherSuites", "dns.policy"]);
    let unset = json!({ "tlsVersion": null, "tlsAuth": [], "paused": false, "dns": { "ttl": "1m" } });
    assert_eq!(refused(unset), [""; 0]);
    let read = Options::from_environment(|name| {
        let set =
            [("K6_PAUSED", "true"), ("K6_EXECUTION_SEGMENT", "0:1/2"), ("K6_LOCAL_IPS", ""), ("K6_DNS", "ttl=1m")];
        set.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
    });
    let names = |faults: Vec<OptionFault>| faults.into_iter().map(|fault| fault.option).collect::<Vec<_>>();
    assert_eq!(names(read.faults), ["K6_PAUSED", "K6_EXECUTION_SEGMENT"]);
    assert_eq!(names(read.ignored), ["K6_DNS"]);
}

#[test]
fn blocked_hosts_may_stand_in_the_environment() {
    let read = Options::from_environment(|name| {
        let set = [("K6_BLOCK_HOSTNAMES", "*.test,example.org"), ("K6_BLACKLIST_IPS", "10.0.0.0/8")];
        set.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
    });
    assert_eq!(read.options.block_hostnames, Some(vec!["*.test".to_owned(), "example.org".to_owned()]));
    assert_eq!(read.options.blacklist_ips, Some(vec!["10.0.0.0/8".to_owned()]));
}

#[test]
fn thresholds_may_end_a_run() {
    let read = options(&json!({ "thresholds": {
        "http_req_duration": ["p(95)<500", { "threshold": "avg<100", "abortOnFail": true, "delayAbortEval": "10s" }],
    } }));
    let thresholds = read.thresholds.expect("there are some");
    let [(metric, list)] = thresholds.as_slice() else { panic!("expected one metric") };
    assert_eq!((metric.as_str(), list[0].abort_on_fail), ("http_req_duration", false));
    assert_eq!((list[1].source.as_str(), list[1].abort_on_fail, list[1].delay.as_secs()), ("avg<100", true, 10));
}

#[test]
fn all_faults_are_told_at_once_with_their_place() {
    let read = Options::read(&json!({
        "vus": "x",
        "iterations": -1,
        "duration": "abc",
        "throw": "maybe",
        "stages": [{ "duration": "5s" }, { "target": 1, "duration": 1, "x": 1 }, 7],
        "summaryTimeUnit": "h",
        "summaryTrendStats": ["avg", "p95"],
        "tags": { "a": {} },
        "thresholds": { "checks": ["rate>"], "vus": "value<1" },
        "scenarios": {
            "a": {},
            "b": { "executor": "nope" },
            "c": { "executor": "constant-vus" },
            "d": { "executor": "constant-vus", "duration": "500ms", "vus": 0, "rate": 1, "startTme": "1s" },
            "e f": { "executor": "shared-iterations", "vus": 2, "iterations": 1 },
            "g": { "executor": "constant-arrival-rate", "duration": "5s" },
            "h": { "executor": "ramping-arrival-rate", "stages": [], "preAllocatedVUs": 5, "maxVUs": 2 },
            "i": { "executor": "externally-controlled" },
            "j": { "executor": "constant-arrival-rate", "rate": 1, "duration": "5s", "preAllocatedVUs": 5, "maxVUs": 2 },
            "k": 1,
        },
        "bogus": 1,
        "setupTimout": "5s",
        "ext": {},
    }));
    let executors = "`shared-iterations`, `per-vu-iterations`, `constant-vus`, `ramping-vus`, \
                     `constant-arrival-rate`, `ramping-arrival-rate`";
    let faults: Vec<String> = read.faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        faults,
        [
            "option `vus`: expected a whole number, 0 or more, found `x`",
            "option `duration`: expected a duration such as `1m30s`, or a number of milliseconds, found `abc`",
            "option `iterations`: expected a whole number, 0 or more, found `-1`",
            "option `stages[0]`: expected a `target`, found none",
            "option `stages[1].x`: a stage has no such option",
            "option `stages[2]`: expected an object with `duration` and `target`",
            &format!("option `scenarios.a.executor`: expected one of {executors}, found none"),
            &format!("option `scenarios.b.executor`: expected one of {executors}, found `nope`"),
            "option `scenarios.c.duration`: expected a duration such as `10s`, found none",
            "option `scenarios.d.vus`: expected at least 1, found 0",
            "option `scenarios.d.duration`: expected at least `1s`, found `500ms`",
            "option `scenarios.d.rate`: `constant-vus` has no such option",
            "option `scenarios.d.startTme`: `constant-vus` has no such option; did you mean `startTime`?",
            "option `scenarios.e f`: expected letters, digits, `_` and `-` in the name of a scenario",
            "option `scenarios.e f.iterations`: expected at least one for each of 2 VUs, found 1",
            "option `scenarios.g.rate`: expected the iterations in each `timeUnit`, at least 1, found none",
            "option `scenarios.g.preAllocatedVUs`: expected how many VUs wait for iterations, found none",
            "option `scenarios.h.stages`: expected at least one stage with `duration` and `target`, found none",
            "option `scenarios.h.maxVUs`: expected at least preAllocatedVUs (5), found 2",
            &format!(
                "option `scenarios.i.executor`: `externally-controlled` is not supported here: take one of {executors}"
            ),
            "option `scenarios.j.maxVUs`: expected at least preAllocatedVUs (5), found 2",
            "option `scenarios.k`: expected an object with `executor`",
            "option `thresholds.checks`: expected a threshold such as `p(95)<500`, found `rate>`: expected a number behind `>`, \
         found ``",
            "option `thresholds.vus`: expected a list of thresholds, such as `[\"p(95)<500\"]`",
            "option `tags`: expected an object of texts, found an object",
            "option `throw`: expected `true` or `false`, found `maybe`",
            "option `summaryTrendStats`: expected a list of `avg`, `min`, `med`, `max`, `count`, `p(N)`, found a list",
            "option `summaryTimeUnit`: expected `s`, `ms` or `us`, found `h`",
        ]
    );
    let ignored: Vec<String> = read.ignored.iter().map(ToString::to_string).collect();
    assert_eq!(
        ignored,
        [
            "option `bogus`: there is no such option",
            "option `ext`: Plimsoll does without it",
            "option `setupTimout`: there is no such option; did you mean `setupTimeout`?",
        ]
    );
}

#[test]
fn a_function_that_is_not_exported_cannot_be_run() {
    let value = json!({ "scenarios": { "a": { "executor": "per-vu-iterations", "exec": "nope" } } });
    assert_eq!(
        lines(&options(&value)),
        ["! option `scenarios.a.exec`: expected the script to export the function `nope`, found only `default`, `foo`"]
    );
    let message = |exports: &[&str]| no_such_function("default", exports.iter().copied());
    assert_eq!(message(&["options", "setup"]), "expected the script to export the function `default`, found none");
    assert!(message(&["defualt"]).ends_with("found only `defualt`; did you mean `defualt`?"));
}

#[test]
fn a_scenario_is_an_offer() {
    let second = Duration::from_secs(1);
    let value = json!({ "scenarios": {
        "ramp": { "executor": "ramping-vus", "startVUs": 2, "startTime": "3s", "gracefulRampDown": "4s",
                  "stages": [{ "duration": "10s", "target": 12 }, { "duration": 0, "target": 5 }] },
        "rate": { "executor": "constant-arrival-rate", "rate": 90, "timeUnit": "1m", "duration": "5s",
                  "preAllocatedVUs": 2 },
        "shared": { "executor": "shared-iterations", "vus": 2, "iterations": 5, "maxDuration": "7s" },
    } });
    let derived = options(&value).scenarios(&["default"]).expect("scenarios");
    let offers: Vec<Offer> = derived.scenarios.iter().map(Scenario::offer).collect();
    let [rate, shared, ramp] = offers.as_slice() else { panic!("expected three") };
    assert_eq!((ramp.begin, ramp.window, ramp.drain), (second * 3, second * 10, second * 30));
    let Source::Closed { users, graceful_ramp_down, quota: Quota::Unlimited } = &ramp.source else {
        panic!("{ramp:?}")
    };
    assert_eq!(*graceful_ramp_down, second * 4);
    assert_eq!([0, 5, 9, 10, 99].map(|at| users.at(second * at).round()), [2.0, 7.0, 11.0, 5.0, 5.0]);
    let Source::Open { rate, .. } = &rate.source else { panic!("{rate:?}") };
    assert_eq!(*rate, Curve(vec![(Duration::ZERO, 1.5)]));
    let two = Curve(vec![(Duration::ZERO, 2.0)]);
    let source = Source::Closed { users: two, graceful_ramp_down: Duration::ZERO, quota: Quota::Together(5) };
    assert_eq!((shared.window, &shared.source), (second * 7, &source));
}

#[test]
fn users_of_a_ramp_come_and_go_one_by_one_and_it_ends_with_the_last() {
    let value = json!({ "scenarios": { "ramp": { "executor": "ramping-vus", "startVUs": 0, "stages": [
        { "duration": "4s", "target": 2 }, { "duration": "2s", "target": 2 },
        { "duration": "4s", "target": 0 }, { "duration": "9s", "target": 0 }, { "duration": 0, "target": 0 },
    ] } } });
    let derived = options(&value).scenarios(&["default"]).expect("scenarios");
    assert!(derived.scenarios[0].to_string().contains("for 19s over 5 stages"), "{}", derived.scenarios[0]);
    let Offer { window, source: Source::Closed { users, .. }, .. } = derived.scenarios[0].offer() else {
        panic!("users who go on by themselves")
    };
    assert_eq!(window, Duration::from_secs(10));
    let at = |milliseconds| users.at(Duration::from_millis(milliseconds)).round().max(0.0) as u64;
    let seen = [0, 1990, 2010, 3990, 4010, 6010, 7990, 8010, 9990, 10_000];
    assert_eq!(seen.map(at), [0, 0, 1, 1, 2, 2, 2, 1, 1, 0]);
}

/// The time that the last users have, and the end of the scenario: as `GetExecutionRequirements` of k6 has both.
#[test]
fn the_last_users_that_a_ramp_takes_away_have_the_time_of_the_ramp() {
    let times = |stages: &[(u64, u64)], ramp_down: u64, stop: u64| {
        let stage = |(seconds, target): &(u64, u64)| json!({ "duration": format!("{seconds}s"), "target": target });
        let value = json!({ "scenarios": { "ramp": { "executor": "ramping-vus", "startVUs": 2,
            "stages": stages.iter().map(stage).collect::<Vec<_>>(), "gracefulRampDown": format!("{ramp_down}s"),
            "gracefulStop": format!("{stop}s") } } });
        let scenarios = options(&value).scenarios(&["default"]).expect("scenarios").scenarios;
        (scenarios[0].offer().drain.as_secs(), longest(&scenarios).as_secs())
    };
    assert_eq!(times(&[(10, 0)], 5, 30), (5, 15));
    assert_eq!(times(&[(10, 2), (0, 0)], 5, 30), (5, 15), "the last stage is a step");
    assert_eq!(times(&[(10, 0)], 0, 30), (0, 10));
    assert_eq!(times(&[(10, 0)], 40, 30), (30, 40), "the graceful stop cuts them off");
    assert_eq!(times(&[(10, 0), (15, 0), (5, 0)], 40, 3), (23, 33), "it begins after the stages without users");
    assert_eq!(times(&[(10, 1)], 5, 30), (30, 40), "there are users at the end");
}

#[test]
fn options_are_written_as_they_are_read() {
    let value = json!({
        "vus": 3,
        "throw": true,
        "userAgent": "x",
        "setupTimeout": "1m0s",
        "tags": { "team": "x" },
        "summaryTrendStats": ["avg", "p(99.9)"],
        "summaryTimeUnit": "ms",
        "systemTags": ["url", "name"],
        "stages": [{ "duration": "5s", "target": 4 }],
        "thresholds": {
            "checks": ["rate>0.9", { "threshold": "rate>0.5", "abortOnFail": true, "delayAbortEval": "5s" }],
        },
        "scenarios": {
            "a": { "executor": "shared-iterations", "vus": 2, "iterations": 4, "startTime": "1m5s", "env": { "A": "b" } },
            "b": { "executor": "constant-vus", "vus": 2, "duration": "4s", "gracefulStop": "0s", "exec": "foo" },
            "c": { "executor": "ramping-vus", "stages": [{ "duration": "1m30s", "target": 5 }] },
            "d": { "executor": "constant-arrival-rate", "rate": 90, "duration": "5s", "preAllocatedVUs": 2 },
            "e": { "executor": "ramping-arrival-rate", "stages": [{ "target": 20, "duration": "9s" }],
                   "preAllocatedVUs": 2, "maxVUs": 4 },
        },
    });
    let read = options(&value);
    assert_eq!(options(&read.to_json()), read);
    assert_eq!(read.to_json()["setupTimeout"], value["setupTimeout"]);
    assert_eq!(read.to_json()["duration"], Value::Null);
}
