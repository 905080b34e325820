//! What holds for every text, and for every study that can be written.

use crate::flow::{FLOW, SCRIPT};
use crate::sql::SQL;
use crate::storage::STORAGE;
use crate::{GRPC, read_text};
use plimsoll_model::factor::Level;
use plimsoll_model::load::{LoadModel, Profile};
use plimsoll_study::{Bindings, Style, render};
use proptest::prelude::*;
use std::time::Duration;

/// A piece of a study file, sound or not.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,6}",
        Just("[load]\n".to_owned()),
        Just("[[system.a]]\n".to_owned()),
        Just("steps = [{ call = \"a/b\" }]\n".to_owned()),
        Just("x = \"\"\"{a}\n".to_owned()),
        Just("{".to_owned()),
        Just("é\u{0}=".to_owned()),
    ]
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(pieces in proptest::collection::vec(piece(), 0..8)) {
        let (study, diagnostics) = read_text(&pieces.concat());
        prop_assert_eq!(render(&diagnostics, Style::Coloured).is_empty(), diagnostics.is_empty());
        prop_assert!(study.is_some() || !diagnostics.is_empty(), "no study, and no word why");
    }

    #[test]
    fn no_damage_to_a_study_makes_it_panic(
        study in prop_oneof![Just(GRPC), Just(STORAGE), Just(SQL), Just(FLOW), Just(SCRIPT)],
        at in any::<proptest::sample::Index>(),
        cut in 0..40_usize,
        piece in piece(),
    ) {
        let at = at.index(study.len());
        let end = (at + cut).min(study.len());
        let text = format!("{}{piece}{}", &study[..at], &study[end..]);
        let (study, diagnostics) = read_text(&text);
        prop_assert_eq!(render(&diagnostics, Style::Plain).is_empty(), diagnostics.is_empty());
        for diagnostic in &diagnostics {
            prop_assert!(text.get(diagnostic.span.clone()).is_some(), "{diagnostic} points outside the text");
        }
        prop_assert!(study.is_some() || !diagnostics.is_empty(), "no study, and no word why");
    }

    #[test]
    fn a_study_reads_back_as_it_was_written(
        title in "[A-Za-z][a-z ]{0,20}",
        repeats in 3..40_u32,
        seed in 0..=i64::MAX as u64,
        levels in proptest::collection::btree_set(1..60_000_i64, 1..6),
        seconds in 1..1000_u64,
        variants in proptest::collection::btree_set("[a-z]{1,8}", 2..5),
        baseline in any::<proptest::sample::Index>(),
    ) {
        let levels: Vec<i64> = levels.into_iter().collect();
        let variants: Vec<String> = variants.into_iter().collect();
        let baseline = baseline.index(variants.len());
        let text = format!(
            "title = {title:?}\nquestion = {title:?}\nrepeats = {repeats}\nseed = {seed}\n\
             [factors]\nmode = {{ levels = {variants:?}, compare = true, baseline = {:?} }}\nn = {levels:?}\n\
             [workload]\nprotocol = 'http'\ntarget = '127.0.0.1:80'\nsteps = [{{ get = '/{{mode}}' }}]\n\
             [load]\nusers = '{{n}}'\nduration = '{seconds}s'\n", variants[baseline]
        );
        let study = crate::study(&text);
        prop_assert_eq!((&study.title, study.repeats, study.seed), (&title, repeats, seed));
        let expected: Vec<Level> = levels.iter().copied().map(Level::Integer).collect();
        prop_assert_eq!(&study.factors[1].levels, &expected);
        for assignment in plimsoll_model::factor::combinations(&study.factors) {
            let spec = study.resolve(&assignment, &Bindings::default()).expect("a trial");
            let Some(Level::Integer(users)) = assignment.get("n") else { panic!("a number") };
            let LoadModel::Closed { users: profile, .. } = spec.load.model else { panic!("closed load") };
            prop_assert_eq!(profile, Profile::constant(*users as f64));
            prop_assert_eq!(spec.load.stop.limit(), Duration::from_secs(seconds));
        }
    }
}
