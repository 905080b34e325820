//! A database that serves a system: it is told how to log in, finds what was loaded and migrated, and what it wrote is
//! asked for.

use crate::agents::Given;
use crate::common::{Ended, Place, edited};
use plimsoll_testkit::skipped;
use std::process::Command;

/// A shop that writes an order for each request, and is asked for all of them.
const STUDY: &str = r#"title    = "orders"
question = "Does the shop keep its orders?"
repeats  = 2
spare_blocks = 0

[database.db]
server    = "postgresql"
databases = ["shop", "audit"]
roles     = ["clerk", "reader"]
load      = ["schema.sql"]
migrate   = "sh -c 'psql $DATABASE_URL --quiet --set ON_ERROR_STOP=1 --command \"INSERT INTO orders VALUES (2)\" && echo done by $DATABASE_URL'"
expect    = [
    { query = "SELECT count(*) FROM orders", equals = 8 },
    { query = "SELECT current_database()", equals = "audit", database = "audit" },
]

[system.shop]
start = "python3 -u shop.py {port} {db.url}"
env   = { PGUSER = "reader", PGPASSWORD = "{db.password}", PGHOST = "{db.host}", PGPORT = "{db.port}", PGDATABASE = "{db.name}" }
ready = { tcp = "{address}", within = "60s" }

[workload]
protocol = "http"
target   = "{shop.address}"
steps    = [{ method = "POST", path = "/", expect = { status = 201 } }]

[load]
users      = 2
warmup     = "0s"
iterations = 6
duration   = "60s"

[generator]
max_cpu      = "100%"
max_lateness = "10s"

[decide]
measure = "iteration_duration.avg"
"#;

const SCHEMA: &str =
    "CREATE TABLE orders (item INT);\nINSERT INTO orders VALUES (1);\nGRANT SELECT ON orders TO reader;\n";

/// Logs in with the URL to write, and with the variables to see that the other role may read and not write.
const SHOP: &str = r#"
import subprocess, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

def psql(sql, *url):
    return subprocess.run(["psql", *url, "--quiet", "--tuples-only", "--no-align", "--command", sql], capture_output=True)

print("told", sys.argv[2])
seen, refused = psql("SELECT sum(item) FROM orders"), psql("DELETE FROM orders")
print("the reader sees", seen.stdout.decode().strip(), "and may not write:", b"permission denied" in refused.stderr)
first = psql("SELECT 1", sys.argv[2])
if first.returncode:
    sys.exit("\n".join(["a long story"] * 12 + [first.stderr.decode()]))

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        written = psql("INSERT INTO orders VALUES (3)", sys.argv[2]).returncode == 0
        self.send_response(201 if written else 500)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

const RUN: [&str; 4] = ["run", "study.toml", "--out", "bundle"];

/// A place with the study, where PostgreSQL and its client are installed.
fn place(study: &str) -> Option<Place> {
    let place = Place::with_study(study);
    place.write("schema.sql", SCHEMA);
    place.write("shop.py", SHOP);
    let checked = place.plimsoll(&["check", "study.toml"]);
    let client = Command::new("psql").arg("--version").output().is_ok();
    if checked.stderr.contains("install the package") || !client {
        skipped(format!("psql: {client}; {}", checked.stderr));
        return None;
    }
    checked.with(0);
    Some(place)
}

fn run(place: &Place, code: i32) -> Ended {
    place.plimsoll(&RUN).with(code)
}

#[test]
fn a_system_logs_in_and_what_it_wrote_is_there() {
    let Some(place) = place(STUDY) else { return };
    run(&place, 0).says(&["2/2"]);
    let printed = place.read("bundle/starts/0001/output-shop.log");
    assert!(printed.contains("the reader sees 3 and may not write: True"), "{printed}");
    assert!(printed.contains("told postgresql://clerk:********************************@127.0.0.1:"), "{printed}");
    let migrated = place.read("bundle/starts/0002/output-db.migrate.log");
    assert!(migrated.contains("done by postgresql://clerk:********************************@127.0.0.1:"), "{migrated}");
    let report = place.read("bundle/report/report.md");
    for told in ["SELECT count", "current"] {
        assert!(report.contains(told), "{told} in {report}");
    }
}

#[test]
fn both_may_run_on_the_host_of_an_agent() {
    if place(STUDY).is_none() {
        return;
    }
    let study = edited(STUDY, "[database.db]", "[database.db]\non        = \"servers\"");
    let Some(given) = Given::new(&edited(&study, "[system.shop]", "[system.shop]\non    = \"servers\"")) else {
        return;
    };
    given.place.write("there/schema.sql", SCHEMA);
    given.place.write("there/shop.py", SHOP);
    let _host = given.agent_with("far", &["--label", "servers", "--systems", "there"]);
    given.place.plimsoll(&[&RUN[..], &["--nats", &given.broker.url()]].concat()).with(0).says(&["2/2"]);
    let printed = given.place.read("bundle/starts/0001/output-shop.log");
    assert!(printed.contains("the reader sees 3 and may not write: True"), "{printed}");
    assert!(printed.contains("told postgresql://clerk:********************************@127.0.0.1:"), "{printed}");
    let migrated = given.place.read("bundle/starts/0002/output-db.migrate.log");
    assert!(migrated.contains("done by postgresql://clerk:********************************@127.0.0.1:"), "{migrated}");
    let bundle = plimsoll_bundle::read(&given.place.path("bundle")).unwrap();
    assert_eq!(bundle.problems, Vec::<String>::new());
    for start in &bundle.starts {
        let [systems] = start.summary.systems.as_slice() else { panic!("one variant") };
        let [facts] = systems.databases.as_slice() else { panic!("one database") };
        assert!(facts.conditions.iter().all(|condition| condition.holds == Some(true)), "{facts:?}");
        assert!(start.processes.iter().any(|sample| sample.system == "db" && sample.machine == "far"));
    }
    let wrong = given.place.read("study.toml").replace("equals = 8", "equals = 9");
    given.place.write("study.toml", wrong);
    let again = ["run", "study.toml", "--out", "again", "--nats", &given.broker.url()];
    given.place.plimsoll(&again).with(3).says(&["wrong data in `db`", "it gives 8"]);
    let refused = given.place.read("study.toml").replace("{db.url}", "postgresql://nobody:x@{db.address}/shop");
    given.place.write("study.toml", refused);
    let refused = ["run", "study.toml", "--out", "refused", "--nats", &given.broker.url()];
    given.place.plimsoll(&refused).with(3).says(&["the database `db` refused a login: password authentication failed"]);
}

#[test]
fn rows_that_are_missing_fail_a_start() {
    let Some(place) = place(&edited(STUDY, "equals = 8", "equals = 9")) else { return };
    run(&place, 3).says(&["wrong data in `db`", "`SELECT count(*) FROM orders` = 9", "it gives 8"]);
}

#[test]
fn a_login_that_the_database_refuses_is_the_first_that_is_said() {
    let study = edited(STUDY, "shop.py {port} {db.url}", "shop.py {port} postgresql://nobody:x@{db.address}/shop");
    let Some(place) = place(&study) else { return };
    run(&place, 3).says(&[
        "`shop` did not start, and the database `db` refused a login: password authentication failed for user \"nobody\"",
    ]);
}

#[test]
fn a_migration_that_fails_is_shown() {
    let Some(place) = place(&edited(STUDY, "INTO orders VALUES (2)", "INTO order_s VALUES (2)")) else { return };
    run(&place, 3).says(&["migrate", "relation \"order_s\" does not exist"]);
}

#[test]
fn a_migration_whose_program_is_missing_is_found_before_anything_starts() {
    let Some(place) = place(STUDY) else { return };
    place.write("study.toml", edited(STUDY, "sh -c 'psql", "no-such-program 'psql"));
    place.plimsoll(&["check", "study.toml"]).with(2).says(&["`no-such-program`", "was not found"]);
}

#[test]
fn a_migration_that_does_not_end_is_killed() {
    let study = edited(STUDY, "echo done by $DATABASE_URL", "sleep 1000");
    let Some(place) = place(&edited(&study, "roles     =", "ready_within = \"8s\"\nroles     =")) else { return };
    run(&place, 3).says(&["the migrate command", "did not end within 8s and was killed"]);
}
