//! Over the loopback there is no network: durations are shorter than users elsewhere see, and load
//! and system share one machine.

use super::Context;
use crate::finding::{Evidence, Finding};
use plimsoll_analysis::finding::Severity;

const NAMES: [&str; 8] = ["loopback", "localhost", "127.", "::1", "unix socket", "same machine", "same host", "local"];

/// How the host in a URL to this machine begins.
const HOSTS: [&str; 2] = ["127.", "[::1]"];

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let local = |target: &str| {
        let target = target.to_lowercase();
        let named = |name: &&str| if name.len() > 5 { target.contains(name) } else { target.starts_with(name) };
        NAMES.iter().any(named) || host(&target).is_some_and(|host| HOSTS.iter().any(|begin| host.starts_with(begin)))
    };
    let rows: Vec<&crate::row::Row> =
        context.rows.iter().filter(|row| row.target.as_deref().is_some_and(local)).collect();
    let Some(first) = rows.first() else { return Vec::new() };
    vec![Finding {
        severity: Severity::Caution,
        topic: "loopback",
        sentence:
            "Load, system and what it depends on share one machine, and no network lies between them: the numbers are \
                   not those that users elsewhere see, and all compete for the same processors."
                .to_owned(),
        evidence: vec![Evidence::new(
            rows.iter().map(|row| row.line).collect::<Vec<_>>(),
            format!("the target is {}", first.target.as_deref().unwrap_or_default()),
        )],
        advice: "Say so beside the numbers, and do not take them for capacity or latency over a network.",
    }]
}

/// The host of a URL, with what follows it: `127.0.0.1:80/path`.
fn host(target: &str) -> Option<&str> {
    let (_, rest) = target.split_once("://")?;
    let end = rest.find('/').unwrap_or(rest.len());
    let user = rest[..end].rfind('@').map_or(0, |at| at + 1);
    Some(&rest[user..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::found;

    #[test]
    fn the_loopback_is_no_network() {
        for (target, expected) in [
            ("loopback", true),
            ("127.0.0.1:80", true),
            ("Localhost", true),
            ("local", true),
            ("http://127.0.0.1:8080", true),
            ("postgres://bench:secret@127.0.0.1/bench", true),
            ("http://[::1]:8080/", true),
            ("10.0.0.7", false),
            ("http://10.0.0.7/?from=127.0.0.1", false),
            ("http://local.example.com", false),
            ("", false),
        ] {
            assert_eq!(!found(lint, &format!("target,value\n{target},1\n")).is_empty(), expected, "{target}");
        }
    }
}
