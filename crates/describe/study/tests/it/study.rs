//! What a study without faults becomes.

use crate::{GRPC, read_text, study};
use plimsoll_model::factor::{Assignment, Level, Role};
use plimsoll_model::load::{LoadModel, Profile, Stop, Think};
use plimsoll_model::start::Design;
use plimsoll_model::study::FloorRule;
use plimsoll_model::system::Probe;
use plimsoll_model::workload::{GrpcSchema, Protocol, Sequence, Steps, Target};
use plimsoll_study::{Bindings, PortChoice, Severity, Study, TrialSpec, quick};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

fn mutex_with(users: i64) -> Assignment {
    Assignment(vec![("mode".to_owned(), Level::Text("mutex".to_owned())), ("users".to_owned(), Level::Integer(users))])
}

fn resolved(study: &Study, assignment: &Assignment) -> TrialSpec {
    let bindings = Bindings { ports: [("counter".to_owned(), 4321)].into(), ..Bindings::default() };
    study.resolve(assignment, &bindings).expect("a trial")
}

#[test]
fn a_study_says_what_it_is_about() {
    let study = study(GRPC);
    assert_eq!((study.title.as_str(), study.repeats, study.seed), ("inputQ against mutex", 5, 1));
    assert_eq!(study.factors[0].role, Role::Compared { baseline: 0 });
    assert_eq!((study.factors[1].name.as_str(), study.factors[1].role), ("users", Role::Condition));
    let facts = study.facts();
    assert_eq!(facts.load, "closed loop, {users} users, no think time");
    assert_eq!(facts.workload, "gRPC to {counter.address}: increment; one connection per user; time-out 10s");
    assert_eq!((facts.protocol, facts.open_load, facts.loopback, facts.quick), (Protocol::Grpc, false, true, false));
    assert_eq!(
        (facts.decide[0].measure.to_string().as_str(), facts.decide[0].margin),
        ("iteration_duration.p95", 0.05)
    );
    assert_eq!((&facts.systems[..], facts.mean_think), (&["counter".to_owned()][..], Some(0.0)));
}

#[test]
fn a_load_that_no_machine_can_offer_is_refused() {
    let said = |from: &str, to: &str| {
        let (study, faults) = read_text(&GRPC.replace(from, to));
        let faults: Vec<String> = faults.into_iter().map(|fault| fault.message).collect();
        (study.is_some(), faults.join("; "))
    };
    let (read, message) = said("[10, 100, 200, 300, 1000]", "[10, 1000000]");
    assert!(!read && message.starts_with("1000000 users with a connection each are too many"), "{message}");
    let (read, message) = said("[10, 100, 200, 300, 1000]", "[10, 60000]");
    assert!(read && message.is_empty(), "what a machine allows is not known here: {message}");
    let (read, message) = said("users    = \"{users}\"", "rate = 5000000\nmax_users = \"{users}\"");
    assert!(!read && message.starts_with("5000000 iterations per second are too many"), "{message}");
    let (read, message) = said("users    = \"{users}\"", "rate = 50_000\nmax_users = \"{users}\"");
    assert!(read, "{message}");
}

#[test]
fn a_largest_load_that_the_study_does_not_name_is_one_that_a_machine_can_offer() {
    let given = |workload: &str, load: &str| {
        study(&format!(
            "title = 't'\nquestion = 'q?'\n[workload]\nprotocol = 'http'\ntarget = '127.0.0.1:80'\n{workload}\n\
             steps = [{{ get = '/' }}]\n[load]\n{load}\n[objective]\nlimits = {{ 'request_duration.p95' = '200ms' }}\n"
        ))
    };
    let nothing_varies = Assignment(Vec::new());
    let most = |load: &str| given("", load).search(&nothing_varies).expect("a search").most;
    assert_eq!(most("profile = 'capacity'\nrate = 20_000"), 2_000_000.0, "100 times the first");
    assert_eq!(most("profile = 'capacity'\nrate = 50_000"), 3_200_000.0, "what four processors start");
    assert_eq!(most("profile = 'capacity'\nusers = 700"), 64_512.0);
    let most = |workload: &str, load: &str| {
        let study = given(workload, load);
        study.resolve(&nothing_varies, &Bindings::default()).expect("a trial").load.most_users()
    };
    assert_eq!(most("", "profile = 'feedback'\nusers = 600"), 60_000);
    assert_eq!(most("", "profile = 'feedback'\nusers = 700"), 64_512);
    assert_eq!(most("connect = 'shared 9'", "profile = 'feedback'\nusers = 700"), 70_000, "they need no port each");
    let named = "title = 't'\nquestion = 'q?'\n[workload]\nprotocol = 'http'\ntarget = '127.0.0.1:80'\n\
                 steps = [{ get = '/' }]\n[load]\nprofile = 'capacity'\nrate = 50_000\nmost = 5_000_000\n\
                 [objective]\nlimits = { 'request_duration.p95' = '200ms' }\n";
    let told = crate::faults_of(named);
    assert!(told.contains("5000000 iterations per second are too many"), "{told}");
}

#[test]
fn a_measure_may_be_of_a_service_of_a_compose_file() {
    let command = "start = \"./counter -mode {mode} -listen 127.0.0.1:{port}\"";
    let file = "start = { compose = \"compose-{mode}.yaml\" }\nenv = { PORT = \"{port}\" }";
    let faults = |start: &str, measure: &str| {
        let text = GRPC.replace(command, start).replace("iteration_duration.p95", measure);
        read_text(&text).1.into_iter().map(|fault| fault.message).collect::<Vec<String>>()
    };
    assert_eq!(faults(file, "cpu:counter/db.avg"), [""; 0]);
    assert_eq!(faults(file, "memory:counter/db.max"), [""; 0]);
    assert_eq!(faults(file, "cpu:other/db.avg").len(), 1);
    assert_eq!(faults(command, "cpu:counter/db.avg").len(), 1, "a command has no services");
}

#[test]
fn variants_side_by_side_may_have_processors_of_their_own() {
    let own = |generator: &str, duplicate: bool| {
        let text = GRPC.replace("[workload]", "cpus = \"own\"\n\n[workload]");
        read_text(&format!("design = \"side by side\"\nnoise_floor = {duplicate}\n{text}\n[generator]\n{generator}\n"))
    };
    let (study, faults) = own("cpus = \"3\"", true);
    let study = study.unwrap_or_else(|| panic!("{faults:?}"));
    assert!(matches!(study.design(), Design::SideBySide(_)));
    let of = |place: usize| {
        let ports = [("counter".to_owned(), 4321)].into();
        let bindings = Bindings { ports, place: (place, 3), ..Bindings::default() };
        study.resolve(&mutex_with(10), &bindings).expect("a trial").systems[0].cpus.clone().expect("some").0
    };
    assert_eq!([0, 1, 2].map(of), [vec![0], vec![1], vec![2]]);
    for (generator, says) in [
        ("cpus = \"2-3\"", "takes a processor for each of the 3 variants that are alive at the same time"),
        ("", "is for a study whose generator has processors of its own"),
        ("cpus = \"own\"", "is for a study whose generator has processors of its own"),
    ] {
        let (study, faults) = own(generator, true);
        assert!(
            study.is_none() && faults.iter().any(|fault| fault.to_string().contains(says)),
            "{generator}: {faults:?}"
        );
    }
    assert!(own("cpus = \"2-3\"", false).0.is_some(), "two processors are enough for two variants");
}

#[test]
fn a_variant_that_is_alive_alone_has_all_processors_for_its_own() {
    let generator = "\n[generator]\ncpus = \"2-3\"\n";
    let fixed = GRPC.replace("[workload]", "port = 50055\ncpus = \"own\"\n\n[workload]") + generator;
    let (study, faults) = read_text(&fixed);
    let study = study.unwrap_or_else(|| panic!("{faults:?}"));
    assert_eq!(study.design(), Design::Trials, "the port is fixed");
    let spec = study.resolve(&mutex_with(10), &Bindings::default()).expect("a trial");
    assert_eq!(spec.systems[0].cpus.as_ref().map(|cpus| cpus.0.clone()), Some(vec![0, 1]));
    let in_turns = fixed.replace("port = 50055\n", "");
    let (study, faults) = read_text(&in_turns);
    let says = "takes a processor for each of the 3 variants that are alive at the same time";
    assert!(study.is_none() && faults.iter().any(|fault| fault.to_string().contains(says)), "{faults:?}");
}

#[test]
fn a_baseline_that_is_written_otherwise_than_its_level_is_told() {
    let text =
        GRPC.replace("[\"mutex\", \"inputQ\"]", "[\"1\", \"2\"]").replace("baseline = \"mutex\"", "baseline = 1");
    let (study, warnings) = read_text(&text);
    assert_eq!(study.expect("a study").factors[0].role, Role::Compared { baseline: 0 });
    let told: Vec<&str> = warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(told, ["the baseline is the whole number 1, and the level the text \"1\""]);
}

/// The study without a comparison, and without what decides.
fn describing() -> String {
    let text = GRPC.replace(", compare = true, baseline = \"mutex\"", "");
    text.split("[decide]").next().expect("a part").to_owned()
}

#[test]
fn a_study_that_compares_nothing_describes() {
    let (one, warnings) = read_text(&describing());
    assert!(warnings.is_empty(), "{warnings:?}");
    let one = one.expect("a study");
    assert!(one.factors.iter().all(|factor| factor.role == Role::Condition));
    assert_eq!((one.noise_floor, one.design()), (None, Design::Trials), "there is nothing to differ from itself");
    let decide = one.facts().decide;
    assert_eq!((decide.len(), decide[0].measure.to_string().as_str()), (1, "iteration_duration.p95"));
    let without_factors = describing().replace("{mode}", "mutex").replace("\"{users}\"", "10");
    let factors =
        without_factors.find("[factors]").expect("factors")..without_factors.find("[system").expect("a system");
    let without_factors = without_factors.replacen(&without_factors[factors], "", 1);
    assert_eq!(study(&without_factors).factors, []);
}

#[test]
fn what_is_described_needs_no_margin() {
    let decide = |table: &str| -> Vec<(String, f64)> {
        let decide = study(&(describing() + "[decide]\n" + table)).facts().decide;
        decide.into_iter().map(|one| (one.measure.to_string(), one.margin)).collect()
    };
    let counted = ("errors.count".to_owned(), 1.0);
    assert_eq!(decide("measures = ['errors.count', 'iterations.rate']")[0], counted);
    assert_eq!(decide("measure = 'iterations.rate'\nmargin = '3%'"), [("iterations.rate".to_owned(), 0.03)]);
}

#[test]
fn what_takes_a_comparison_is_warned_of_where_there_is_none() {
    let warnings = |keys: &str| -> Vec<String> {
        let (study, warnings) = read_text(&(keys.to_owned() + &describing()));
        assert!(study.is_some(), "{warnings:?}");
        warnings.iter().map(|warning| warning.message.clone()).collect()
    };
    let no_effect = |key: &str| format!("`{key}` has no effect: the study compares nothing");
    assert_eq!(warnings("noise_floor = 'strict'\nlooks = [5, 7]\n"), [no_effect("noise_floor"), no_effect("looks")]);
    assert_eq!(warnings("repeats = 2\nnoise_floor = false\n"), ["fewer than 3 repeats cannot give an interval"]);
}

#[test]
fn what_a_purpose_of_load_makes_of_a_study_is_said() {
    const SERVER: &str = "title = 't'\nquestion = 'q?'\n[workload]\nprotocol = 'http'\ntarget = '127.0.0.1:80'\n\
                          steps = [{ get = '/' }]\n";
    let said = |repeats: u32, load: &str| -> Vec<String> {
        let text = format!("repeats = {repeats}\n{SERVER}[load]\n{load}");
        read_text(&text).1.iter().map(|one| one.message.clone()).collect()
    };
    let nothing = Vec::<String>::new();
    assert_eq!(said(1, "profile = 'soak'\nusers = 5\nduration = '1h'"), nothing, "the interval is that of the load");
    let short = "a soak test of less than 16 s cannot tell whether a change goes on";
    assert_eq!(said(1, "profile = 'soak'\nusers = 5\nduration = '15s'"), [short]);
    let once = "`load.think` has no effect: each user does one iteration";
    assert_eq!(said(3, "profile = 'once'\nusers = 5\nthink = '1s'"), [once]);
    let objective = "[objective]\nlimits = { 'request_duration.p95' = '200ms' }\n";
    let capacity = format!("profile = 'capacity'\nusers = 5\n{objective}");
    assert_eq!(said(3, &capacity), nothing);
    let all = "an objective cannot allow that all exchanges fail";
    assert_eq!(said(3, &format!("{capacity}errors = 1")), [all]);
    let (found, _) = read_text(&format!("repeats = 3\n{SERVER}[load]\n{capacity}"));
    assert_eq!(
        found.expect("a study").facts().generator.max_lateness,
        Duration::from_millis(20),
        "a tenth of the limit"
    );
}

#[test]
fn a_limit_on_connections_takes_users_who_connect_while_they_are_measured() {
    let said = |workload: &str, load: &str| -> Vec<String> {
        let text = format!(
            "title = 't'\nquestion = 'q?'\nrepeats = 3\n[workload]\nprotocol = 'http'\ntarget = '127.0.0.1:80'\n\
             steps = [{{ get = '/' }}]\n{workload}\n[load]\n{load}\n\
             [objective]\nlimits = {{ 'request_duration.p95' = '200ms', 'connect_duration.p95' = '50ms' }}\n"
        );
        read_text(&text).1.iter().map(ToString::to_string).collect()
    };
    let capacity = "profile = 'capacity'\nusers = 5";
    for workload in ["", "connect = 'shared 3'"] {
        let told = said(workload, capacity);
        let warned = "warning: `connect_duration.p95` has values only where the server closes connections";
        assert!(told.len() == 1 && told[0].contains(warned), "{workload}: {told:?}");
    }
    let nothing = Vec::<String>::new();
    assert_eq!(said("connect = 'every iteration'", capacity), nothing);
    assert_eq!(said("", "profile = 'capacity'\nrate = 5"), nothing, "arrivals that find all users busy connect");
    assert_eq!(said("", "profile = 'capacity'\nusers = 5\nwarmup = '0s'"), nothing);
    assert_eq!(said("", "profile = 'feedback'\nusers = 8\nmost = 2000"), nothing, "new users come all the time");
    let sql = crate::sql::SQL.replace("request_duration:payment.p95", "connect_duration.p95");
    let told = crate::faults_of(&sql);
    assert!(told.contains("`connect_duration` is not measured in workloads of SQL"), "{told}");
}

#[test]
fn of_a_brace_that_is_not_closed_one_fault_is_told() {
    let open = "title = 't'\nquestion = 'q?'\n[workload]\nprotocol = 'http'\ntarget = '127.0.0.1:80'\n\
                draw = { page = '0 to 9'\non_start = [\n  { post = '/login' },\n]\nsteps = [{ get = '/' }]\n\
                [load]\nusers = 1\nduration = '2s'\n";
    let (study, faults) = read_text(open);
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert!(study.is_none() && faults.len() == 1, "{faults:?}");
    assert!(faults[0].contains("close the brace that line 6 opens"), "{faults:?}");
}

#[test]
fn a_trial_has_every_placeholder_filled_in() {
    let study = study(GRPC);
    let spec = resolved(&study, &mutex_with(100));
    let system = &spec.systems[0];
    assert_eq!(system.start.to_string(), "./counter -mode mutex -listen 127.0.0.1:4321");
    assert_eq!((system.ready.probe.clone(), system.port), (Probe::Tcp("127.0.0.1:4321".to_owned()), Some(4321)));
    assert_eq!(spec.workload.target, Some(Target { host: "127.0.0.1".to_owned(), port: 4321, tls: None }));
    let Steps::Grpc { schema, calls } = &spec.workload.steps else { panic!("gRPC steps") };
    let GrpcSchema::Files { files, include } = schema else { panic!("files") };
    assert_eq!((files[0].to_str(), include[0].to_str()), (Some("/study/counter.proto"), Some("/study")));
    assert_eq!((calls[0].name.as_str(), &calls[0].message), ("increment", &serde_json::json!({ "value": 1 })));
    let sequence = Sequence { field: "message".to_owned(), after: "Incremented value is ".to_owned() };
    assert_eq!(calls[0].sequence, Some(sequence));
    let think = Think::Constant(Duration::ZERO);
    assert_eq!(spec.load.model, LoadModel::Closed { users: Profile::constant(100.0), think });
}

#[test]
fn a_call_has_the_name_that_the_study_writes() {
    let text = GRPC
        .replace("call    =", "name    = \"count for {users}\",\n        call    =")
        .replace("iteration_duration.p95", "request_duration:count for {users}.p95");
    let study = study(&text);
    assert_eq!(study.facts().decide[0].measure.to_string(), "request_duration:count for {users}.p95");
    let Steps::Grpc { calls, .. } = resolved(&study, &mutex_with(10)).workload.steps else { panic!("gRPC") };
    assert_eq!(calls[0].name, "count for {users}");
}

#[test]
fn levels_keep_their_type_in_messages() {
    let text = GRPC.replace("value = 1", "value = \"{users}\", note = \"for {users}\"");
    let Steps::Grpc { calls, .. } = resolved(&study(&text), &mutex_with(10)).workload.steps else { panic!("gRPC") };
    assert_eq!(calls[0].message, serde_json::json!({ "value": 10, "note": "for 10" }));
}

#[test]
fn ports_are_free_unless_the_study_fixes_them() {
    let ports = |text: &str| study(text).system_ports(&mutex_with(10));
    assert_eq!(ports(GRPC), [("counter".to_owned(), PortChoice::Free)]);
    let fixed = GRPC.replace("[system.counter]", "[system.counter]\nport = 50055");
    assert_eq!(ports(&fixed), [("counter".to_owned(), PortChoice::Fixed(50055))]);
    let spec = study(&fixed).resolve(&mutex_with(10), &Bindings::default()).expect("the study fixes the port");
    assert_eq!(spec.workload.target.map(|target| target.port), Some(50055));
    let beside = format!("{GRPC}\n[system.clock]\nstart = './clock'\n");
    assert_eq!(ports(&beside).len(), 1, "a system that is never told a port has none");
}

#[test]
fn a_missing_port_is_an_error_and_not_a_guess() {
    let diagnostics = study(GRPC).resolve(&mutex_with(10), &Bindings::default()).expect_err("no port");
    assert!(diagnostics.iter().any(|one| one.message.contains("counter.address")), "{diagnostics:?}");
}

#[test]
fn systems_start_in_the_order_of_the_file() {
    let text = format!("{GRPC}\n[system.a_database]\nstart = './db'\n");
    let names: Vec<String> = resolved(&study(&text), &mutex_with(10)).systems.into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["counter", "a_database"]);
}

#[test]
fn load_goes_to_this_machine_or_to_hosts_that_are_listed() {
    let here: IpAddr = "127.0.0.1".parse().expect("an address");
    let mapped: IpAddr = "::ffff:127.0.0.1".parse().expect("an address");
    let there: IpAddr = "192.0.2.7".parse().expect("an address");
    let plain = study(GRPC);
    assert!(plain.may_load("localhost", &[here]) && plain.may_load("localhost", &[mapped]));
    assert!(!plain.may_load("localhost", &[here, there]), "one stranger is one too many");
    assert!(!plain.may_load("nowhere", &[]) && !plain.may_load("example.org", &[there]));
    let listing = |host: &str| study(&format!("{GRPC}\n[targets]\nallow = ['{host}']\n"));
    assert!(listing("Example.org").may_load("example.org", &[there]));
    assert!(listing("192.0.2.7").may_load("example.org", &[there]), "its address is listed");
    assert!(!listing("192.0.2.8").may_load("example.org", &[there]));
}

#[test]
fn the_length_of_a_trial_follows_its_condition() {
    let text = GRPC.replace("\"20s\"", "\"{users}s\"").replace("\"{users}\"", "5").replace("warmup   = \"2s\"", "");
    let length = study(&text).phase_lengths(&Assignment(vec![("users".to_owned(), Level::Integer(300))]));
    assert_eq!((length.warmup, length.measure), (Duration::from_secs(2), Duration::from_secs(300)));
}

#[test]
fn noise_floor_spare_blocks_and_looks_have_defaults() {
    let plain = study(GRPC);
    let milder = Some(FloorRule::Beyond);
    assert_eq!((plain.noise_floor, plain.spare_blocks, &plain.looks[..]), (milder, None, &[][..]));
    let other =
        study(&GRPC.replace("[factors]", "noise_floor = false\nspare_blocks = 0\nlooks = [5, 7, 10]\n[factors]"));
    assert_eq!((other.noise_floor, other.spare_blocks, &other.looks[..]), (None, Some(0), &[5, 7, 10][..]));
    assert_eq!(other.repeats, 10, "the last look says how many repeats there are");
    study(&GRPC.replace("[factors]", "repeats = 10\nlooks = [5, 10]\n[factors]"));
}

#[test]
fn a_noise_floor_may_let_stand_what_lies_beyond_it() {
    let with = |floor: &str| GRPC.replace("[factors]", &format!("noise_floor = {floor}\n[factors]"));
    for (floor, rule) in [
        ("true", Some(FloorRule::Beyond)),
        ("\"strict\"", Some(FloorRule::Strict)),
        ("\"beyond\"", Some(FloorRule::Beyond)),
        ("false", None),
    ] {
        let study = study(&with(floor));
        assert_eq!(study.noise_floor, rule, "{floor}");
        assert_eq!(study.facts().floor_rule, rule.unwrap_or_default(), "{floor}");
    }
    let (_, faults) = read_text(&with("\"beyont\""));
    let fault = &faults[0];
    assert!(fault.message.contains("must be true, false, \"beyond\" or \"strict\""), "{fault}");
    assert_eq!(fault.help.as_deref(), Some("did you mean `beyond`?"));
}

#[test]
fn an_early_look_is_a_warning() {
    let found = warning(&GRPC.replace("[factors]", "looks = [3, 10]\n[factors]"));
    assert!(found.contains("a look after 3 repeats is early"), "{found}");
}

#[test]
fn forty_variants_can_be_compared() {
    let levels = |count: usize| (1..=count).map(|level| format!("'{level}'")).collect::<Vec<_>>().join(", ");
    let text = |count: usize| GRPC.replace("[\"mutex\", \"inputQ\"]", &format!("['mutex', {}]", levels(count)));
    study(&text(39));
    let (_, diagnostics) = read_text(&text(40));
    assert!(diagnostics[0].message.contains("compares 41 variants; 40 are the most"), "{diagnostics:?}");
}

#[test]
fn a_quick_look_has_fewer_levels_repeats_and_seconds() {
    let quick = quick(study(&GRPC.replace("[factors]", "looks = [5, 10]\n[factors]")));
    assert!(quick.looks.is_empty() && quick.noise_floor.is_some());
    assert_eq!(quick.factors[1].levels, [10, 200, 1000].map(Level::Integer));
    assert_eq!(quick.factors[0].levels.len(), 2, "every variant is still compared");
    assert_eq!((quick.repeats, quick.facts().quick), (3, true));
    let load = resolved(&quick, &mutex_with(10)).load;
    assert_eq!((load.warmup, load.stop), (Duration::from_secs(1), Stop::After(Duration::from_secs(3))));
    assert_eq!(quick.phase_lengths(&mutex_with(10)).measure, Duration::from_secs(3));
}

#[test]
fn a_server_that_each_variant_restores_in_its_own_way_leaves_trials() {
    let with = |url: &str, restore: &str, design: &str| {
        let database = format!("[database.shop]\nurl = '{url}'\nrestore = './index.sh {restore}'\n");
        GRPC.replace("[factors]", &format!("{design}\n[factors]"))
            .replace("[workload]", &format!("{database}[workload]"))
    };
    let one = "postgresql://me@localhost/shop";
    let restored = study(&with(one, "{mode}", ""));
    assert_eq!(restored.design(), Design::Trials);
    // It would be restored under the variants that are alive, the duplicate of the baseline included.
    for (url, restore) in [(one, "{users}"), ("postgresql://me@localhost/{mode}", "{mode}")] {
        let by_default = study(&with(url, restore, ""));
        assert!(by_default.reason_of_design().contains("would be restored under those that use it"), "{url} {restore}");
        assert!(study(&with(url, restore, "design = 'turns'")).design().turns().is_some(), "{url} {restore}");
    }
    let (_, diagnostics) = read_text(&with(one, "{mode}", "design = 'turns'"));
    assert!(diagnostics.iter().any(|one| one.message.contains("`restore` of `shop`")), "{diagnostics:?}");
}

#[test]
fn a_quick_look_has_no_more_turns_than_its_seconds_have_room_for() {
    for (given, expected) in
        [("slice = '200ms', count = 40", 15), ("slice = '200ms', count = 5", 5), ("slice = '1s'", 8)]
    {
        let text = GRPC.replace("[factors]", &format!("turns = {{ {given} }}\n[factors]"));
        let count = quick(study(&text)).design().turns().expect("turns").count;
        assert_eq!(count, expected, "{given}");
        let begun = study(&text).design();
        assert_eq!(quick(study(&text).begun_as(begun)).design(), begun, "a run goes on as it began");
    }
}

#[test]
fn a_quick_look_squeezes_stages() {
    let stages = "stages = [{ ramp = '20s', to = 9 }, { hold = '10s' }]";
    let text = GRPC.replace("duration = \"20s\"", stages);
    let LoadModel::Closed { users, .. } = resolved(&quick(study(&text)), &mutex_with(10)).load.model else {
        panic!("closed")
    };
    assert_eq!(users.length(), Duration::from_secs(3));
    assert_eq!(users.stages[0].length, Duration::from_secs(2));
}

#[test]
fn in_a_quick_look_users_begin_at_once() {
    let text = GRPC.replace("duration = \"20s\"", "duration = \"20s\"\nnew_users = 5");
    let joining = |study: &Study| match resolved(study, &mutex_with(10)).load.model {
        LoadModel::Closed { users, .. } => users.joining.is_some(),
        LoadModel::Open { .. } => panic!("closed"),
    };
    assert!(joining(&study(&text)) && !joining(&quick(study(&text))));
}

#[test]
fn numbers_are_written_in_every_way_that_toml_has() {
    let text = GRPC.replace("[10, 100, 200, 300, 1000]", "[1_0, 0x64, 200, 1e3]");
    let levels: Vec<String> = study(&text).factors[1].levels.iter().map(Level::to_string).collect();
    assert_eq!(levels, ["10", "100", "200", "1000"]);
}

#[test]
fn the_studies_of_this_repository_have_no_faults() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../studies");
    let mut read = 0;
    let entries =
        |folder: &Path| std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    for folder in entries(&folder).filter(|path| path.is_dir()) {
        for path in entries(&folder).filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
            study(&std::fs::read_to_string(&path).expect("a study"));
            read += 1;
        }
    }
    assert!(read > 0);
}

#[test]
fn warnings_leave_a_study() {
    let (study, diagnostics) = read_text(&GRPC.replace("[factors]", "repeats = 2\n[factors]"));
    assert!(study.is_some());
    assert_eq!(diagnostics[0].severity, Severity::Warning);
}

/// The only warning about `text`, which is a study all the same.
fn warning(text: &str) -> String {
    let (study, diagnostics) = read_text(text);
    assert!(study.is_some());
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    diagnostics[0].to_string()
}

#[test]
fn a_system_whose_readiness_nothing_tells_is_a_warning() {
    let text = GRPC
        .replace("127.0.0.1:{port}", "127.0.0.1:5000")
        .replace("ready = { tcp = \"{address}\" }", "")
        .replace("{counter.address}", "127.0.0.1:5000");
    assert_eq!(
        warning(&text),
        "study.toml:10:51: warning: nothing tells when `counter` is ready; \
         use `{port}` in the place of 5000, or set `ready`"
    );
    for known in [
        text.replace("[workload]", "port = 5000\n[workload]"),
        text.replace("[workload]", "ready = { log = 'up' }\n[workload]"),
    ] {
        study(&known);
    }
}

#[test]
fn a_study_that_takes_forever_is_a_warning() {
    for (duration, span) in [("48h", "150 days"), ("8760h", "75 years")] {
        let found = warning(&GRPC.replace("\"20s\"", &format!("\"{duration}\"")));
        assert!(found.contains(&format!("the trials take {span} under load")), "{found}");
    }
    study(&GRPC.replace("\"20s\"", "\"1h\""));
}

#[test]
fn a_connection_style_can_be_compared() {
    let text = GRPC
        .replace(
            "mode  =",
            "connect = { levels = ['per user', 'every iteration'], compare = true, baseline = 'per user' }\nmode  =",
        )
        .replace("[workload]", "[workload]\nconnect = '{connect}'");
    assert_eq!(
        study(&text).facts().workload,
        "gRPC to {counter.address}: increment; connections: {connect}; time-out 10s"
    );
}
