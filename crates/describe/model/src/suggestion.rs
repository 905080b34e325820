//! "Did you mean": the known name that is nearest to an unknown one.

/// A question such as "did you mean `get`?", if one of the known names differs from `name` by few edits: at most a third
/// of its characters.
#[must_use]
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let most = name.chars().count() / 3;
    let edits = known.map(|known| (strsim::damerau_levenshtein(name, known), known));
    let (_, nearest) = edits.filter(|(edits, _)| *edits <= most).min()?;
    Some(format!("did you mean `{nearest}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        let known = || ["get", "post", "options"].into_iter();
        assert_eq!(did_you_mean("optoins", known()).as_deref(), Some("did you mean `options`?"));
        assert_eq!(did_you_mean("gte", known()).as_deref(), Some("did you mean `get`?"));
        assert_eq!(did_you_mean("delete", known()), None);
    }
}
