//! Parses cells that hold something other than a number with a unit.

use crate::fault::{Unreadable, nearest};
use crate::quantity::{Quantity, quantity};
use plimsoll_analysis::quantity::change as show_change;
use plimsoll_model::measure::{Direction, Unit};

/// A published change: `+5.66%`, `×1.5`, `21-41 %`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    /// The smaller end, as a share: 0.0566.
    pub(crate) low: f64,
    /// The larger end: the same where it is no range.
    pub(crate) high: f64,
    /// The largest rounding error of either end.
    pub(crate) half_step: f64,
    /// As published.
    pub(crate) text: String,
    /// The notation: with a sign, as a share, or as a factor.
    pub(crate) form: Form,
    /// The claim of the word behind it: `20 % faster`.
    pub(crate) said: Option<Claim>,
}

/// The form of a change, which shows whether its direction is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// With a sign, or with a word such as `reduction`.
    Signed,
    /// A share without a sign: `20 %`.
    Share,
    /// A factor: `×1.25`.
    Factor,
}

impl Change {
    /// A change that is calculated from other numbers.
    pub(crate) fn calculated(share: f64) -> Change {
        let (half_step, text) = (0.0, show_change(1.0 + share));
        Change { low: share, high: share, half_step, text, form: Form::Signed, said: None }
    }

    /// The middle.
    pub(crate) fn middle(&self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    /// A rise without a sign, read as a fall; `actual` is the change of the numbers, if known.
    ///
    /// `25 % faster` is said of a time that falls by 25 %, and of a speed that rises by 25 %. The reading nearer to the
    /// numbers counts. What improves by more than 100 % cannot fall by as much;
    /// by just 100 % it may have been halved, or be gone.
    pub(crate) fn as_fall(&self, actual: Option<f64>) -> Change {
        let (fall, inverse) = (Change { low: -self.high, high: -self.low, ..self.clone() }, self.inverse());
        let apart = |reading: &Change, actual: f64| (reading.middle() - actual).abs();
        let nearer = actual.is_some_and(|actual| apart(&inverse, actual) < apart(&fall, actual));
        let inverted =
            self.form == Form::Factor || self.high > 1.0 || ((self.said.is_some() || self.high >= 1.0) && nearer);
        if inverted { inverse } else { fall }
    }

    /// The change of one over the number: of a rise by 25 %, a fall by 20 %.
    fn inverse(&self) -> Change {
        let (least, most) = (1.0 + self.low, 1.0 + self.high);
        let half_step = self.half_step / (least * (least - self.half_step).max(f64::MIN_POSITIVE));
        Change { low: 1.0 / most - 1.0, high: 1.0 / least - 1.0, half_step, ..self.clone() }
    }
}

/// The meaning of a word after a change.
#[derive(Clone, Copy)]
enum Word {
    /// The number falls.
    Falls,
    /// The number rises.
    Rises,
    /// The number is better or worse, whichever way that is.
    Claims(Claim),
}

/// Words that may follow a change.
const WORDS: [(&str, Word); 13] = [
    ("reduction", Word::Falls),
    ("decrease", Word::Falls),
    ("less", Word::Falls),
    ("lower", Word::Falls),
    ("fewer", Word::Falls),
    ("increase", Word::Rises),
    ("more", Word::Rises),
    ("higher", Word::Rises),
    ("improvement", Word::Claims(Claim::Improvement)),
    ("better", Word::Claims(Claim::Improvement)),
    ("faster", Word::Claims(Claim::Improvement)),
    ("slower", Word::Claims(Claim::Regression)),
    ("worse", Word::Claims(Claim::Regression)),
];

/// Parses a published change.
pub(crate) fn change(text: &str) -> Result<Change, Unreadable> {
    let expected = || Unreadable::expected("a change such as `+5.66 %`, `×1.5` or `21-41 %`");
    let trimmed = text.trim().trim_start_matches('\\');
    let (body, word) = without_word(trimmed.trim_start_matches('(').trim_end_matches(')'));
    let signed = body.trim_start_matches(['~', '≈', ' ']).starts_with(['-', '−', '–', '+']);
    let falls = !signed && matches!(word, Some(Word::Falls));
    let said = match word {
        Some(Word::Claims(claim)) => Some(claim),
        _ => None,
    };
    let directed = signed || matches!(word, Some(Word::Falls | Word::Rises));
    if let Some(times) = body.strip_prefix(['×', 'x']).or_else(|| body.strip_suffix(['×', 'x'])) {
        let factor = quantity(times).map_err(|_| expected())?;
        let share = factor.value - 1.0;
        let (half_step, text) = (factor.half_step, trimmed.to_owned());
        let form = if directed { Form::Signed } else { Form::Factor };
        let change = Change { low: share, high: share, half_step, text, form, said };
        // `2x lower` is half.
        return Ok(if falls && share > 0.0 { change.inverse() } else { change });
    }
    let ends: Vec<Quantity> =
        range(body).into_iter().map(|end| quantity(&end)).collect::<Result<_, _>>().map_err(|_| expected())?;
    if ends.iter().any(|end| end.unit != Unit::Share) {
        return Err(expected().with_hint(format!("is it per cent? then write `{body} %`")));
    }
    let sign = if falls { -1.0 } else { 1.0 };
    let shares = ends.iter().map(|end| end.value * sign);
    Ok(Change {
        low: shares.clone().fold(f64::INFINITY, f64::min),
        high: shares.fold(f64::NEG_INFINITY, f64::max),
        half_step: ends.iter().map(|end| end.half_step).fold(0.0, f64::max),
        text: trimmed.to_owned(),
        form: if directed { Form::Signed } else { Form::Share },
        said,
    })
}

/// Splits `42% reduction` into the change and the meaning of the word.
fn without_word(text: &str) -> (&str, Option<Word>) {
    let text = text.trim();
    let Some((rest, last)) = text.rsplit_once([' ', '\u{a0}']) else { return (text, None) };
    let last = last.to_lowercase();
    match WORDS.iter().find(|(word, _)| *word == last) {
        Some((_, meaning)) => (rest.trim(), Some(*meaning)),
        None => (text, None),
    }
}

/// The ends of a range, each with a per cent sign: `21-41 %`, `21 to 41 %`, `−1 % … +9 %`.
fn range(text: &str) -> Vec<String> {
    let separators = [" to ", "…", "..", "–", "-"];
    let cut = separators.iter().find_map(|separator| {
        let at = text.char_indices().skip(1).map(|(at, _)| at).find(|at| text[*at..].starts_with(separator))?;
        let (first, second) = (text[..at].trim(), text[at + separator.len()..].trim());
        let a_number = first.trim_end_matches(['%', ' ']).ends_with(|c: char| c.is_ascii_digit());
        (a_number && !second.is_empty()).then(|| (first.to_owned(), second.to_owned()))
    });
    match cut {
        Some((first, second)) if first.ends_with('%') => vec![first, second],
        Some((first, second)) => vec![format!("{first} %"), second],
        None => vec![text.to_owned()],
    }
}

/// A table's claim about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The value is better.
    Improvement,
    /// The value is worse.
    Regression,
    /// There is no difference, or none that matters.
    Same,
}

impl Claim {
    /// The claim as it appears in a sentence: `called an improvement`.
    pub(crate) fn called(self) -> &'static str {
        match self {
            Claim::Improvement => "called an improvement",
            Claim::Regression => "called a regression",
            Claim::Same => "called the same",
        }
    }
}

const CLAIMS: [(&str, Claim); 24] = [
    ("improvement", Claim::Improvement),
    ("improved", Claim::Improvement),
    ("better", Claim::Improvement),
    ("faster", Claim::Improvement),
    ("win", Claim::Improvement),
    ("slight improvement", Claim::Improvement),
    ("slightly better", Claim::Improvement),
    ("regression", Claim::Regression),
    ("regressed", Claim::Regression),
    ("worse", Claim::Regression),
    ("slower", Claim::Regression),
    ("degradation", Claim::Regression),
    ("slight regression", Claim::Regression),
    ("slightly worse", Claim::Regression),
    ("same", Claim::Same),
    ("equal", Claim::Same),
    ("equivalent", Claim::Same),
    ("comparable", Claim::Same),
    ("unchanged", Claim::Same),
    ("no change", Claim::Same),
    ("no difference", Claim::Same),
    ("no regression", Claim::Same),
    ("no improvement", Claim::Same),
    ("~", Claim::Same),
];

/// Parses a claim.
pub(crate) fn claim(text: &str) -> Result<Claim, Unreadable> {
    let word = text.trim().to_lowercase();
    CLAIMS.iter().find(|(name, _)| *name == word).map(|(_, claim)| *claim).ok_or_else(|| {
        let expected = Unreadable::expected("`improvement`, `regression` or `same`");
        match nearest(&word, CLAIMS.iter().map(|(name, _)| *name)) {
            Some(near) => expected.with_hint(format!("did you mean `{near}`?")),
            None => expected,
        }
    })
}

/// Parses which direction is better.
pub(crate) fn direction(text: &str) -> Result<Direction, Unreadable> {
    match text.trim().to_lowercase().as_str() {
        "lower" | "less" | "down" | "smaller" | "-" => Ok(Direction::Lower),
        "higher" | "more" | "up" | "greater" | "+" => Ok(Direction::Higher),
        _ => Err(Unreadable::expected("`lower` or `higher`")),
    }
}

/// The time of a run within the study.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TimeOfRun {
    /// The ordinal of the run within the study, or a clock time, as numbers to compare in order.
    At(Vec<u64>),
    /// All runs of one variant, then all of the next.
    Sequential,
    /// The variants alternated.
    Mixed,
}

/// Parses a time within the study: a number, a word, or a pattern of letters such as `AAABBB`.
pub(crate) fn order(text: &str) -> Result<TimeOfRun, Unreadable> {
    let word = text.trim().to_lowercase();
    if let Ok(number) = word.parse() {
        return Ok(TimeOfRun::At(vec![number]));
    }
    match word.as_str() {
        "sequential" | "in sequence" | "one after the other" => Ok(TimeOfRun::Sequential),
        "interleaved" | "alternating" | "random" | "randomised" | "randomized" | "blocks" | "shuffled" => {
            Ok(TimeOfRun::Mixed)
        }
        _ => pattern(&word).ok_or_else(|| {
            Unreadable::expected("a whole number, `sequential`, `interleaved`, `random`, or a pattern such as `AAABBB`")
        }),
    }
}

/// Parses a pattern: `aaabbb` is sequential, `abab` mixed. A single letter is no pattern.
fn pattern(word: &str) -> Option<TimeOfRun> {
    let letters: Vec<char> = word.chars().filter(|c| !matches!(c, ' ' | '-' | ',')).collect();
    let mut seen = letters.clone();
    seen.dedup();
    let changes = seen.len();
    seen.sort_unstable();
    seen.dedup();
    let sound = seen.len() >= 2 && seen.iter().copied().eq(('a'..='z').take(seen.len()));
    let repeats = letters.len() > seen.len();
    (sound && repeats).then_some(if changes == seen.len() { TimeOfRun::Sequential } else { TimeOfRun::Mixed })
}

/// Parses a clock time: `2026-01-31 14:05`, `14:05:30`.
pub(crate) fn started(text: &str) -> Result<TimeOfRun, Unreadable> {
    let expected = || Unreadable::expected("a time such as `2026-01-31 14:05` or `14:05:30`");
    let text = text.trim().trim_end_matches(['Z', 'z']);
    let parts: Vec<u64> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| expected())?;
    let sound = |c: char| c.is_ascii_digit() || matches!(c, '-' | ':' | 'T' | ' ' | '.');
    let dated = parts.len() >= 3 && parts[0] >= 1000;
    let clock = (2..=4).contains(&parts.len()) && parts[0] < 24;
    if text.chars().all(sound) && (dated || clock) { Ok(TimeOfRun::At(parts)) } else { Err(expected()) }
}

/// The number of failed requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Errors {
    /// An absolute number.
    Count(f64),
    /// A share of all requests.
    Share(f64),
}

/// Parses a number or a share of errors.
pub(crate) fn errors(text: &str) -> Result<Errors, Unreadable> {
    if matches!(text.trim().to_lowercase().as_str(), "none" | "no") {
        return Ok(Errors::Count(0.0));
    }
    let read = quantity(text)?;
    match read.unit {
        Unit::Count => Ok(Errors::Count(read.value)),
        Unit::Share => Ok(Errors::Share(read.value)),
        _ => Err(Unreadable::expected("a number of errors, a share such as `0.2 %`, or `none`")),
    }
}

/// Parses settings: `key=value; key=value`, or as on a command line, `--key=value --key=value`. A
/// key without a value is on.
pub(crate) fn settings(text: &str) -> Vec<(String, String)> {
    text.replace(" --", ";--")
        .split([';', '\n'])
        .map(|one| one.trim().trim_start_matches('-').trim())
        .filter(|one| !one.is_empty())
        .map(|one| {
            let (key, value) = one.split_once(['=', ':']).unwrap_or((one, "on"));
            (key.trim().to_owned(), value.trim().to_owned())
        })
        .collect()
}

/// True if the data set grows: `0 -> 2500 plans`, `grows`.
pub(crate) fn grows(data: &str) -> bool {
    let lower = data.to_lowercase();
    if lower.contains("grow") {
        return true;
    }
    let first = |text: &str| text.split_whitespace().next().map(str::to_owned);
    ["->", "→", " to "].iter().any(|arrow| {
        lower.split_once(arrow).is_some_and(|(before, after)| first(after).is_some() && first(before) != first(after))
    })
}

/// Parses `yes` or `no`.
pub(crate) fn yes(text: &str) -> Result<bool, Unreadable> {
    match text.trim().to_lowercase().as_str() {
        "yes" | "y" | "true" | "x" | "both" | "best" => Ok(true),
        "no" | "n" | "false" => Ok(false),
        _ => Err(Unreadable::expected("`yes` or `no`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_people_write_them() {
        for (text, low, high) in [
            ("+5.66%", 0.0566, 0.0566),
            ("\\+5.66%", 0.0566, 0.0566),
            ("-42%", -0.42, -0.42),
            ("(42% reduction)", -0.42, -0.42),
            ("+37% improvement", 0.37, 0.37),
            ("×1.5", 0.5, 0.5),
            ("1.5x", 0.5, 0.5),
            ("21-41%", 0.21, 0.41),
            ("21 to 41 %", 0.21, 0.41),
            ("−1 % … +9 %", -0.01, 0.09),
            ("-3 - -1 %", -0.03, -0.01),
        ] {
            let read = change(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
            assert!((read.low - low).abs() < 1e-9 && (read.high - high).abs() < 1e-9, "{text}: {read:?}");
        }
        assert_eq!(change("5").expect_err("no unit").hint.as_deref(), Some("is it per cent? then write `5 %`"));
        assert!(change("faster").is_err());
    }

    #[test]
    fn a_size_without_a_sign_has_its_direction_from_the_claim() {
        let (better, worse) = (Some(Claim::Improvement), Some(Claim::Regression));
        for (text, form, said) in [
            ("20%", Form::Share, None),
            ("20% faster", Form::Share, better),
            ("20% better", Form::Share, better),
            ("20% worse", Form::Share, worse),
            ("1.25x slower", Form::Factor, worse),
            ("+20%", Form::Signed, None),
            ("~ -20%", Form::Signed, None),
            ("20% more", Form::Signed, None),
            ("20% less", Form::Signed, None),
        ] {
            let read = change(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
            assert_eq!((read.form, read.said), (form, said), "{text}");
        }
        for (text, actual, expected) in [
            ("20%", None, -0.2),
            ("25%", Some(-0.2), -0.25),
            ("25% faster", Some(-0.2), -0.2),
            ("25% faster", Some(-0.25), -0.25),
            ("1.25x faster", None, -0.2),
            ("150%", None, -0.6),
        ] {
            let read = change(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).as_fall(actual);
            assert!((read.middle() - expected).abs() < 1e-9, "{text}: {read:?}");
        }
        assert!(change("2x lower").is_ok_and(|read| (read.middle() + 0.5).abs() < 1e-9));
    }

    #[test]
    fn claims_are_words() {
        assert_eq!(claim("Improvement"), Ok(Claim::Improvement));
        assert_eq!(claim("no regression"), Ok(Claim::Same));
        assert_eq!(claim("regresion").expect_err("a slip").hint.as_deref(), Some("did you mean `regression`?"));
    }

    #[test]
    fn places_in_time_are_read() {
        for (text, expected) in [
            ("3", Some(TimeOfRun::At(vec![3]))),
            ("AAABBB", Some(TimeOfRun::Sequential)),
            ("AAA BBB", Some(TimeOfRun::Sequential)),
            ("ABBAAB", Some(TimeOfRun::Mixed)),
            ("random", Some(TimeOfRun::Mixed)),
            ("AB", None),
            ("soon", None),
        ] {
            assert_eq!(order(text).ok(), expected, "{text}");
        }
        assert_eq!(started("2026-01-31 9:05"), Ok(TimeOfRun::At(vec![2026, 1, 31, 9, 5])));
        assert_eq!(started("14:05:30"), Ok(TimeOfRun::At(vec![14, 5, 30])));
        assert!(started("last Tuesday").is_err());
    }

    #[test]
    fn settings_are_keys_and_values() {
        let pairs = [("fsync", "off"), ("nobarrier", "on"), ("a", "1")];
        let expected: Vec<(String, String)> =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        assert_eq!(settings("fsync=off; nobarrier; a: 1"), expected);
        assert_eq!(settings("--fsync=off --nobarrier --a=1"), expected);
    }

    #[test]
    fn data_that_grows_is_known() {
        for (text, expected) in
            [("12M posts", false), ("0 -> 2500 plans", true), ("grows", true), ("5 → 5 rows", false), ("5 -> 5", false)]
        {
            assert_eq!(grows(text), expected, "{text}");
        }
    }
}
