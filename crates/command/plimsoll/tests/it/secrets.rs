//! Secrets of a study: they reach systems and requests, and no file of a bundle.

use crate::common::{Place, TINY, edited, is_nowhere};

const TOKEN: &str = "tok/en-of-the-test 4711";
const PASSWORD: &str = "pass-word-of-the-test";
/// A secret that no study names, in the environment of whoever runs it.
const KEY: &str = "key-of-another-service";

/// A server that prints its environment and echoes what it is asked, and users who send both secrets.
const STUDY: &str = r#"title    = "secrets"
question = "Do they stay where they are?"
repeats  = 2
spare_blocks = 0

[secret.token]
env = "PLIMSOLL_TEST_TOKEN"

[secret.password]
file = "password.txt"

[system.web]
start = "python3 -u server.py {port} '{secret.password}'"
env   = { TOKEN = "{secret.token}" }
ready = { tcp = "{address}", within = "60s" }

[workload]
protocol = "http"
target   = "{web.address}"
steps    = [
    { get = "/?key={secret.password}", headers = { Authorization = "Bearer {secret.token}" } },
    { method = "POST", path = "/", body = "{secret.token}", expect = { status = 201 } },
]

[load]
users    = 1
think    = "10ms"
duration = "1s"

[generator]
max_cpu      = "100%"
max_lateness = "10s"
"#;

/// Answers a GET with 200 only if both secrets came, and a POST with what it was sent, which nobody expects.
const SERVER: &str = r#"
import os, sys, urllib.parse
from http.server import BaseHTTPRequestHandler, HTTPServer

TOKEN, PASSWORD = os.environ["TOKEN"], sys.argv[2]
print("environment", dict(os.environ), "arguments", sys.argv)

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        key = urllib.parse.unquote(self.path).split("key=")[1]
        right = key == PASSWORD and self.headers["Authorization"] == "Bearer " + TOKEN
        self.reply(200 if right else 403, b"")

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"]))
        self.reply(201 if text.decode() == TOKEN else 400, text)

HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

fn place() -> Place {
    let place = Place::with_study(STUDY);
    place.write("server.py", SERVER);
    place.write("password.txt", format!("{PASSWORD}\n"));
    place
}

#[test]
fn secrets_reach_systems_and_requests_and_nothing_that_is_kept() {
    let place = place();
    let variables = [("PLIMSOLL_TEST_TOKEN", TOKEN), ("OTHER_API_KEY", KEY)];
    let ended = place.plimsoll_with(&variables, &["run", "study.toml", "--out", "bundle"]);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    for trial in &bundle.starts {
        assert!(trial.validity().counts(), "{:?}", trial.validity());
        assert!(trial.loads[0].tallies.values().all(|tally| tally.failed() == 0), "the secrets did not arrive");
    }
    let output = place.read("bundle/starts/0001/output-web.log");
    assert!(output.contains("environment") && output.contains("****"), "{output}");
    assert!(output.contains("OTHER_API_KEY"), "the server has printed it");
    for secret in [TOKEN, PASSWORD, KEY] {
        is_nowhere(secret, &place.path("bundle"));
        assert!(!said.contains(secret), "{said}");
    }
    assert!(place.read("bundle/report/report.md").contains("{secret.password}"), "requests have the study's names");
}

#[test]
fn a_secret_that_the_study_itself_holds_is_told() {
    let place = place();
    place.write("study.toml", STUDY.replace("Do they stay", &format!("Does {KEY} stay")));
    let variables = [("PLIMSOLL_TEST_TOKEN", TOKEN), ("OTHER_API_KEY", KEY)];
    place.plimsoll_with(&variables, &["run", "study.toml", "--out", "bundle"]).says(&[
        "bundle/study.toml holds a secret of the study or of the environment: take it out before anybody else gets the bundle",
    ]);
}

#[test]
fn a_system_gets_the_variables_that_the_study_names_and_no_others() {
    let place = place();
    let variables = [("PLIMSOLL_TEST_TOKEN", TOKEN), ("OTHER_API_KEY", KEY), ("GREETING", "hello there")];
    let whole = ["gets the whole environment, with what looks like secrets", "OTHER_API_KEY"];
    place.plimsoll_with(&variables, &["check", "study.toml"]).with(0).says(&whole);

    let inherit = "inherit = [\"PATH\", \"GREETING\", \"PLIMSOLL_TEST_PLACE\", \"NOBODY_SETS_THIS\"]";
    place.write("study.toml", edited(STUDY, "ready = { tcp", &format!("{inherit}\nready = {{ tcp")));
    let checked = place.plimsoll_with(&variables, &["check", "study.toml"]).with(0);
    assert!(!checked.stderr.contains("whole environment"), "{}", checked.stderr);
    place.plimsoll_with(&variables, &["run", "study.toml", "--out", "bundle"]);
    let output = place.read("bundle/starts/0001/output-web.log");
    assert!(output.contains("hello there") && output.contains("'TOKEN'"), "{output}");
    for absent in ["OTHER_API_KEY", "NOBODY_SETS_THIS", "PLIMSOLL_TEST_TOKEN"] {
        assert!(!output.contains(absent), "{output}");
    }
}

#[test]
fn what_a_server_sends_back_in_an_error_is_masked() {
    let place = place();
    // The flow shows the beginning of a reply in which it does not find what it looks for.
    let capture = "expect = { status = 201 }, capture = { id = { json = \"$.id\" } }";
    place.write("study.toml", edited(STUDY, "expect = { status = 201 }", capture));
    let ended = place.plimsoll_with(&[("PLIMSOLL_TEST_TOKEN", TOKEN)], &["run", "study.toml", "--out", "bundle"]);
    ended.with(3);
    for secret in [TOKEN, PASSWORD] {
        is_nowhere(secret, &place.path("bundle"));
    }
}

/// A script names its requests by their URLs, and may say what it likes.
#[test]
fn what_a_script_does_with_a_secret_is_masked() {
    let place = place();
    let steps = STUDY.find("[workload]").unwrap()..STUDY.find("[load]").unwrap();
    let workload = "[workload]\nscript = \"users.js\"\n\
                    env = { BASE = \"http://{web.address}\", KEY = \"{secret.password}\", TOKEN = \"{secret.token}\" }\n\n";
    place.write("study.toml", STUDY.replacen(&STUDY[steps], workload, 1));
    place.write(
        "users.js",
        "import http from 'k6/http';\n\
         import { Counter } from 'k6/metrics';\n\
         const own = new Counter('own');\n\
         export default function () {\n\
             const headers = { Authorization: 'Bearer ' + __ENV.TOKEN };\n\
             const reply = http.get(`${__ENV.BASE}/?key=${__ENV.KEY}`, { headers });\n\
             if (reply.status !== 200) throw new Error('refused ' + __ENV.KEY);\n\
             console.log('sent', __ENV.TOKEN, 'and', encodeURIComponent(__ENV.TOKEN));\n\
             own.add(1);\n\
         }\n",
    );
    let ended = place.plimsoll_with(&[("PLIMSOLL_TEST_TOKEN", TOKEN)], &["run", "study.toml", "--out", "bundle"]);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    for trial in &bundle.starts {
        assert!(trial.validity().counts(), "{:?}", trial.validity());
        assert!(trial.loads[0].tallies.values().all(|tally| tally.failed() == 0), "the secrets did not arrive");
    }
    let masked = format!("?key={}", "*".repeat(PASSWORD.len()));
    let names: Vec<String> = bundle.starts[0].loads[0].tallies.keys().map(ToString::to_string).collect();
    assert!(names.iter().any(|name| name.ends_with(&masked)), "the request is there, without its secret: {names:?}");
    assert!(place.read("bundle/starts/0001/console.log").contains(&"*".repeat(TOKEN.len())));
    for secret in [TOKEN, PASSWORD, "tok%2Fen-of-the-test%204711"] {
        is_nowhere(secret, &place.path("bundle"));
        assert!(!said.contains(secret), "{said}");
    }
}

#[test]
fn secrets_that_are_not_there_are_told_before_anything_starts() {
    let place = place();
    std::fs::remove_file(place.path("password.txt")).unwrap();
    place.plimsoll(&["check", "study.toml"]).with(2).says(&[
        "secret `password`: failed to read",
        "password.txt",
        "secret `token`: failed to read the variable PLIMSOLL_TEST_TOKEN",
    ]);
}

#[test]
fn the_help_for_a_variable_of_a_shell_makes_the_study_right() {
    let header = "{ get = \"/\", headers = { X-Key = \"${API_KEY}\" } }";
    let study = TINY.split("[workload]").next().unwrap().to_owned()
        + &format!("[workload]\nprotocol = \"http\"\ntarget = \"{{counter.address}}\"\nsteps = [{header}]\n")
        + "[load]\nusers = \"{users}\"\nduration = \"1s\"\n";
    let place = Place::with_study(&study);
    place
        .plimsoll(&["check", "study.toml"])
        .with(2)
        .says(&["for a variable of the environment say `[secret.API_KEY]` with `env = \"API_KEY\"`, and write \
         `{secret.API_KEY}`"]);
    let mended = edited(&study, "${API_KEY}", "{secret.API_KEY}") + "[secret.API_KEY]\nenv = \"API_KEY\"\n";
    place.write("study.toml", mended);
    place.plimsoll_with(&[("API_KEY", "hunter-2")], &["check", "study.toml"]).with(0);
}
