//! Joins lists into the words of a sentence, and reasons that repeat one another into one.

use std::fmt::Display;

/// Joins items as in `a, b and c`; an empty text where there are none.
#[must_use]
pub fn and_list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    join(items, "and")
}

/// Joins items as in `a, b or c`; an empty text where there are none.
#[must_use]
pub fn or_list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    join(items, "or")
}

/// Puts each item between backticks.
pub fn quoted<T: Display>(items: impl IntoIterator<Item = T>) -> impl Iterator<Item = String> {
    items.into_iter().map(|item| format!("`{item}`"))
}

fn join<T: Display>(items: impl IntoIterator<Item = T>, conjunction: &str) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    match items.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} {conjunction} {last}", first.join(", ")),
        items => items.concat(),
    }
}

/// The first of all reasons that differ in nothing but their figures, with the number of those. `noun` says what has
/// them, in the plural: each slice of a start may have a reason of its own.
#[must_use]
pub fn without_repeats(reasons: &[String], noun: &str) -> Vec<String> {
    let without_figures = |reason: &str| reason.replace(|letter: char| letter.is_ascii_digit() || letter == '.', "");
    let mut kinds: Vec<(String, &String, usize)> = Vec::new();
    for reason in reasons {
        let kind = without_figures(reason);
        match kinds.iter_mut().find(|(known, ..)| *known == kind) {
            Some((.., count)) => *count += 1,
            None => kinds.push((kind, reason, 1)),
        }
    }
    let shown = |(_, first, count): (String, &String, usize)| match count {
        1 => first.clone(),
        count => format!("{first} (the first of {count} {noun})"),
    };
    kinds.into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_item_follows_the_conjunction() {
        assert_eq!(and_list([1, 2, 3]), "1, 2 and 3");
        assert_eq!(or_list(quoted(["a", "b"])), "`a` or `b`");
        assert_eq!((and_list(["a"]), or_list::<&str>([])), ("a".to_owned(), String::new()));
    }

    #[test]
    fn reasons_that_differ_in_figures_alone_are_one() {
        let reasons = ["late by 1.5 ms", "late by 12 ms", "no reply", "late by 3 ms"].map(str::to_owned);
        assert_eq!(without_repeats(&reasons, "slices"), ["late by 1.5 ms (the first of 3 slices)", "no reply"]);
        assert_eq!(without_repeats(&[], "slices"), Vec::<String>::new());
    }
}
