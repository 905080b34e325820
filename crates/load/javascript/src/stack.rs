//! Stacks of calls, as the engine writes them.

/// File, line and column of each call in a stack. The lines of a stack are `    at call (file:line:column)` or `    at file:line:column`.
pub(crate) fn places(stack: &str) -> impl Iterator<Item = (&str, usize, usize)> {
    stack.lines().filter_map(|line| {
        let call = line.trim_start().strip_prefix("at ")?;
        let place = call.rsplit_once(" (").map_or(call, |(_, place)| place.trim_end_matches(')'));
        let mut parts = place.rsplitn(3, ':');
        let (column, line, file) = (parts.next()?, parts.next()?, parts.next()?);
        Some((file, line.parse().ok()?, column.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_from_stacks() {
        let stack = "    at get (native)\n    at buy (lib/a b.js:12:5)\n    at <anonymous> (load.js:3:40)\n    at load.js:2:24\n";
        let found: Vec<_> = places(stack).collect();
        assert_eq!(found, [("lib/a b.js", 12, 5), ("load.js", 3, 40), ("load.js", 2, 24)]);
    }
}
