//! Measured numbers of five digits hardly ever come out the same twice: where they do, one of them
//! was probably copied.

use super::Context;
use crate::column::Statistic;
use crate::finding::{Evidence, Finding};
use crate::lint::impossible::name;
use plimsoll_analysis::findings::Gravity;

/// From so many digits on.
const DIGITS: usize = 5;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let numbers = || {
        let of_rows =
            context.rows.iter().flat_map(|row| row.statistics.iter().map(move |(one, number)| (row, *one, number)));
        of_rows.filter(|(_, one, number)| *one != Statistic::Value && number.digits >= DIGITS)
    };
    let mut evidence = Vec::new();
    for (index, (row, statistic, number)) in numbers().enumerate() {
        let twice = numbers().skip(index + 1).find(|(other_row, other, again)| {
            *other == statistic
                && again.value == number.value
                && again.unit == number.unit
                && other_row.line != row.line
        });
        if let Some((other, _, _)) = twice {
            let text = format!("{} {} stands at {} and at {}", name(statistic), number.text, row.name(), other.name());
            evidence.push(Evidence::new([row.line, other.line], text));
        }
    }
    if evidence.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        gravity: Gravity::Caution,
        topic: "repeated number",
        sentence: "The same number stands in two places, to the last digit: one of them was probably copied."
            .to_owned(),
        evidence,
        advice: "Look both up in the raw values.",
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::evidence;

    #[test]
    fn numbers_with_many_digits_do_not_repeat() {
        let table = "variant,mean,sd\nS3,469.29 ms,166.32 ms\nEFS,390.87 ms,166.32 ms\nLocal,1.05 ms,1.05 ms\nother,1.05 ms,2 ms\n";
        assert_eq!(evidence(lint, table), ["sd 166.32 ms stands at S3 and at EFS"]);
    }
}
