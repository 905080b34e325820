use super::*;

#[test]
fn measures_read_back_as_written() {
    for text in [
        "iteration_duration.p95",
        "request_duration:increment.p99.99",
        "sync_duration:write.med",
        "subrequests.count",
        "deliveries.rate",
        "lost_deliveries.ratio",
        "delivery_duration:create post.p95",
        "new_orders.rate",
        "elapsed_time.total",
        "request_duration.p1",
        "response_time.med",
        "iterations.rate",
        "errors.ratio",
        "failed_iterations.count",
        "cpu:counter.avg",
        "memory.max",
        "checks.ratio",
        "checks:status is 200.ratio",
        "counter:orders.rate",
        "rate:in time.ratio",
        "trend:waiting: first.p95",
        "gauge:queue.max",
        "metric:goroutines.avg",
        "metric:api[GET /api/v4/users].p99.9",
        "metric:requests.rate",
    ] {
        assert_eq!(text.parse::<Measure>().expect(text).to_string(), text);
    }
}

#[test]
fn names_known_from_k6_mean_the_same() {
    let ours: Measure = "request_duration.p95".parse().expect("a measure");
    assert_eq!("grpc_req_duration.p95".parse(), Ok(ours));
}

#[test]
fn what_makes_no_sense_is_refused() {
    for text in [
        "",
        "p95",
        "iteration_duration",
        "iterations.p95",
        "cpu.rate",
        "request_duration.p100",
        "request_duration.p99.999",
        "request_duration.p0.5",
        "iterations:x.rate",
        "errors.avg",
        "elapsed_time.max",
        "iterations.total",
        "checks.avg",
        "counter.count",
        "counter:orders.avg",
        "rate:in time.rate",
        "trend:waiting.count",
        "metric.avg",
        "metric:api.ratio",
    ] {
        assert!(text.parse::<Measure>().is_err(), "{text}");
    }
}

#[test]
fn every_measure_has_its_direction_and_unit() {
    let rate: Measure = "iterations.rate".parse().expect("a measure");
    assert_eq!((rate.direction(), rate.unit()), (Direction::Higher, Unit::PerSecond));
    let memory: Measure = "memory.max".parse().expect("a measure");
    assert_eq!((memory.direction(), memory.unit()), (Direction::Lower, Unit::Bytes));
}

#[test]
fn what_is_noted_of_values_tells_their_unit() {
    let times = Noted::TIMES;
    let bytes = Noted { unit: Some(Unit::Bytes), is_total: true, better: None };
    for (text, noted, unit) in [
        ("trend:wait.p95", Some(times), Unit::Seconds),
        ("gauge:wait.max", Some(times), Unit::Seconds),
        ("trend:depth.p95", None, Unit::Number),
        ("counter:orders.rate", None, Unit::PerSecond),
        ("rate:wait.ratio", None, Unit::Share),
        ("metric:api.p95", Some(times), Unit::Seconds),
        ("metric:api.rate", Some(times), Unit::PerSecond),
        ("metric:api.count", None, Unit::Count),
        ("metric:goroutines.avg", None, Unit::Number),
        ("metric:sent.rate", Some(bytes), Unit::BytesPerSecond),
        ("metric:sent.count", Some(bytes), Unit::Bytes),
        ("metric:cpu.rate", Some(Noted { is_total: true, ..times }), Unit::Number),
    ] {
        let plain: Measure = text.parse().expect("a measure");
        let measure = Measure { noted, ..plain.clone() };
        assert_eq!((measure.unit(), measure == plain), (unit, true), "{text}");
    }
}
