//! The answer to the study's question: a sentence for each measure that decides and each variant.

use crate::compare::{self, Comparison, Contrast};
use crate::effect::{ends_in, no_change, shown, shown_in};
use crate::input::Input;
use crate::quantity::{Notation, confidence, margin, multiple, size_of_change};
use crate::verdict::{Outcome, Verdict};
use crate::words;
use plimsoll_model::measure::{Effect, Measure};
use std::fmt;

/// The answer to the study's question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// By the headline measure: for each variant a sentence for each outcome, the worst first.
    pub headline: Vec<Sentence>,
    /// The same by the other measures that decide.
    pub further: Vec<Sentence>,
}

/// A sentence of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// The verdict behind the sentence; none where nothing is compared.
    pub outcome: Option<Outcome>,
    /// The claim itself.
    pub claim: String,
    /// The numbers that support the claim, or what would decide; may be empty.
    pub evidence: String,
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blank = if self.evidence.starts_with('(') { " " } else { "" };
        write!(f, "{}{blank}{}.", self.claim, self.evidence)
    }
}

impl Answer {
    /// The answer with what each variant carries: after what decides, or where nothing is compared as the headline.
    pub(crate) fn with_capacity(&self, sentences: Vec<Sentence>, describes: bool) -> Answer {
        let (headline, first) = if describes { (sentences, Vec::new()) } else { (self.headline.clone(), sentences) };
        Answer { headline, further: [first, self.further.clone()].concat() }
    }

    /// The answer with what became of all that was sent: after what decides, or where nothing is compared in the headline.
    pub(crate) fn with_accounts(&self, sentences: Vec<Sentence>, describes: bool) -> Answer {
        let (headline, further) = if describes { (sentences, Vec::new()) } else { (Vec::new(), sentences) };
        Answer {
            headline: [self.headline.clone(), headline].concat(),
            further: [further, self.further.clone()].concat(),
        }
    }

    /// The answer with what changes over the time of the loads: before what decides beside the headline, or where nothing is
    /// compared as the headline.
    pub(crate) fn with_soak(&self, sentences: Vec<Sentence>, describes: bool) -> Answer {
        let (headline, first) = match describes {
            true => (sentences, self.headline.clone()),
            false => (self.headline.clone(), sentences),
        };
        Answer { headline, further: [first, self.further.clone()].concat() }
    }

    /// The headline as a paragraph.
    #[must_use]
    pub fn paragraph(&self) -> String {
        self.headline.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }
}

/// Writes the answer from the verdicts on the measures that decide.
pub(crate) fn answer(input: &Input, comparisons: &[Comparison], alpha: f64) -> Answer {
    let headline = crate::catalogue::headline(&input.facts);
    let mut further: Vec<&Measure> = input.facts.decide.iter().map(|decision| &decision.measure).collect();
    further.retain(|measure| **measure != headline.measure);
    let sentences = |measure: &Measure| -> Vec<Sentence> {
        (1..input.plan.variants.len())
            .flat_map(|variant| VariantSentences { input, comparisons, variant, measure, alpha }.sentences())
            .collect()
    };
    let mut first = sentences(&headline.measure);
    if first.is_empty() {
        let claim = "There is one variant only, so nothing is compared".to_owned();
        first.push(Sentence { outcome: None, claim, evidence: String::new() });
    }
    Answer { headline: first, further: further.into_iter().flat_map(sentences).collect() }
}

/// The outcomes that get a sentence of their own, the worst first. A difference has two sentences:
/// one for differences larger than the margin, one for those that may be smaller.
const GROUPS: [(Outcome, Option<bool>); 7] = [
    (Outcome::Worse, Some(true)),
    (Outcome::Worse, Some(false)),
    (Outcome::Better, Some(true)),
    (Outcome::Better, Some(false)),
    (Outcome::Equivalent, None),
    (Outcome::Inconclusive, None),
    (Outcome::Void, None),
];

/// A variant against the baseline under the conditions that share an outcome.
struct Group<'a> {
    comparisons: Vec<&'a Comparison>,
    contrasts: Vec<&'a Contrast>,
    /// The verdict on the first comparison; the margin is the same for all.
    verdict: &'a Verdict,
    /// The conditions in words: ` at 10 users`.
    place: String,
}

/// Writes the sentences about one variant in one measure.
struct VariantSentences<'a> {
    input: &'a Input,
    comparisons: &'a [Comparison],
    variant: usize,
    measure: &'a Measure,
    alpha: f64,
}

impl VariantSentences<'_> {
    fn sentences(&self) -> Vec<Sentence> {
        let mut sentences = Vec::new();
        for group in GROUPS.iter().filter_map(|(outcome, material)| self.group(*outcome, *material)) {
            let start = if sentences.is_empty() {
                format!("{}: ", words::measure_at_start(self.measure))
            } else {
                String::new()
            };
            let (claim, evidence) = self.clause(&group);
            let outcome = Some(group.verdict.outcome);
            let claim = if start.is_empty() { capitalised(&claim) } else { start + &claim };
            sentences.push(Sentence { outcome, claim, evidence });
        }
        sentences
    }

    /// The notation of the measure's table, so that a sentence has the same numbers.
    fn notation(&self) -> Notation {
        compare::notation(self.comparisons.iter().filter(|one| &one.measure == self.measure))
    }

    fn group(&self, outcome: Outcome, material: Option<bool>) -> Option<Group<'_>> {
        let is_of_group = |one: &&Comparison| {
            one.variant == self.variant
                && &one.measure == self.measure
                && one
                    .verdict
                    .as_ref()
                    .is_some_and(|verdict| (verdict.outcome, verdict.material) == (outcome, material))
        };
        let comparisons: Vec<&Comparison> = self.comparisons.iter().filter(is_of_group).collect();
        let indices: Vec<usize> = comparisons.iter().map(|one| one.condition).collect();
        Some(Group {
            verdict: comparisons.first()?.verdict.as_ref()?,
            contrasts: comparisons.iter().filter_map(|one| one.contrast.as_ref().ok()).collect(),
            place: words::conditions(&self.input.plan, &indices),
            comparisons,
        })
    }

    /// The claim about the conditions that share an outcome, and its evidence.
    fn clause(&self, group: &Group<'_>) -> (String, String) {
        let (name, baseline) = (self.input.plan.label(self.variant), self.input.plan.label(0));
        let Group { contrasts, verdict, place, .. } = group;
        let margin = margin(verdict.margin, self.measure);
        match verdict.outcome {
            Outcome::Worse | Outcome::Better => {
                let difference = self.difference(contrasts);
                let unsure = if verdict.material == Some(false) {
                    format!(", perhaps by less than the margin of {margin}")
                } else {
                    String::new()
                };
                (format!("{name} {difference} {baseline}{place}{unsure}"), self.evidence(group))
            }
            Outcome::Equivalent => {
                (format!("{name} and {baseline} are equal within ±{margin}{place}"), self.evidence(group))
            }
            Outcome::Inconclusive if contrasts.iter().all(|contrast| contrast.interval.is_err()) => {
                let notation = self.notation();
                let sizes = self.range_of_changes(contrasts, |value| shown_in(value, self.measure, notation));
                let claim = format!("{name} against {baseline} is {sizes}{place}, without a verdict");
                (claim, format!(": {}", self.why_without_interval(group)))
            }
            Outcome::Inconclusive => (
                format!("it is undecided{place} whether {name} and {baseline} differ"),
                self.evidence(group) + &self.excluded(group) + &objections(group),
            ),
            Outcome::Void => {
                (format!("nothing can be said of {name}{place}"), format!(": {}", self.why_without_interval(group)))
            }
        }
    }

    /// `takes 3.1 % to 9.6 % longer than`, `takes 18 to 116 times as long as`.
    fn difference(&self, contrasts: &[&Contrast]) -> String {
        let more = contrasts[0].value > no_change(self.measure.effect());
        if self.measure.effect() == Effect::Ratio && self.notation() == Notation::Multiples {
            let (verb, what) = words::verb_of_multiple(self.measure);
            return format!("{verb} {} times as {what} as", self.range_of_changes(contrasts, multiple));
        }
        let (verb, what) = words::verb(self.measure, more);
        let size = |value: f64| match self.measure.effect() {
            Effect::Ratio => size_of_change(value),
            Effect::Difference => shown(value.abs(), self.measure).trim_start_matches(['+', '±']).to_owned(),
        };
        format!("{verb} {} {what} than", self.range_of_changes(contrasts, size))
    }

    /// The smallest and the largest change in words, or the only one. Of changes up and down they are those furthest apart.
    fn range_of_changes(&self, contrasts: &[&Contrast], show: impl Fn(f64) -> String) -> String {
        let size = |value: f64| match self.measure.effect() {
            Effect::Ratio => value.ln().abs(),
            Effect::Difference => value.abs(),
        };
        let mut values: Vec<f64> = contrasts.iter().map(|contrast| contrast.value).collect();
        let nothing = no_change(self.measure.effect());
        let has_both_signs = values.iter().any(|value| *value > nothing) && values.iter().any(|value| *value < nothing);
        let place = |value: f64| if has_both_signs { value } else { size(value) };
        values.sort_by(|one, other| place(*one).total_cmp(&place(*other)));
        let (Some(least), Some(most)) = (values.first(), values.last()) else { return "unknown".to_owned() };
        let (least, most) = (show(*least), show(*most));
        if least == most { least } else { format!("{least} to {most}") }
    }

    /// The intervals, each with its condition: those of several conditions have none in common. Where they are many,
    /// that of the condition which is least certain.
    fn evidence(&self, group: &Group<'_>) -> String {
        let known: Vec<(&Comparison, &Contrast)> =
            group.comparisons.iter().filter_map(|one| Some((*one, one.contrast.as_ref().ok()?))).collect();
        let (least, most) =
            known.iter().fold((usize::MAX, 0), |(least, most), (_, one)| (least.min(one.n), most.max(one.n)));
        let n = if least == most { format!("n = {most}") } else { format!("n = {least} to {most}") };
        let level = confidence(self.alpha);
        let undecided = group.verdict.outcome == Outcome::Inconclusive;
        let notation = self.notation();
        let reach = |contrast: &Contrast| match contrast.interval {
            Ok(interval) => ends_in(interval, self.measure, notation).join(" to "),
            Err(_) => "no interval".to_owned(),
        };
        let place = |one: &Comparison| words::in_a_sentence(&self.input.plan.conditions[one.condition]);
        let stands = |contrast: &Contrast| format!("{} as it stands", shown_in(contrast.value, self.measure, notation));
        match known[..] {
            [(_, only)] if undecided => format!("({}, {level} interval {}, {n})", stands(only), reach(only)),
            [(_, only)] => format!("({level} interval {}, {n})", reach(only)),
            _ if known.len() <= self.listed() => {
                let each = known.iter().map(|(one, contrast)| {
                    let value = if undecided { stands(contrast) + ", " } else { String::new() };
                    let leaves_out =
                        if undecided && self.excludes_zero(contrast) { ", which excludes zero" } else { "" };
                    format!("at {} {value}{}{leaves_out}", place(one), reach(contrast))
                });
                format!("({level} intervals: {}; {n})", each.collect::<Vec<String>>().join("; "))
            }
            _ if undecided => self.many_undecided(&known, notation, &n),
            _ => {
                let (one, contrast) = self.least_certain(&known, group.verdict.outcome);
                format!("({level} intervals; the least certain, at {}, is {}; {n})", place(one), reach(contrast))
            }
        }
    }

    /// The most conditions that a sentence lists with their intervals: fewer where their names are long.
    fn listed(&self) -> usize {
        if self.input.plan.conditions.first().is_some_and(|condition| condition.0.len() > 1) { 2 } else { 3 }
    }

    /// The smallest and the largest change of many conditions, and how many intervals exclude zero.
    fn many_undecided(&self, known: &[(&Comparison, &Contrast)], notation: Notation, n: &str) -> String {
        let by_value =
            |one: &&(&Comparison, &Contrast), other: &&(&Comparison, &Contrast)| one.1.value.total_cmp(&other.1.value);
        let (Some(least), Some(most)) = (known.iter().min_by(by_value), known.iter().max_by(by_value)) else {
            return String::new();
        };
        let at = |(one, contrast): &(&Comparison, &Contrast)| {
            let place = words::in_a_sentence(&self.input.plan.conditions[one.condition]);
            format!("{} at {place}", shown_in(contrast.value, self.measure, notation))
        };
        let excluding = known.iter().filter(|(_, contrast)| self.excludes_zero(contrast)).count();
        let excluding = match excluding {
            0 => "no interval excludes zero".to_owned(),
            some => format!("{some} of {} intervals exclude zero", known.len()),
        };
        format!("(as it stands from {} to {}; {excluding}; {n})", at(least), at(most))
    }

    /// What the intervals exclude although no verdict is given: a change for the worse as large as the margin.
    fn excluded(&self, group: &Group<'_>) -> String {
        let is_excluded = |one: &&Comparison| one.verdict.as_ref().is_some_and(|verdict| verdict.not_inferior);
        let (all, some) = (group.comparisons.len(), group.comparisons.iter().copied().filter(is_excluded).count());
        if some == 0 {
            return String::new();
        }
        let place = if some == all { String::new() } else { format!(" in {some} of these {all}") };
        format!("; worse by {} or more is excluded{place}", margin(group.verdict.margin, self.measure))
    }

    fn excludes_zero(&self, contrast: &Contrast) -> bool {
        let none = no_change(self.measure.effect());
        contrast.interval.as_ref().is_ok_and(|interval| interval.low > none || interval.high < none)
    }

    /// The comparison whose interval comes nearest to taking the verdict back: to no change, or where both are equal,
    /// to the margin.
    fn least_certain<'c>(
        &self,
        known: &[(&'c Comparison, &'c Contrast)],
        outcome: Outcome,
    ) -> (&'c Comparison, &'c Contrast) {
        let additive = |value: f64| match self.measure.effect() {
            Effect::Ratio => value.ln(),
            Effect::Difference => value,
        };
        let room = |contrast: &Contrast| {
            let Ok(interval) = contrast.interval else { return f64::INFINITY };
            let (low, high) = (additive(interval.low).abs(), additive(interval.high).abs());
            if outcome == Outcome::Equivalent { -low.max(high) } else { low.min(high) }
        };
        *known.iter().min_by(|one, other| room(one.1).total_cmp(&room(other.1))).expect("a group has comparisons")
    }

    /// Why there is no interval: for each condition, unless it is the same for all.
    fn why_without_interval(&self, group: &Group<'_>) -> String {
        let reason = |one: &Comparison| one.verdict.as_ref().map(|verdict| verdict.reason.clone()).unwrap_or_default();
        let first = reason(group.comparisons[0]);
        if group.comparisons.iter().all(|one| reason(one) == first) || group.comparisons.len() > self.listed() {
            return first;
        }
        let place = |one: &Comparison| words::in_a_sentence(&self.input.plan.conditions[one.condition]);
        let each = group.comparisons.iter().map(|one| format!("at {} {}", place(one), reason(one)));
        each.collect::<Vec<String>>().join("; ")
    }
}

/// What speaks against a verdict that the intervals alone would give.
fn objections(group: &Group<'_>) -> String {
    let verdicts: Vec<&Verdict> = group.comparisons.iter().filter_map(|one| one.verdict.as_ref()).collect();
    match verdicts[..] {
        [one] => one.objection.as_ref().map(|objection| format!("; {objection}")).unwrap_or_default(),
        _ => floors_in_doubt(&verdicts),
    }
}

/// In words: in how many of several comparisons the noise floor is in doubt, and how many differ
/// beyond it.
fn floors_in_doubt(verdicts: &[&Verdict]) -> String {
    let (all, over) = (verdicts.len(), verdicts.iter().filter(|verdict| verdict.blocked_by_floor).count());
    if over == 0 {
        return String::new();
    }
    let place = if over == all { String::new() } else { format!(" in {over} of these {all}") };
    let beyond = match verdicts.iter().filter(|verdict| verdict.exceeds_floor).count() {
        0 => String::new(),
        beyond if beyond == over => ", though each difference lies beyond that".to_owned(),
        beyond => format!(", though {beyond} of {over} differences lie beyond that"),
    };
    format!("; the baseline against its own duplicate differs too much for a verdict{place}{beyond}")
}

/// Capitalises the start of a sentence, unless it starts with a name of the study's.
fn capitalised(sentence: &str) -> String {
    let ours = [("it is ", "It is "), ("nothing ", "Nothing ")];
    ours.into_iter()
        .find_map(|(small, large)| Some(format!("{large}{}", sentence.strip_prefix(small)?)))
        .unwrap_or_else(|| sentence.to_owned())
}

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::testing::{input, start};

    #[test]
    fn the_answer_names_the_difference_with_its_evidence() {
        let input = input(4, |number| {
            let noise = 1.0 + f64::from(number % 3) / 100.0;
            start(if number % 2 == 1 { noise } else { 1.2 * noise })
        });
        let answer = analyse(&input).answer.paragraph();
        assert!(answer.starts_with("Iterations, p95: new takes "), "{answer}");
        assert!(answer.contains("longer than old (95 % interval +"), "{answer}");
        assert!(answer.contains("n = 4)"), "{answer}");
    }

    #[test]
    fn a_large_difference_reads_as_a_multiple() {
        let input = input(4, |number| {
            let noise = 1.0 + f64::from(number % 3) / 100.0;
            start(if number % 2 == 1 { noise } else { 20.0 * noise })
        });
        let answer = analyse(&input).answer.paragraph();
        assert!(answer.contains(" times as long as old (95 % interval ×"), "{answer}");
        assert!(answer.starts_with("Iterations, p95: new takes "), "{answer}");
    }

    #[test]
    fn a_sentence_has_its_verdict_and_evidence_apart() {
        let answer = analyse(&input(4, |number| {
            let noise = 1.0 + f64::from(number % 3) / 100.0;
            start(if number % 2 == 1 { noise } else { 1.2 * noise })
        }))
        .answer;
        let first = &answer.headline[0];
        assert_eq!(first.outcome, Some(crate::verdict::Outcome::Worse));
        assert!(first.claim.ends_with("longer than old"), "{first:?}");
        assert!(first.evidence.starts_with("(95 % interval +") && first.evidence.ends_with("n = 4)"), "{first:?}");
        assert_eq!(first.to_string(), format!("{} {}.", first.claim, first.evidence));
    }

    #[test]
    fn two_repeats_get_no_verdict() {
        let answer = analyse(&input(2, |number| start(1.0 + f64::from(number) / 10.0))).answer.paragraph();
        assert!(answer.contains("without a verdict: 2 repeats give a range"), "{answer}");
    }

    #[test]
    fn intervals_of_several_conditions_are_never_merged() {
        use crate::testing::blocks;
        use plimsoll_model::factor::{Assignment, Level};
        // The first condition says nothing; under the second the variant is slower beyond doubt, and under the margin.
        let mut input = input(5, |_| start(1.0));
        input.facts.decide.truncate(1);
        let users = |count| Assignment(vec![("users".to_owned(), Level::Integer(count))]);
        input.plan.conditions = vec![users(10), users(50)];
        input.plan.lengths = vec![input.plan.lengths[0]; 2];
        input.plan.starts = blocks(2, 2, 5);
        input.facts.decide[0].margin = 0.04;
        input.starts = (input.plan.starts.iter())
            .map(|place| {
                let wild = [0.7, 1.3, 1.0, 0.8, 1.2][place.repeat as usize - 1];
                let scale = match (place.condition, place.variants[0]) {
                    (_, 0) => 1.0,
                    (0, _) => wild,
                    (_, _) => 0.9 + 0.15 * wild,
                };
                crate::testing::placed(start(scale), place)
            })
            .collect();
        let answer = analyse(&input).answer;
        let sentence = answer.headline[0].to_string();
        assert!(sentence.contains("undecided under both conditions"), "{sentence}");
        assert!(
            sentence.contains("(95 % intervals: at 10 users ") && sentence.contains("; at 50 users "),
            "{sentence}"
        );
        assert_eq!(sentence.matches(" as it stands").count(), 2, "{sentence}");
        assert!(!sentence.contains("within −"), "{sentence}");
    }
}
