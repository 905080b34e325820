//! What is said about studies that are wrong.

use crate::flow::{FLOW, SCRIPT};
use crate::sql::SQL;
use crate::storage::STORAGE;
use crate::{GRPC, read_text};
use plimsoll_study::{Style, render};

/// The study with `old` replaced, which must be there.
fn with(old: &str, new: &str) -> String {
    assert!(GRPC.contains(old), "`{old}` is not in the study");
    GRPC.replacen(old, new, 1)
}

/// The diagnostics of `text` as they are drawn; there must be no study.
fn drawn(text: &str) -> String {
    let (study, diagnostics) = read_text(text);
    assert!(study.is_none(), "a study in spite of its faults");
    render(&diagnostics, Style::Plain)
}

/// Compares with the snapshot of the test.
macro_rules! assert_drawn {
    ($drawn:expr) => {
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!($drawn) })
    };
}

/// Draws each wrong study under the name of what is wrong with it.
fn gallery(cases: &[(&str, String)]) -> String {
    cases.iter().map(|(name, text)| format!("## {name}\n{}\n", drawn(text))).collect()
}

fn numbers(range: std::ops::RangeInclusive<u32>) -> String {
    range.map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}

#[test]
fn keys_and_types() {
    assert_drawn!(gallery(&[
        ("unknown key with a suggestion", with("users    = \"{users}\"", "user     = \"{users}\"")),
        ("unknown key without one", with("[load]", "[load]\ncolour = 'blue'")),
        ("key of other tables", with("[load]", "[load]\ncpus = '0'")),
        ("key of the workload", with("[load]", "[load]\nsteps = []")),
        ("key of another table with a suggestion", with("[load]", "[report]\nmeasure = 'x'\n[load]")),
        ("system without a name", with("[system.counter]", "[system]")),
        ("unknown table", with("[decide]", "[decides]")),
        ("missing key", with("title    =", "# title    =")),
        ("missing table", GRPC.split("[load]").next().expect("a part").replace("{mode}", "{mode}{users}")),
        ("a number where a text belongs", with("title    = \"inputQ against mutex\"", "title = 5")),
        ("a text where a number belongs", with("[factors]", "repeats = 'many'\n[factors]")),
        ("a value where a table belongs", with("[factors]", "report = 'yes'\n[factors]")),
        ("a table where a value belongs", with("warmup   = \"2s\"", "warmup = { seconds = 2 }")),
        ("a number where a duration belongs", with("\"20s\"", "20")),
        ("a number that is too large", with("[factors]", "seed = 99999999999999999999\n[factors]")),
        ("a boolean in an array", with("[\"counter.proto\"]", "[\"counter.proto\", true]")),
    ]));
}

#[test]
fn factors_and_placeholders() {
    assert_drawn!(gallery(&[
        ("factor used nowhere", with("{mode}", "mutex")),
        ("placeholder without a factor", with("{mode}", "{mod}").replace("mode  =", "mode = ['a', 'b']\nmodus =")),
        ("placeholder of no system", with("{counter.address}", "{countre.address}")),
        ("unknown thing of a system", with("{counter.address}", "{counter.host}")),
        ("port outside a system", with("{counter.address}", "127.0.0.1:{port}")),
        ("system without a port", with("{port}", "5000").replace("ready = { tcp = \"{address}\" }", "")),
        ("stray brace", with("Incremented value is ", "Incremented {")),
        ("missing baseline", with(", baseline = \"mutex\"", "")),
        ("baseline not among the levels", with("baseline = \"mutex\"", "baseline = \"rwlock\"")),
        ("fewer than two compared levels", with("[\"mutex\", \"inputQ\"]", "[\"mutex\"]")),
        (
            "turns of nothing that is compared",
            with(", compare = true, baseline = \"mutex\"", "").replace(
                "[factors]",
                "design = \"turns\"\nnoise_floor = true\nlooks = [5, 7]\nrepeats = 7\n\n[factors]"
            )
        ),
        ("repeated level", with("[10, 100,", "[10, 100, 10,")),
        ("empty level", with("[\"mutex\", \"inputQ\"]", "[\"mutex\", \"\"]")),
        ("level with a line break", with("[\"mutex\", \"inputQ\"]", "[\"mutex\", \"input\\nQ\"]")),
        ("no levels", with("[10, 100, 200, 300, 1000]", "[]")),
        ("name that no placeholder can have", with("users = [", "\"my users\" = ['a']\nusers = [")),
        ("name that is taken", with("users = [", "port = [1]\nusers = [")),
        ("key of the study below the factors", with("[factors]", "[factors]\nrepeats = 3\nlooks = [5, 10]")),
        ("too many variants", with("[\"mutex\", \"inputQ\"]", &format!("[\"mutex\", {}]", numbers(1..=40)))),
        (
            "too many combinations",
            with(
                "[factors]",
                &format!("[factors]\nx = {:?}\ny = {:?}", (0..101).collect::<Vec<_>>(), (0..100).collect::<Vec<_>>())
            )
            .replace("{mode}", "{mode}{x}{y}")
        ),
    ]));
}

#[test]
fn values() {
    assert_drawn!(gallery(&[
        ("zero users", with("[10, 100,", "[0, 100,")),
        ("zero duration", with("\"20s\"", "\"0s\"")),
        ("negative duration", with("\"20s\"", "\"-20s\"")),
        ("zero repeats", with("[factors]", "repeats = 0\n[factors]")),
        ("bad measure", with("iteration_duration.p95", "iteration_duratoin.p95")),
        ("unlikely measure", with("iteration_duration.p95", "beauty")),
        ("measure by a common name", with("iteration_duration.p95", "throughput")),
        ("percentile by a common name", with("iteration_duration.p95", "request_duration.95th")),
        ("percentile beyond the last", with("iteration_duration.p95", "request_duration.p99.999")),
        ("bad margin", with("\"5%\"", "5")),
        ("margin as a text without its sign", with("\"5%\"", "\"5\"")),
        ("margin of zero", with("\"5%\"", "\"0%\"")),
        ("negative margin", with("\"5%\"", "-0.05")),
        ("margin of another measure", with("margin  = \"5%\"", "margins = { \"errors.ratio\" = \"1%\" }")),
        (
            "a number of errors without a margin",
            with("iteration_duration.p95\"", "errors.count\" #").replace("margin  = \"5%\"", "")
        ),
        ("negative spare blocks", with("[factors]", "spare_blocks = -1\n[factors]")),
        ("one look", with("[factors]", "looks = [5]\n[factors]")),
        ("no looks", with("[factors]", "looks = []\n[factors]")),
        ("looks that do not ascend", with("[factors]", "looks = [5, 10, 7]\n[factors]")),
        ("looks without a verdict", with("[factors]", "looks = [2, 5]\n[factors]")),
        ("looks that end elsewhere", with("[factors]", "repeats = 9\nlooks = [5, 10]\n[factors]")),
        ("duration with another name for its unit", with("\"20s\"", "\"20 sec\"")),
        ("duration that is too long", with("\"20s\"", "\"99999h\"")),
        ("measure of no step", with("iteration_duration.p95", "request_duration:incremnt.p95")),
        ("measure of no system", with("iteration_duration.p95", "cpu:postgres.avg")),
        ("measure of storage", with("iteration_duration.p95", "sync_duration.p95")),
        ("response time in closed load", with("iteration_duration.p95", "response_time.p95")),
        ("axis that is no factor", with("[decide]", "[report]\naxis = 'user'\n[decide]")),
        (
            "empty steps",
            GRPC.split("steps    =").next().expect("a part").to_owned()
                + "steps = []\n[load]\nusers = '{users}'\nduration = '1s'\n"
        ),
        ("ready of unknown kind", with("{ tcp = \"{address}\" }", "{ udp = \"{address}\" }")),
        ("users and rate", with("[load]", "[load]\nrate = 50")),
        ("processors out of range", with("[system.counter]", "[system.counter]\ncpus = '0-7'")),
        ("generator out of range", with("[load]", "[generator]\ncpus = '9'\n[load]")),
        ("target that is none", with("{counter.address}", "counter")),
        ("target that is not allowed", with("{counter.address}", "192.0.2.1:80")),
        ("name that is not allowed", with("{counter.address}", "example.org:80")),
        ("measure that is there twice", with("measure = \"iteration", "measures = [\"cpu.avg\", \"cpu.avg\"] #")),
        (
            "measure that a report has twice",
            with("[decide]", "[report]\nmeasures = ['cpu.avg', 'memory.max', 'cpu.avg']\n[decide]")
        ),
        (
            "margin of two kinds of errors",
            with("measure = \"iteration", "measures = [\"errors.count\", \"errors.ratio\"] #").replace("\"5%\"", "3")
        ),
        (
            "two systems with one port",
            with("[system.counter]", "[system.other]\nport = 5\nstart = 'x'\n[system.counter]\nport = 5")
        ),
        (
            "lengths that differ between variants",
            with("\"2s\"", "\"{mode}\"").replace("mutex\"", "1s\"").replace("\"inputQ\"", "\"2s\"")
        ),
    ]));
}

#[test]
fn storage() {
    let with = |old: &str, new: &str| {
        assert!(STORAGE.contains(old), "`{old}` is not in the study");
        STORAGE.replacen(old, new, 1)
    };
    assert_drawn!(gallery(&[
        ("store without a name", with("[store.local]", "[store]")),
        ("store that is nowhere", with("directory =", "folder =")),
        ("store at two places", with("directory = \"data\"", "directory = \"data\"\nnfs = \"nfs://a/\"")),
        ("key of another store", with("directory = \"data\"", "directory = \"data\"\nregion = \"eu\"")),
        ("key in the study", with("\"generated\"", "\"AKIAIOSFODNN7EXAMPLE\"")),
        ("unknown store", with("\"local\", \"nfs\"", "\"local\", \"nsf\"")),
        ("store that is not allowed", with("http://{gateway.address}", "https://s3.example.org")),
        ("system that does not run", with("only  = { backend = [\"s3\"] }", "only  = { size = \"1MiB\" }")),
        ("unknown factor", with("only  = { backend = \"nfs\" }", "only  = { backnd = \"nfs\" }")),
        ("unknown level", with("only  = { backend = \"nfs\" }", "only  = { backend = [\"nsf\", \"tape\"] }")),
        ("no factor", with("only  = { backend = \"nfs\" }", "only  = { }")),
        ("no level", with("only  = { backend = \"nfs\" }", "only  = { backend = [] }")),
        ("keys outside a system", with("\"plimsoll\"", "\"{s3.access_key}\"")),
        ("keys of a store that has none", with("{s3.access_key}", "{local.access_key}")),
        ("keys that are not generated", with("\"generated\"", "\"environment\"")),
        ("direct without a file system", with("[load]", "mode = 'direct'\n[load]")),
        ("measure of no step", with("request_duration:read", "sync_duration:red")),
        (
            "several at once",
            with("\"{size}\"", "\"{size}kb\"")
                .replace("\"plimsoll\"", "\"a/b\"")
                .replace("{ do = \"write\" }", "{ do = \"put\" }")
                .replace("only  = { backend = \"nfs\" }", "only  = { backend = \"nsf\" }")
        ),
    ]));
}

#[test]
fn databases() {
    let with = |old: &str, new: &str| {
        assert!(SQL.contains(old), "`{old}` is not in the study");
        SQL.replacen(old, new, 1)
    };
    const TPCC: &str = "tpcc     = { warehouses = \"{warehouses}\" }";
    const SERVER: &str = "server   = \"mariadb\"";
    assert_drawn!(gallery(&[
        ("database without a name", with("[database.mariadb]", "[database]")),
        ("database that is nothing", with(SERVER, "")),
        ("password in a url", with(SERVER, "url = 'mysql://me:secret@localhost/shop'")),
        ("database that is not allowed", with(SERVER, "url = 'mysql://me@db.example.org/shop'")),
        (
            "port of a database that runs already",
            with(SERVER, "url = 'mysql://me@localhost/shop'").replace(
                "[workload]",
                "[system.proxy]\nstart = 'proxy {mariadb.port}'\nonly = { engine = 'mariadb' }\n[workload]"
            )
        ),
        ("key of the other kind of database", with(SERVER, "url = 'mysql://me@localhost/shop'\ndata = 'x'")),
        ("setting of Plimsoll's own", with("innodb_thread_concurrency = 8", "datadir = '/var/lib/mysql'")),
        ("a system and a database of one name", with("[workload]", "[system.mariadb]\nstart = 'x'\n[workload]")),
        (
            "database and system with one port",
            with(SERVER, "server = 'mariadb'\nport = 5")
                .replace("[workload]", "[system.x]\nstart = 'x'\nport = 5\n[workload]")
        ),
        ("unknown database", with("\"mariadb\", \"postgresql\"]", "\"mariadb\", \"postgres\"]")),
        ("database that does not run", with("only     = { engine = \"postgresql\" }", "only = { warehouses = 1 }")),
        ("unknown level", with("only     = { engine = \"postgresql\" }", "only = { engine = 'postgres' }")),
        ("unknown placeholder", with("\"256MB\"", "\"{bufers}\"")),
        ("port inside a database", with("\"256MB\"", "\"{port}\"")),
        ("two kinds of work", with("retry ", "oltp = { test = 'insert' }\nretry ")),
        ("no kind of work", with(TPCC, "#")),
        ("files beside a dataset", with(SERVER, "server = 'mariadb'\nload = ['a.sql']")),
        ("different data in one folder", with(SERVER, "server = 'mariadb'\ndata = 'data'")),
        (
            "waits and think times",
            with("\"{warehouses}\"", "\"{warehouses}\", waits = \"spec\"")
                .replace("duration =", "think = '1s'\nduration =")
        ),
        (
            "waits in open load",
            with("\"{warehouses}\"", "\"{warehouses}\", waits = \"spec\"")
                .replace("users    = \"{users}\"", "rate = \"{users}\"")
        ),
        ("new orders of another workload", with(TPCC, "oltp = { test = 'insert', rows = \"{warehouses}\" }")),
        ("first byte of a transaction", with("request_duration:payment", "time_to_first_byte:payment")),
        ("measure of no transaction", with("request_duration:payment", "request_duration:paymnt")),
        ("measure of no system", with("request_duration:payment.p95", "cpu:postgres.avg")),
        (
            "several at once",
            with("server   = \"postgresql\"", "server = 'postgress'\nready_withn = '5m'")
                .replace("warehouses = \"{warehouses}\"", "warehouses = 0, waits = 'none'")
                .replace("\"serialization\"", "\"serialisation\"")
        ),
    ]));
}

#[test]
fn flows() {
    let with = |old: &str, new: &str| {
        assert!(FLOW.contains(old), "`{old}` is not in the study");
        FLOW.replacen(old, new, 1)
    };
    const STEP: &str = "{ get = \"/plans?page={$page}\" }";
    let step = |new: &str| with(STEP, new).replace("1 to 50\" }", "1 to 50\" } # {$page}");
    assert_drawn!(gallery(&[
        ("value that nothing gives", with("/plans?page={$page}", "/plans?page={$pgae}")),
        ("value of another kind", with("/plans?page={$page}", "/plans?page={$colour}")),
        ("value of no feed", with("{$account.key}", "{$acount.key}")),
        ("value in the braces of a script", with("{$plan}", "${plan}")),
        ("value in the braces of a script that nothing gives", with("/plans?page={$page}", "/plans?page=${colour}")),
        ("value in the braces of a factor", with("{$account.key}", "{account.key}")),
        ("value where there are no feeds", with("{$account.key}", "{$row.key}")),
        ("value in a condition", with("when      = { next", "when      = { nxt")),
        ("value outside the flow", with("{api.address}", "{$api.address}")),
        ("value in a system", with("planner-{version}", "planner-{version} {$plan}")),
        ("value in a time-out", with("redirects   = 5", "timeout = '{$plan}s'")),
        ("value in a default", with("default = \"\"", "default = \"{$plan}\"")),
        ("name that is taken", with("capture = { plan =", "capture = { uuid =").replace("{$plan}", "{$uuid}")),
        (
            "value that is drawn and captured",
            with("capture = { plan =", "capture = { page =").replace("{$plan}", "{$page}")
        ),
        (
            "list that is none",
            with("each = \"ids\"", "each = \"token\"")
                .replace("token = { json = \"$.access_token\"", "token = { header = 'a'")
        ),
        ("list that nothing gives", with("each = \"ids\"", "each = \"idz\"")),
        ("list in braces", with("each = \"ids\"", "each = \"{$ids}\"")),
        ("capture from nowhere", with("{ json = \"$.access_token\" }", "{ pick = 'first' }")),
        ("capture from two places", with("{ json = \"$.access_token\" }", "{ json = '$.a', header = 'b' }")),
        ("group without a pattern", with("{ json = \"$.access_token\" }", "{ json = '$.a', group = 1 }")),
        ("JSONPath without a root", with("$.access_token", ".access_token")),
        ("two bodies", with("auth    = false,", "auth = false, body = 'x',")),
        ("token in the study", with("{$token}", "eyJhbGciOi")),
        ("password in the study", step("{ get = '/', auth = { user = 'bob', password = 'hunter2' } }")),
        ("password from nowhere", step("{ get = '/', auth = { user = 'bob' } }")),
        ("choice among nothing", step("{ get = '/' }, { choose = [] }")),
        ("choice without steps", step("{ get = '/' }, { choose = [{ weight = 4 }] }")),
        ("step that does two things", step("{ get = '/', pause = '1s' }")),
        ("branch without steps", step("{ when = { plan = 'exists' }, otherwise = [{ pause = '1s' }] }")),
        ("loop without an end", step("{ while = { plan = 'x' }, steps = [{ get = '/' }] }")),
        (
            "loops in loops",
            step(
                "{ repeat = 2, steps = [{ repeat = 2, steps = [{ repeat = 2, steps = [{ repeat = 2, steps = [{ repeat = 2, steps = [{ get = '/' }] }] }] }] }] }"
            )
        ),
        ("action without a request", step("{ pause = '1s' }")),
        ("steps and actions", with("on_stop     =", "steps = [{ get = '/' }]\non_stop     =")),
        (
            "neither steps nor actions",
            with("actions     =", "on_stop2 =")
                .replace("on_stop     =", "# on_stop")
                .replace("on_stop2 =", "on_stop =")
        ),
        ("condition without a pattern", with("matches ^[a-z]", "matches")),
        ("condition with a pattern that is none", with("matches ^[a-z]", "matches ^[a-z")),
        ("operator of another language", with("\"!= ''\"", "\"=< 50\"")),
        ("value of another iteration", with("{$page}", "{$next}")),
        (
            "value kept for another user",
            with("default = \"\"", "default = '', keep = true")
                .replace("[workload]", "[workload]\nstate = 'every iteration'"),
        ),
        (
            "condition on what comes later",
            with("{ get = \"/plans?page={$page}\" }", "{ get = '/', when = { next = 'absent' } }")
        ),
        (
            "loop that never begins",
            with(
                "{ repeat = 3, steps = [",
                "{ while = { n = 'x' }, at_most = 3, steps = [{ get = '/', capture = { n = { json = '$' } } }] }, { repeat = 3, steps = ["
            )
        ),
        ("JSONPath that is none", with("$.items[*].id", "$.items[*.id")),
        ("group that is not there", with("json = \"$.access_token\"", "regex = 'token=(.+)', group = 2")),
        ("rows that are taken once", with("file = \"accounts.csv\"", "file = 'accounts.csv'\norder = 'unique'")),
        (
            "rows that are taken once again",
            with("file = \"accounts.csv\"", "file = 'accounts.csv'\norder = 'unique'\nat_end = 'start over'")
        ),
        (
            "random rows that end",
            with("file = \"accounts.csv\"", "file = 'accounts.csv'\norder = 'random'\nat_end = 'stop'")
        ),
        ("draw of a transaction", with("\"1 to 50\"", "\"feed a.csv:b\"")),
        ("part of a form that holds nothing", step("{ method = 'POST', path = '/', multipart = [{ name = 'a' }] }")),
        ("path that has a space", with("/plans?page={$page}", "/plans of/{$page}")),
        ("path that is none", with("/plans?page={$page}", "{$page}/plans")),
        ("unknown coding", with("\"br\"", "\"brotli\"")),
        ("measure of no request", with("[load]", "[decide]\nmeasure = 'request_duration:log on.p95'\n[load]")),
        ("measure of a script", with("[load]", "[decide]\nmeasure = 'checks.ratio'\n[load]")),
        ("key of a flow in a step of gRPC", GRPC.replacen("message =", "json = {}, message =", 1)),
        ("sigma out of range", with("[load]", "[load]\nthink = { log_normal = { median = '2s', sigma = 0 } }")),
        (
            "several at once",
            with("{$plan}", "{$plna}")
                .replace("\"gzip\"", "\"zip\"")
                .replace("pick = \"random\"", "pick = \"any\"")
                .replace("status = [200, 203]", "status = [20, 203]")
                .replace("at_most = 20", "at_most = 0")
                .replace("file = \"accounts.csv\"", "fiel = 'accounts.csv'")
        ),
    ]));
}

#[test]
fn scripts() {
    let with = |old: &str, new: &str| {
        assert!(SCRIPT.contains(old), "`{old}` is not in the study");
        SCRIPT.replacen(old, new, 1)
    };
    assert_drawn!(gallery(&[
        ("script and protocol", with("script = ", "protocol = 'http'\nscript = ")),
        ("script from elsewhere", with("load-{version}.js", "https://example.org/{version}.js")),
        ("script that is none", with("load-{version}.js", "load-{version}.py")),
        ("value of a flow", with("{api.address}", "{$user}")),
        ("limits that are none", with("\"32MiB\"", "\"1KB\"").replace("\"5s\"", "5")),
        ("key of a protocol", with("exec   = \"main\"", "target = '{api.address}'")),
        ("key of a script elsewhere", with("[load]", "[load]\nexec = 'main'")),
    ]));
}

#[test]
fn several_faults_are_reported_together() {
    let text = with("users    = \"{users}\"", "user     = \"{users}\"")
        .replace("\"20s\"", "\"0s\"")
        .replace("title    =", "titel    =")
        .replace("{mode}", "{mdoe}")
        .replace("margin  = \"5%\"", "margin  = \"much\"");
    assert_drawn!(drawn(&text));
}

#[test]
fn what_is_no_toml_is_reported_at_once_and_without_consequences() {
    let text = with("title    = \"inputQ against mutex\"", "title    = inputQ against mutex")
        .replace("warmup   = \"2s\"", "warmup   = ")
        .replace("margin  = \"5%\"", "margn   = \"5%\"");
    assert_drawn!(drawn(&text));
}

#[test]
fn a_line_is_enough_for_a_log() {
    let (_, diagnostics) = read_text(&with("{mode}", "{mod}"));
    let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    assert_drawn!(lines.join("\n"));
}

#[test]
fn columns_count_characters() {
    let (_, diagnostics) = read_text(&with("warmup   = \"2s\"", "think = { exponential = \"0s\" }"));
    let place = |at: usize| (diagnostics[at].line, diagnostics[at].column);
    assert_eq!(place(0), (27, 25));
    let (_, diagnostics) = read_text(&with("message = { value = 1 }", "message = { \"größe\" = \"{x}\" }"));
    assert_eq!((diagnostics[0].line, diagnostics[0].column), (20, 32));
}

#[test]
fn colours_are_for_terminals_only() {
    let (_, diagnostics) = read_text(&with("{mode}", "{mod}"));
    assert!(!render(&diagnostics, Style::Plain).contains('\u{1b}'));
    assert!(render(&diagnostics, Style::Coloured).contains('\u{1b}'));
}
