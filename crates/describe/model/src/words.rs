//! Joins lists into the words of a sentence.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_item_follows_the_conjunction() {
        assert_eq!(and_list([1, 2, 3]), "1, 2 and 3");
        assert_eq!(or_list(quoted(["a", "b"])), "`a` or `b`");
        assert_eq!((and_list(["a"]), or_list::<&str>([])), ("a".to_owned(), String::new()));
    }
}
