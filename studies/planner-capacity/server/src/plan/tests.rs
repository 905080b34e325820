use super::*;
use State::{Disabled, Failed, Queued, Running, Success, Waiting};
use serde_json::{Value, json};

/// The plan of the study as it is posted: eleven products and sixteen dependencies.
fn posted() -> Plan {
    serde_json::from_str(include_str!("../../tests/plan.json")).expect("it is a plan")
}

/// That plan as the service has it after it was posted.
fn stored() -> Plan {
    let posted = posted();
    let mut plan = Plan::empty(posted.dataset.clone()).extended(&posted).expect("it is right");
    plan.trigger();
    plan
}

fn state(plan: &Plan, id: &str) -> State {
    plan.product(id).expect("it is in the plan").state
}

fn set(plan: &mut Plan, state: State, ids: &[&str]) {
    let updates: Vec<StateUpdate> = ids.iter().map(|id| StateUpdate::new(id, state)).collect();
    plan.update(&updates).expect("users may do this");
}

/// Follows `next` to the end, and returns the number of updates.
fn finish(plan: &mut Plan) -> usize {
    let mut updates = 0;
    while let Some(update) = plan.next().pop() {
        plan.update(&[update]).expect("`next` is always right");
        updates += 1;
    }
    updates
}

fn ids(plan: &Plan) -> Vec<String> {
    plan.data_products.iter().map(|product| product.id.clone()).collect()
}

fn with_dependency(parent: &str, child: &str) -> Result<Plan, PlanError> {
    let mut posted = posted();
    posted.dependencies.push(Dependency { parent_id: parent.to_owned(), child_id: child.to_owned(), extra: None });
    Plan::empty(posted.dataset.clone()).extended(&posted)
}

#[test]
fn a_user_who_follows_next_makes_two_updates_for_each_product() {
    let mut plan = stored();
    assert_eq!((plan.data_products.len(), plan.dependencies.len()), (11, 16));
    assert!(!plan.is_done());
    assert_eq!(finish(&mut plan), 22);
    assert!(plan.is_done());
}

#[test]
fn a_cleared_plan_takes_as_many_updates_again() {
    let mut plan = stored();
    let before = plan.clone();
    finish(&mut plan);
    plan.clear(&ids(&plan)).unwrap();
    assert_eq!(plan, before);
    assert_eq!(finish(&mut plan), 22);
}

#[test]
fn next_is_what_the_user_starts_or_what_runs() {
    let mut plan = stored();
    let next = |plan: &Plan| serde_json::to_value(plan.next()).unwrap();
    let to_run = |id: &str| json!({"id": id, "state": "running"});
    assert_eq!(next(&plan), Value::from(["BKPF", "BSEG", "FSLI", "GLT0", "MIDA", "T001"].map(to_run).to_vec()));
    set(&mut plan, Running, &["MIDA"]);
    assert_eq!(next(&plan)[4], json!({"id": "MIDA", "state": "success"}));
    set(&mut plan, Failed, &["MIDA"]);
    assert_eq!(next(&plan).as_array().unwrap().len(), 5, "a failed product is cleared before it is made again");
}

#[test]
fn an_eager_product_is_queued_once_all_its_parents_are_successful() {
    let mut plan = stored();
    assert_eq!(state(&plan, "MIDA"), Queued, "it has no parents");
    set(&mut plan, Success, &["BKPF", "BSEG"]);
    set(&mut plan, Running, &["T001"]);
    assert_eq!(state(&plan, "EDM_GL"), Waiting);
    set(&mut plan, Success, &["T001"]);
    assert_eq!((state(&plan, "EDM_GL"), state(&plan, "EDM_TB")), (Queued, Waiting));
}

#[test]
fn a_product_that_is_not_eager_waits_for_its_user() {
    let mut plan = stored();
    set(&mut plan, Success, &["EDM_GL", "EDM_TB", "FSLI", "MIDA"]);
    assert_eq!((state(&plan, "Journals 1000"), state(&plan, "Journals 2000")), (Queued, Waiting));
    assert!(plan.next().contains(&StateUpdate::new("Journals 2000", Running)));
}

#[test]
fn clearing_a_product_sets_back_all_that_is_made_from_it() {
    let mut plan = stored();
    finish(&mut plan);
    plan.clear(&["GLT0".to_owned()]).unwrap();
    for id in ["GLT0", "EDM_TB", "Alchemy", "Journals 1000", "Journals 2000"] {
        assert_eq!(state(&plan, id), Waiting, "{id}");
    }
    for id in ["BKPF", "BSEG", "T001", "EDM_GL", "FSLI", "MIDA"] {
        assert_eq!(state(&plan, id), Success, "{id}");
    }
}

#[test]
fn an_update_sets_back_what_is_made_from_it_but_not_what_it_sets_itself() {
    let mut plan = stored();
    finish(&mut plan);
    set(&mut plan, Running, &["Alchemy", "EDM_TB"]);
    assert_eq!((state(&plan, "Alchemy"), state(&plan, "EDM_TB")), (Running, Running));
    assert_eq!((state(&plan, "Journals 1000"), state(&plan, "EDM_GL")), (Waiting, Success));
}

#[test]
fn a_report_of_a_run_is_kept_until_the_product_is_cleared() {
    let mut plan = stored();
    let report = json!([{"id": "FSLI", "state": "running", "link": "https://log.example/1", "passback": {"rows": 3}}]);
    plan.update(&serde_json::from_value::<Vec<StateUpdate>>(report).unwrap()).unwrap();
    set(&mut plan, Success, &["FSLI"]);
    let product = plan.product("FSLI").unwrap();
    assert_eq!(
        (product.link.as_deref(), &product.passback),
        (Some("https://log.example/1"), &Some(json!({"rows": 3})))
    );
    plan.clear(&["FSLI".to_owned()]).unwrap();
    let product = plan.product("FSLI").unwrap();
    assert_eq!((&product.link, &product.passback), (&None, &None));
}

#[test]
fn a_paused_dataset_triggers_nothing_until_its_pause_ends() {
    let mut plan = stored();
    plan.set_paused(true);
    set(&mut plan, Success, &["BKPF", "BSEG", "T001"]);
    assert_eq!(state(&plan, "EDM_GL"), Waiting);
    plan.set_paused(false);
    assert_eq!(state(&plan, "EDM_GL"), Queued);
}

#[test]
fn nothing_waits_for_a_disabled_product() {
    let mut plan = stored();
    plan.disable(&["BKPF".to_owned()]).unwrap();
    set(&mut plan, Success, &["BSEG", "T001"]);
    assert_eq!(state(&plan, "EDM_GL"), Queued);
    finish(&mut plan);
    assert!(plan.is_done());
    assert_eq!(state(&plan, "BKPF"), Disabled);
    let refused = plan.update(&[StateUpdate::new("BKPF", Running)]);
    assert_eq!(refused, Err(PlanError::Disabled("BKPF".to_owned())));
}

#[test]
fn posting_again_keeps_states_and_brings_disabled_products_back() {
    let mut plan = stored();
    set(&mut plan, Running, &["BKPF"]);
    plan.disable(&["FSLI".to_owned()]).unwrap();
    let mut posted = posted();
    posted.data_products[0].version = "2.0.0".to_owned();
    posted.data_products.truncate(8);
    posted.dependencies.clear();
    let again = plan.extended(&posted).unwrap();
    assert_eq!((state(&again, "BKPF"), state(&again, "FSLI"), state(&again, "MIDA")), (Running, Waiting, Queued));
    assert_eq!(again.product("BKPF").unwrap().version, "2.0.0");
    assert_eq!(again.dependencies, plan.dependencies, "what is not posted stays");
}

#[test]
fn a_posted_plan_has_no_say_in_states() {
    let mut posted = serde_json::to_value(posted()).unwrap();
    posted["data_products"][0]["state"] = json!("success");
    posted["data_products"][0]["link"] = json!("https://log.example/1");
    assert_eq!(serde_json::from_value::<Plan>(posted).unwrap(), self::posted());
}

#[test]
fn a_cycle_is_refused() {
    assert!(matches!(with_dependency("Alchemy", "BSEG"), Err(PlanError::Cycle(_))));
    assert_eq!(with_dependency("FSLI", "FSLI"), Err(PlanError::Cycle("FSLI".to_owned())));
    let mut plan = stored();
    plan.disable(&["EDM_TB".to_owned()]).unwrap();
    let mut posted = posted();
    posted.data_products.clear();
    posted.dependencies = vec![Dependency { parent_id: "EDM_TB".into(), child_id: "GLT0".into(), extra: None }];
    assert!(matches!(plan.extended(&posted), Err(PlanError::Cycle(_))), "EDM_TB may be enabled again");
}

#[test]
fn a_missing_product_is_refused() {
    assert_eq!(with_dependency("SKA1", "BSEG"), Err(PlanError::Missing("SKA1".to_owned())));
    assert_eq!(with_dependency("BSEG", "SKA1"), Err(PlanError::Missing("SKA1".to_owned())));
    let missing = ["SKA1".to_owned()];
    let refused = Err(PlanError::Missing("SKA1".to_owned()));
    assert_eq!(stored().update(&[StateUpdate::new("SKA1", Running)]), refused);
    assert_eq!(stored().clear(&missing), refused);
    assert_eq!(stored().disable(&missing), refused);
}

#[test]
fn a_duplicate_is_refused() {
    let refused = with_dependency("BKPF", "EDM_GL").unwrap_err();
    assert_eq!(refused.to_string(), "the dependency of `EDM_GL` on `BKPF` is given twice");
    let mut posted = posted();
    posted.data_products.push(posted.data_products[3].clone());
    let twice = Err(PlanError::DuplicateProduct("GLT0".to_owned()));
    assert_eq!(Plan::empty(posted.dataset.clone()).extended(&posted).map(|_| ()), twice);
    assert_eq!(stored().update(&[Running, Success].map(|state| StateUpdate::new("GLT0", state))), twice);
}

#[test]
fn users_set_only_what_they_can_know() {
    for state in [Waiting, Queued, Disabled] {
        let mut plan = stored();
        let updates = [StateUpdate::new("BSEG", Success), StateUpdate::new("BKPF", state)];
        assert_eq!(plan.update(&updates), Err(PlanError::State { id: "BKPF".to_owned(), state }));
        assert_eq!(plan, stored(), "an update is done as a whole or not at all");
    }
}
