//! The text formats in which services expose their metrics: that of Prometheus (version 0.0.4) and OpenMetrics 1.0.
//!
//! One reader takes both. It yields the samples and the types of the families, one line after the other, and borrows what it
//! can: most series of a service are of no interest to a study. Timestamps and exemplars are checked and left out: a sample is
//! of the instant at which it was asked for.
//!
//! *Sources: Prometheus, Exposition formats; OpenMetrics 1.0, section 5.1.*

use std::borrow::Cow;

/// A line that tells something.
#[derive(Clone, Debug, PartialEq)]
pub enum Line<'t> {
    /// The type of a family of metrics.
    Type {
        /// Its name.
        family: &'t str,
        /// Its type.
        kind: Kind,
    },
    /// A value.
    Sample(Sample<'t>),
}

/// The type of a family of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It grows, and begins again at 0 where its process does.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts of values by upper bounds (`_bucket`), with their sum (`_sum`) and number (`_count`).
    Histogram,
    /// Quantiles that the service computes itself, with the sum and the number of the values.
    Summary,
    /// Anything else: unknown, untyped, info, sets of states, histograms of gauges.
    Other,
}

/// A value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'t> {
    /// The name of the metric.
    pub name: Cow<'t, str>,
    /// The labels, in their order.
    pub labels: Vec<(Cow<'t, str>, Cow<'t, str>)>,
    /// The value, which may be infinite or no number (NaN).
    pub value: f64,
}

/// A text that is none of the formats.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}, found `{found}`")]
pub struct Fault {
    /// The number of the line, from 1.
    pub line: usize,
    /// What was expected.
    pub expected: &'static str,
    /// The beginning of what was found.
    pub found: String,
}

/// The most characters of a line that a fault repeats.
const SHOWN: usize = 40;

/// The lines of a text that tell something, up to the first fault.
pub fn lines(text: &str) -> Lines<'_> {
    Lines { rest: text, line: 0, ended: false }
}

/// See [`lines`].
#[derive(Clone, Debug)]
pub struct Lines<'t> {
    rest: &'t str,
    line: usize,
    /// True after a fault, or the end that OpenMetrics marks.
    ended: bool,
}

impl<'t> Iterator for Lines<'t> {
    type Item = Result<Line<'t>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended && !self.rest.is_empty() {
            let (line, is_whole) = match self.rest.split_once('\n') {
                Some((line, rest)) => {
                    self.rest = rest;
                    (line, true)
                }
                None => (std::mem::take(&mut self.rest), false),
            };
            self.line += 1;
            let fault = |wrong: Wrong<'_>| Fault {
                line: self.line,
                expected: wrong.expected,
                found: wrong.found.chars().take(SHOWN).collect(),
            };
            if line == "# EOF" {
                self.ended = true;
                let more = Wrong { expected: "nothing after `# EOF`", found: self.rest };
                return (!self.rest.is_empty()).then(|| Err(fault(more)));
            }
            // A reply that was cut short may end within a number.
            let read = if is_whole { read(line) } else { Err(Wrong { expected: "the end of the line", found: line }) };
            match read {
                Ok(None) => {}
                Ok(Some(line)) => return Some(Ok(line)),
                Err(wrong) => {
                    self.ended = true;
                    return Some(Err(fault(wrong)));
                }
            }
        }
        None
    }
}

/// What was expected in a line, and what stands there.
struct Wrong<'t> {
    expected: &'static str,
    found: &'t str,
}

/// A line; none where it is empty or a comment.
fn read(line: &str) -> Result<Option<Line<'_>>, Wrong<'_>> {
    let line = without_blanks(line);
    let line = &line[..line.len() - line.bytes().rev().take_while(|byte| is_blank(*byte)).count()];
    match line.strip_prefix('#') {
        Some(comment) => Ok(kind_in(comment)?.map(|(family, kind)| Line::Type { family, kind })),
        None if line.is_empty() => Ok(None),
        None => Ok(Some(Line::Sample(sample(line)?))),
    }
}

/// A text without the blanks at its beginning. Bytes are compared, not characters: this is most of the work of reading.
fn without_blanks(text: &str) -> &str {
    &text[text.bytes().take_while(|byte| is_blank(*byte)).count()..]
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The type that a comment tells.
fn kind_in(comment: &str) -> Result<Option<(&str, Kind)>, Wrong<'_>> {
    let mut words = comment.split([' ', '\t']).filter(|word| !word.is_empty());
    if words.next() != Some("TYPE") {
        return Ok(None);
    }
    let (Some(family), Some(kind), None) = (words.next(), words.next(), words.next()) else {
        return Err(Wrong { expected: "a name and a type after `TYPE`", found: comment });
    };
    let kind = match kind {
        "counter" => Kind::Counter,
        "gauge" => Kind::Gauge,
        "histogram" => Kind::Histogram,
        "summary" => Kind::Summary,
        "untyped" | "unknown" | "info" | "stateset" | "gaugehistogram" => Kind::Other,
        _ => return Err(Wrong { expected: "a type of metrics", found: kind }),
    };
    // A name with other characters than plain ones stands in quotes.
    Ok(Some((family.trim_matches('"'), kind)))
}

fn sample(line: &str) -> Result<Sample<'_>, Wrong<'_>> {
    let (name, mut rest) = plain_name(line, true);
    let (mut quoted_name, mut labels) = (None, Vec::new());
    if let Some(inside) = without_blanks(rest).strip_prefix('{') {
        rest = read_labels(inside, &mut quoted_name, &mut labels)?;
    }
    let name = match (name, quoted_name) {
        ("", Some(name)) => name,
        ("", None) => return Err(Wrong { expected: "the name of a metric", found: line }),
        (name, None) => Cow::Borrowed(name),
        (_, Some(_)) => return Err(Wrong { expected: "one name of the metric", found: line }),
    };
    let (value, rest) = number(rest)?;
    let rest = if rest.is_empty() || rest.starts_with('#') { rest } else { number(rest)?.1 };
    match rest.strip_prefix('#') {
        None if rest.is_empty() => {}
        None => return Err(Wrong { expected: "nothing after the timestamp", found: rest }),
        Some(exemplar) => check_exemplar(exemplar)?,
    }
    Ok(Sample { name, labels, value })
}

/// A name of plain characters at the beginning of a text, and what follows; the name is empty where there is none. Names of
/// metrics may have colons.
fn plain_name(text: &str, of_metric: bool) -> (&str, &str) {
    let is_of_name = |(place, byte): (usize, u8)| {
        byte.is_ascii_alphabetic() || byte == b'_' || byte == b':' && of_metric || byte.is_ascii_digit() && place > 0
    };
    text.split_at(text.bytes().enumerate().take_while(|one| is_of_name(*one)).count())
}

/// Reads labels up to the closing brace; returns what follows. A text in quotes without a value is the metric's name.
fn read_labels<'t>(
    mut rest: &'t str,
    quoted_name: &mut Option<Cow<'t, str>>,
    labels: &mut Vec<(Cow<'t, str>, Cow<'t, str>)>,
) -> Result<&'t str, Wrong<'t>> {
    loop {
        rest = without_blanks(rest);
        if let Some(after) = rest.strip_prefix('}') {
            return Ok(after);
        }
        let begin = rest;
        let (label, after) = match rest.strip_prefix('"') {
            Some(inside) => quoted(inside)?,
            None => {
                let (name, after) = plain_name(rest, false);
                (Cow::Borrowed(name), after)
            }
        };
        rest = without_blanks(after);
        if let Some(after) = rest.strip_prefix('=').filter(|_| !label.is_empty()) {
            let Some(inside) = without_blanks(after).strip_prefix('"') else {
                return Err(Wrong { expected: "the value of a label in quotes", found: after });
            };
            let (value, after) = quoted(inside)?;
            if labels.iter().any(|(known, _)| *known == label) {
                return Err(Wrong { expected: "each label once", found: begin });
            }
            labels.push((label, value));
            rest = without_blanks(after);
        } else if begin.starts_with('"') && quoted_name.is_none() {
            *quoted_name = Some(label);
        } else {
            return Err(Wrong { expected: "a label, as in `name=\"value\"`", found: begin });
        }
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None if rest.starts_with('}') => {}
            None => return Err(Wrong { expected: "`,` or `}` after a label", found: rest }),
        }
    }
}

/// The text up to the closing quote, without its escapes, and what follows.
fn quoted(inside: &str) -> Result<(Cow<'_, str>, &str), Wrong<'_>> {
    // Hardly a text has escapes.
    if let Some(place) = inside.bytes().position(|byte| matches!(byte, b'"' | b'\\'))
        && inside.as_bytes()[place] == b'"'
    {
        return Ok((Cow::Borrowed(&inside[..place]), &inside[place + 1..]));
    }
    let mut text = Cow::Borrowed("");
    let mut begin = 0;
    let mut places = inside.bytes().enumerate();
    while let Some((place, byte)) = places.next() {
        match byte {
            b'"' => {
                return Ok((joined(text, &inside[begin..place]), &inside[place + 1..]));
            }
            b'\\' => {
                let escaped = match places.next() {
                    Some((_, b'n')) => "\n",
                    Some((_, b'"')) => "\"",
                    Some((_, b'\\')) => "\\",
                    // Before anything else it stands for itself.
                    Some(_) => continue,
                    None => break,
                };
                text = joined(joined(text, &inside[begin..place]), escaped);
                begin = place + 2;
            }
            _ => {}
        }
    }
    Err(Wrong { expected: "a closing quote", found: inside })
}

/// Both texts, one after the other; borrowed where the first one is empty.
fn joined<'t>(first: Cow<'t, str>, second: &'t str) -> Cow<'t, str> {
    if first.is_empty() { Cow::Borrowed(second) } else { Cow::Owned(first.into_owned() + second) }
}

/// The number at the beginning of a text, and what follows it.
fn number(text: &str) -> Result<(f64, &str), Wrong<'_>> {
    let text = without_blanks(text);
    let (number, rest) = text.split_at(text.bytes().position(is_blank).unwrap_or(text.len()));
    let value = number.parse().map_err(|_| Wrong { expected: "a number", found: text })?;
    Ok((value, without_blanks(rest)))
}

/// An exemplar: labels, a value, and perhaps a timestamp.
fn check_exemplar(text: &str) -> Result<(), Wrong<'_>> {
    let expected = "an exemplar, as in `# {trace_id=\"a\"} 0.5`";
    let Some(inside) = without_blanks(text).strip_prefix('{') else {
        return Err(Wrong { expected, found: text });
    };
    let (mut name, mut labels) = (None, Vec::new());
    let (_, rest) = number(read_labels(inside, &mut name, &mut labels)?)?;
    let rest = if rest.is_empty() { rest } else { number(rest)?.1 };
    if rest.is_empty() && name.is_none() { Ok(()) } else { Err(Wrong { expected, found: text }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(name: &str, labels: &[(&str, &str)], value: f64) -> Line<'static> {
        let owned = |text: &str| Cow::Owned(text.to_owned());
        let labels = labels.iter().map(|(name, value)| (owned(name), owned(value))).collect();
        Line::Sample(Sample { name: owned(name), labels, value })
    }

    fn read_all(text: &str) -> Result<Vec<Line<'_>>, String> {
        lines(text).collect::<Result<_, _>>().map_err(|fault| fault.to_string())
    }

    #[test]
    fn samples_and_types_of_both_formats_are_read() {
        let prometheus = "# HELP requests Requests \\ of \"all\".\n# TYPE requests counter\n\
                          requests{method=\"get\",code=\"200\",} 1027 1395066363000\n\n   requests {\tcode = \"400\" }\t3\n\
                          # just a comment\nup 1\n";
        let requests = |labels: &[(&str, &str)], value| sample("requests", labels, value);
        let expected = vec![
            Line::Type { family: "requests", kind: Kind::Counter },
            requests(&[("method", "get"), ("code", "200")], 1027.0),
            requests(&[("code", "400")], 3.0),
            sample("up", &[], 1.0),
        ];
        assert_eq!(read_all(prometheus), Ok(expected));
        let open_metrics = "# TYPE took histogram\n# UNIT took seconds\n\
                            took_bucket{le=\"0.5\"} 17 1520879607.789 # {trace_id=\"KO#}\\\"1\"} 0.43 1520879607.7\n\
                            took_bucket{le=\"+Inf\"} 18 # {} 0.67\ntook_sum 324789.3\n# EOF\n";
        let expected = vec![
            Line::Type { family: "took", kind: Kind::Histogram },
            sample("took_bucket", &[("le", "0.5")], 17.0),
            sample("took_bucket", &[("le", "+Inf")], 18.0),
            sample("took_sum", &[], 324_789.3),
        ];
        assert_eq!(read_all(open_metrics), Ok(expected.clone()));
        assert_eq!(read_all(open_metrics.trim_end()), Ok(expected), "the end needs no end of its line");
    }

    #[test]
    fn labels_may_have_escapes_and_any_characters() {
        let other = "a{b=\"\\t\\π\\\\z\"} 1\n";
        assert_eq!(read_all(other), Ok(vec![sample("a", &[("b", "\\t\\π\\z")], 1.0)]), "it stands for itself");
        let text = "a{path=\"C:\\\\DIR\\\\\",error=\"a \\\"file\\\"\\nis, {not} there\",x=\"\",π=\"3\"} 1\n";
        assert!(read_all(text).is_err_and(|fault| fault.contains("a label")), "other names stand in quotes");
        let labels = [("path", "C:\\DIR\\"), ("error", "a \"file\"\nis, {not} there"), ("x", ""), ("π", "3")];
        assert_eq!(read_all(&text.replace("π", "\"π\"")), Ok(vec![sample("a", &labels, 1.0)]));
        let quoted = "# TYPE \"my.name\" gauge\n{\"my.name\",a=\"☃\"} 2\n{a=\"b\",\"my.\\\"name\\\"\"} 3\n";
        let expected = vec![
            Line::Type { family: "my.name", kind: Kind::Gauge },
            sample("my.name", &[("a", "☃")], 2.0),
            sample("my.\"name\"", &[("a", "b")], 3.0),
        ];
        assert_eq!(read_all(quoted), Ok(expected));
    }

    #[test]
    fn values_are_those_of_floating_point() {
        for (text, value) in [
            ("1.458255915e9", 1_458_255_915.0),
            ("+Inf", f64::INFINITY),
            ("-Inf", f64::NEG_INFINITY),
            ("-3.14e-1", -0.314),
            ("0", 0.0),
            ("Inf", f64::INFINITY),
        ] {
            assert_eq!(read_all(&format!("a {text}\n")), Ok(vec![sample("a", &[], value)]), "{text}");
        }
        let nan = read_all("a NaN\n").expect("a number");
        assert!(matches!(&nan[..], [Line::Sample(one)] if one.value.is_nan()));
    }

    #[test]
    fn what_is_no_line_of_the_formats_is_told_with_its_place() {
        for (text, says) in [
            ("up 1\nup one\n", "line 2: expected a number, found `one`"),
            ("up\n", "line 1: expected a number"),
            ("up 1", "line 1: expected the end of the line, found `up 1`"),
            ("1up 1\n", "expected the name of a metric, found `1up 1`"),
            ("{a=\"b\"} 1\n", "expected the name of a metric"),
            ("up{\"down\"} 1\n", "expected one name of the metric"),
            ("up{a=\"b} 1\n", "expected a closing quote"),
            ("up{a=b} 1\n", "expected the value of a label in quotes, found `b} 1`"),
            ("up{a=\"b\\\"} 1\n", "expected a closing quote"),
            ("up{a=\"\\", "expected the end of the line"),
            ("up{a=\"b\" c=\"d\"} 1\n", "expected `,` or `}` after a label"),
            ("up{a=\"b\",a=\"c\"} 1\n", "expected each label once"),
            ("up{=\"b\"} 1\n", "expected a label"),
            ("up{,} 1\n", "expected a label"),
            ("up 1 2 3\n", "expected nothing after the timestamp, found `3`"),
            ("up 1 # trace\n", "expected an exemplar"),
            ("# TYPE up\n", "expected a name and a type after `TYPE`"),
            ("# TYPE up gauges\n", "expected a type of metrics, found `gauges`"),
            ("# EOF\nup 1\n", "expected nothing after `# EOF`"),
        ] {
            let fault = read_all(text).expect_err(text);
            assert!(fault.contains(says), "{text}: {fault}");
        }
        let mut lines = lines("up one\nup 1\n");
        assert!(lines.next().is_some_and(|line| line.is_err()) && lines.next().is_none(), "nothing after a fault");
    }
}
