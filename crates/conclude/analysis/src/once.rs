//! What was sent where each user goes through its scenario once: whether all of it was answered, and whether databases then held
//! what the study expects.

use crate::answer::Sentence;
use crate::input::Input;
use crate::quantity::grouped;
use crate::words::{self, counted};
use plimsoll_model::measure::Series;
use plimsoll_model::record::Account;
use plimsoll_model::result::TrialResult;
use std::collections::BTreeMap;

/// The most requests that a sentence names with their numbers.
const NAMED: usize = 6;

/// The name of an account of requests begins with this; others are of connections.
pub(crate) const REQUEST: &str = "request:";

/// A sentence for each variant under each condition; none for a study that does not decide by how long users take.
pub(crate) fn sentences(input: &Input) -> Vec<Sentence> {
    if !input.facts.decide.iter().any(|decision| decision.measure.series == Series::ElapsedTime) {
        return Vec::new();
    }
    let mut cells: BTreeMap<(usize, usize), Vec<TrialResult<'_>>> = BTreeMap::new();
    for trial in input.trials().filter(|trial| input.counts(*trial)) {
        cells.entry((trial.condition(), trial.variant())).or_default().push(trial);
    }
    cells.into_iter().filter_map(|(cell, trials)| sentence(input, cell, &trials)).collect()
}

fn sentence(input: &Input, (condition, variant): (usize, usize), trials: &[TrialResult<'_>]) -> Option<Sentence> {
    let of_name = |name: &str, count: fn(&Account) -> u64| {
        range(trials.iter().map(|trial| trial.load.summary.replies.accounts.get(name).map_or(0, count)))
    };
    let of_all = |count: fn(&Account) -> u64| {
        let requests = |trial: &TrialResult<'_>| {
            let accounts = trial.load.summary.replies.accounts.iter();
            accounts.filter(|(name, _)| name.starts_with(REQUEST)).map(|(_, account)| count(account)).sum()
        };
        range(trials.iter().map(requests))
    };
    let sent = of_all(|account| account.sent).filter(|sent| sent.1 > 0)?;
    let unanswered = of_all(|account| account.sent - account.answered.min(account.sent))?;
    let who = if input.plan.describes() { String::new() } else { format!(" of {}", input.plan.label(variant)) };
    let place = words::conditions(&input.plan, &[condition]);
    let in_each = match trials.len() {
        1 => "in the only trial".to_owned(),
        many => format!("in each of {}", counted(many, "trial")),
    };
    let claim = match unanswered {
        (_, 0) => format!("All {} requests{who}{place} were answered as expected, {in_each}", shown(sent)),
        _ => {
            format!("{} of the {} requests{who}{place} {in_each} failed or did not end", shown(unanswered), shown(sent))
        }
    };
    let names: Vec<&String> = trials[0].load.summary.replies.accounts.keys().collect();
    let named = names.iter().filter_map(|name| {
        let (label, sent) = (name.strip_prefix(REQUEST)?, of_name(name, |account| account.sent)?);
        Some(format!("{label} {}", shown(sent)))
    });
    let named: Vec<String> = named.collect();
    let by_name = (named.len() <= NAMED).then(|| named.join(", "));
    let evidence: Vec<String> = by_name.into_iter().chain(asked(trials)).collect();
    Some(Sentence { outcome: None, claim, evidence: format!("({})", evidence.join("; ")) })
}

/// What databases were asked after each trial, in words; none where they were not.
fn asked(trials: &[TrialResult<'_>]) -> Option<String> {
    let held = |trial: &TrialResult<'_>| {
        let conditions = trial.databases().iter().flat_map(|facts| &facts.conditions);
        conditions.filter(|condition| condition.is_expected() && condition.holds == Some(true)).count() as u64
    };
    let asked = range(trials.iter().map(held)).filter(|asked| asked.0 > 0)?;
    let what = if asked.1 == 1 { "query" } else { "queries" };
    Some(format!("{} {what} after it found what the study expects", shown(asked)))
}

/// The fewest and the most.
fn range(counts: impl Iterator<Item = u64>) -> Option<(u64, u64)> {
    counts.fold(None, |range, count| match range {
        None => Some((count, count)),
        Some((least, most)) => Some((count.min(least), count.max(most))),
    })
}

/// `300`, `298 to 300`.
fn shown((least, most): (u64, u64)) -> String {
    let number = |count: u64| grouped(count as f64);
    if least == most { number(least) } else { format!("{} to {}", number(least), number(most)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::testing::{describing, start};
    use plimsoll_model::database::{Condition, DatabaseFacts};
    use plimsoll_model::study::Decision;

    /// A study of one system, of whose 300 updates some are not answered in the last trial.
    fn told(lost: u64) -> Vec<String> {
        let mut input = describing(3, |number| {
            let mut result = start(1.0);
            let answered = if number == 3 { 300 - lost } else { 300 };
            let accounts = &mut result.loads[0].summary.replies.accounts;
            accounts.clear();
            let account = |sent, answered| Account { sent, answered, ..Account::default() };
            accounts.insert("request:log in".to_owned(), account(50, 50));
            accounts.insert("request:update".to_owned(), account(300, answered));
            accounts.insert("connect".to_owned(), account(50, 50));
            let of = |name: &str| Condition { name: name.to_owned(), holds: Some(true), ..Condition::default() };
            let conditions = vec![of("`select 1` = 1"), of("`select 2` = 2"), of("1: sums")];
            let facts = DatabaseFacts { conditions, ..DatabaseFacts::default() };
            result.summary.systems[0].databases = vec![facts];
            result
        });
        let measure = "elapsed_time.total".parse().expect("a measure");
        input.facts.decide = vec![Decision { measure, margin: 0.05 }];
        analyse(&input).answer.headline.iter().skip(1).map(ToString::to_string).collect()
    }

    #[test]
    fn requests_are_told_by_name_with_what_databases_held() {
        let all = "All 350 requests were answered as expected, in each of 3 trials (log in 50, update 300; 2 queries after it \
                   found what the study expects).";
        assert_eq!(told(0), [all]);
        let lost = "0 to 4 of the 350 requests in each of 3 trials failed or did not end (";
        assert!(told(4)[0].starts_with(lost), "{:?}", told(4));
    }

    #[test]
    fn other_studies_do_not_tell() {
        assert_eq!(sentences(&describing(3, |_| start(1.0))), Vec::new());
    }
}
