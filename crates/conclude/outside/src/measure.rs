//! What the name of a file says of its numbers.

use plimsoll_model::measure::{Direction, Unit};

/// The measure whose labels are what a version was tested on, as databases, and whose values are the users that it carried.
pub const SUPPORTED_USERS: &str = "supported_users";

/// The unit of a measure's numbers, as its name ends; without one they are numbers.
#[must_use]
pub fn unit(name: &str) -> Unit {
    let name = name.replace('-', "_");
    let ends = [
        ("_seconds", Unit::Seconds),
        ("_bytes", Unit::Bytes),
        ("_cores", Unit::Cores),
        ("_ratio", Unit::Share),
        ("_per_second", Unit::PerSecond),
        ("_users", Unit::Count),
    ];
    ends.into_iter().find_map(|(end, unit)| name.ends_with(end).then_some(unit)).unwrap_or(Unit::Number)
}

/// Which way is better, where the name tells: less time, memory and CPU, more users.
#[must_use]
pub fn better(name: &str) -> Option<Direction> {
    match unit(name) {
        _ if name == SUPPORTED_USERS => Some(Direction::Higher),
        Unit::Seconds | Unit::Bytes | Unit::Cores => Some(Direction::Lower),
        _ => None,
    }
}

/// The name as a title: `avg-api-times_seconds` is `avg api times`.
#[must_use]
pub fn title(name: &str) -> String {
    let ends = ["seconds", "bytes", "cores", "ratio"];
    let mut words: Vec<&str> = name.split(['-', '_']).filter(|word| !word.is_empty()).collect();
    if words.len() > 1 && words.last().is_some_and(|last| ends.contains(last)) {
        words.pop();
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_numbers_are() {
        for (name, unit_of, title_of) in [
            ("avg-api-times_seconds", Unit::Seconds, "avg api times"),
            ("heap-in-use-bytes", Unit::Bytes, "heap in use"),
            ("rps", Unit::Number, "rps"),
            ("requests_per_second", Unit::PerSecond, "requests per second"),
            (SUPPORTED_USERS, Unit::Count, "supported users"),
            ("seconds", Unit::Number, "seconds"),
        ] {
            assert_eq!((unit(name), title(name).as_str()), (unit_of, title_of), "{name}");
        }
        assert_eq!(better(SUPPORTED_USERS), Some(Direction::Higher));
        assert_eq!(better("goroutines"), None);
    }
}
