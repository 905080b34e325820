//! Metrics that systems expose, and several instances of a system, in whole studies.

use crate::common::{Place, edited};

const STUDY: &str = r#"title    = "metrics"
question = "How long do handlers take, as the server says it?"
repeats  = 3

[system.web]
start = "python3 -u web.py {port}"
ready = { tcp = "{address}", within = "60s" }

[system.web.metrics.series]
requests = "web_requests_total"
api      = { metric = "web_api_seconds", by = "handler" }
queue    = { metric = "web_queue", unit = "bytes" }

[workload]
protocol = "http"
target   = "{web.address}"
steps    = [{ name = "fast", get = "/fast" }, { name = "slow", get = "/slow" }]

[load]
users    = 8
think    = "5ms"
warmup   = "1s"
duration = "4s"

[generator]
max_cpu      = "100%"
max_lateness = "10s"

[decide]
measures = ["metric:api[/slow].avg", "metric:requests.rate"]
"#;

/// A server that says of each request to `/fast` that it took 30 ms, and of each to `/slow` 200 ms. It counts each as a
/// hundred: a p99 takes 1,000, which a busy machine does not make in so short a time.
const SERVER: &str = r##"
import asyncio, sys

took = {"/fast": 0.03, "/slow": 0.2}
served = {"/fast": 0, "/slow": 0}
bounds = [0.025, 0.05, 0.1, 0.25, float("inf")]

def metrics():
    yield "# TYPE web_requests_total counter"
    yield f"web_requests_total {sum(served.values())}"
    yield "# TYPE web_queue gauge"
    yield "web_queue 4096"
    yield "# TYPE go_goroutines gauge"
    yield "go_goroutines 12"
    yield "# TYPE web_api_seconds histogram"
    for handler, count in served.items():
        for bound in bounds:
            at_most = count if took[handler] <= bound else 0
            yield f'web_api_seconds_bucket{{handler="{handler}",le="{"+Inf" if bound == bounds[-1] else bound}"}} {at_most}'
        yield f'web_api_seconds_sum{{handler="{handler}"}} {count * took[handler]}'
        yield f'web_api_seconds_count{{handler="{handler}"}} {count}'

async def serve(reader, writer):
    try:
        while request := await reader.readuntil(b"\r\n\r\n"):
            path = request.split()[1].decode()
            body = b""
            if path == "/metrics":
                body = "".join(line + "\n" for line in metrics()).encode()
            else:
                served[path] += 100
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()

asyncio.run(main())
"##;

#[test]
fn what_a_system_says_of_itself_is_measured_decides_and_is_drawn() {
    let place = Place::with_study(STUDY);
    place.write("web.py", SERVER);
    place
        .plimsoll(&["run", "study.toml", "--out", "bundle"])
        .with_any_verdict()
        .prints(&["api[/slow], mean: 200 ms", "requests per second: "]);
    let markdown = place.read("bundle/report/report.md");
    for row in [
        r"api\[/fast\], mean and p99 | 30.0 ms",
        r"api\[/slow\], mean and p99 | 200 ms",
        "(in the bucket 100 ms to 250 ms)",
        "(in the bucket 25.0 ms to 50.0 ms)",
        "queue, mean and peak | 4.10 kB, 4.10 kB",
        "goroutines, mean and peak | 12, 12",
        "goroutines, mean over time",
    ] {
        assert!(markdown.contains(row), "{row}: {markdown}");
    }
    let table = place.read("bundle/starts/0001/metrics.csv");
    assert!(table.starts_with("at,system,variant,series,label,kind,value,sum,buckets\n"), "{table}");
    assert!(table.contains(",web,0,api,/slow,histogram,"), "{table}");
}

#[test]
fn labels_and_expressions_may_have_braces() {
    let braces = "start = \"python3 -u web.py {port}\"\nwaits = { slow = \"took [0-9]{4,} ms\" }";
    let study = STUDY.replace("start = \"python3 -u web.py {port}\"", braces);
    let study = study.replace("by = \"handler\" }", "by = \"handler\", labels = { route = \"/users/{id}\" } }");
    let place = Place::with_study(&study);
    place.plimsoll(&["check", "study.toml"]).with(0);
}

#[test]
fn measures_of_metrics_need_a_series() {
    let place = Place::with_study(&STUDY.replace("metric:api[/slow].avg", "metric:api.avg"));
    let several = ["`api` is several series, one for each value of `handler`", "as in `metric:api[VALUE].avg`"];
    place.plimsoll(&["check", "study.toml"]).with(2).says(&several);
    let place = Place::with_study(&STUDY.replace("metric:api[/slow].avg", "metric:api[/slow].p99"));
    let in_bucket = ["is known up to a bucket of the system's histogram, and cannot decide", "`metric:api[/slow].avg`"];
    place.plimsoll(&["check", "study.toml"]).with(2).says(&in_bucket);
    let place = Place::with_study(&STUDY.replace("metric:requests.rate", "metric:request.rate"));
    place.plimsoll(&["check", "study.toml"]).with(2).says(&["did you mean `requests`?"]);
    let without: String =
        STUDY.lines().filter(|line| !line.starts_with("[system.web.metrics")).collect::<Vec<_>>().join("\n");
    let without =
        without.replace("requests = \"web", "# \"web").replace("api      = {", "# {").replace("queue    = {", "# {");
    let place = Place::with_study(&without);
    place.plimsoll(&["check", "study.toml"]).with(2).says(&["the study reads no metrics of its systems"]);
}

/// Two servers, and one that passes requests on to each of them in turn.
const INSTANCES: &str = r#"title    = "instances"
question = "Do two serve as one?"
repeats  = 3

[system.web]
start     = "python3 -u web.py {port}"
ready     = { tcp = "{address}", within = "60s" }
instances = 2
env       = { INSTANCE = "{instance}" }

[system.web.metrics.series]
requests = "web_requests_total"

[system.proxy]
start = "python3 -u proxy.py {port} {files}/servers"
ready = { tcp = "{address}", within = "60s" }
files = { servers = "{web.addresses}" }

[workload]
protocol = "http"
target   = "{proxy.address}"
steps    = [{ get = "/fast" }]

[load]
users    = 2
think    = "5ms"
warmup   = "1s"
duration = "4s"

[generator]
max_cpu      = "100%"
max_lateness = "10s"

[decide]
measures = ["metric:requests.rate", "cpu:web.avg", "cpu:web-2.avg"]
"#;

const PROXY: &str = r#"
import asyncio, sys

servers = [address.rsplit(":", 1) for address in open(sys.argv[2]).read().split(",")]
assert len(servers) == 2

async def serve(reader, writer):
    ends = [await asyncio.open_connection(host, int(port)) for host, port in servers]
    turn = 0
    try:
        while request := await reader.readuntil(b"\r\n\r\n"):
            end, turn = ends[turn % 2], turn + 1
            end[1].write(request)
            writer.write(await end[0].readuntil(b"\r\n\r\n"))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    for _, end in ends:
        end.close()
    writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()

asyncio.run(main())
"#;

#[test]
fn instances_have_names_of_their_own_and_count_together() {
    let place = Place::with_study(INSTANCES);
    place.write("web.py", SERVER);
    place.write("proxy.py", PROXY);
    place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with_any_verdict().prints(&[
        "requests per second: ",
        "Mean CPU of web: ",
        "Mean CPU of web-2: ",
    ]);
    let markdown = place.read("bundle/report/report.md");
    for row in ["CPU of web, mean and peak | ", "CPU of web-1, mean and peak | ", "CPU of web-2, mean and peak | "] {
        assert!(markdown.contains(row), "{row}: {markdown}");
    }
    let table = place.read("bundle/starts/0001/metrics.csv");
    assert!(table.contains(",web-1,0,requests,") && table.contains(",web-2,0,requests,"), "{table}");
    for output in ["output-web-1.log", "output-web-2.log"] {
        place.read(&format!("bundle/starts/0001/{output}"));
    }
    assert!(!place.path("bundle/starts/0001/files").exists(), "files end with the system");
    let outside = INSTANCES.replace("files = { servers =", "files = { \"../servers\" =");
    let place = Place::with_study(&outside);
    place.plimsoll(&["check", "study.toml"]).with(2).says(&["`../servers` is not the name of a file"]);
    let shared = INSTANCES.replace("instances = 2", "instances = 2\nport = 8080");
    let place = Place::with_study(&shared);
    place.plimsoll(&["check", "study.toml"]).with(2).says(&["several instances cannot listen on the same port"]);
    let place = Place::with_study(&INSTANCES.replace("{web.addresses}", "{web.address}"));
    place.plimsoll(&["check", "study.toml"]).with(2).says(&["no system gives `web.address`"]);
    let twice = INSTANCES.replace("[system.proxy]", "[system.web-2]\nstart = \"true\"\n[system.proxy]");
    let place = Place::with_study(&twice);
    place.plimsoll(&["check", "study.toml"]).with(2).says(&["two systems are named `web-2`"]);
}

/// In one start, the second instance is gone when it has served 20 requests.
const DIES_ONCE: &str = r#"
import os

def die():
    if os.environ.get("INSTANCE") == "2" and served["/fast"] == 2000 and not os.path.exists("was-killed"):
        os.mkdir("was-killed")
        os.kill(os.getpid(), 9)

async def serve("#;

#[test]
fn an_instance_that_is_killed_under_load_fails_its_start_by_name_and_the_study_goes_on() {
    let place = Place::with_study(INSTANCES);
    let mortal = edited(SERVER, "\nasync def serve(", DIES_ONCE);
    place.write("web.py", edited(&mortal, "served[path] += 100", "served[path] += 100; die()"));
    place.write("proxy.py", PROXY);
    let ended = place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with_any_verdict();
    ended.says(&["failed: the system `web-2` ended by itself", "with signal 9 (SIGKILL)"]);
    place.nothing_runs();
    assert!(place.has("was-killed"));
    let starts = plimsoll_bundle::read(&place.path("bundle")).unwrap().starts;
    let counts: Vec<bool> = starts.iter().map(|start| start.validity().counts()).collect();
    assert_eq!(counts.len(), 4, "the start of the killed instance runs again");
    assert_eq!(counts.iter().filter(|counts| **counts).count(), 3);
    let markdown = place.read("bundle/report/report.md");
    assert!(
        markdown.contains("the system \\`web-2\\` ended by itself") || markdown.contains("the system `web-2` ended"),
        "{markdown}"
    );
}
