//! What a sample is tagged with.

/// The tags of a sample: where a name occurs twice, what stands first here counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct TagSet<'a> {
    /// Those of the sample alone.
    pub own: &'a [(&'a str, &'a str)],
    /// The tag `group`.
    pub group: Option<&'a str>,
    /// Those of all samples of its user.
    pub user: &'a [(String, String)],
}

impl<'a> TagSet<'a> {
    /// Of a sample that has only tags of its own.
    #[must_use]
    pub fn own(own: &'a [(&'a str, &'a str)]) -> TagSet<'a> {
        TagSet { own, ..TagSet::default() }
    }

    /// The value of a tag.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.iter().find(|(tag, _)| *tag == name).map(|(_, value)| value)
    }

    /// All tags, each once.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let TagSet { own, group, user } = *self;
        let is_own = move |name: &str| own.iter().any(|(tag, _)| *tag == name);
        let group = group.filter(|_| !is_own("group")).map(|group| ("group", group));
        let has_group = group.is_some();
        let user = user.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let is_known = move |name: &str| is_own(name) || has_group && name == "group";
        let user = user.filter(move |(name, _)| !is_known(name));
        own.iter().copied().chain(group).chain(user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tags_of_a_sample_win_over_those_of_its_user() {
        let user =
            [("name", "user"), ("group", "user"), ("team", "x")].map(|(name, value)| (name.into(), value.into()));
        let tags = TagSet { own: &[("name", "own")], group: Some("::a"), user: &user };
        assert_eq!(tags.iter().collect::<Vec<_>>(), [("name", "own"), ("group", "::a"), ("team", "x")]);
        assert_eq!((tags.get("name"), tags.get("team"), tags.get("none")), (Some("own"), Some("x"), None));
        let tags = TagSet { own: &[("group", "own")], ..tags };
        assert_eq!(tags.get("group"), Some("own"));
    }
}
