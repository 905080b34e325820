//! The tags of a sample.

use std::fmt;

/// The tags of a sample. Of two tags with one name, the earlier field counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct TagSet<'a> {
    /// Tags that are derived from the measurement.
    pub measured: Option<&'a dyn Measured>,
    /// Tags of the sample alone.
    pub own: &'a [(&'a str, &'a str)],
    /// The tag `group`.
    pub group: Option<&'a str>,
    /// Tags of all samples of the user.
    pub user: &'a [(String, String)],
    /// Metadata: written to outputs, and no tags.
    pub metadata: &'a [(String, String)],
}

/// A measurement from which tags are derived on demand: few samples need all of their tags.
pub trait Measured: fmt::Debug {
    /// The names of all possible tags.
    fn names(&self) -> &'static [&'static str];

    /// The value of a tag.
    fn get(&self, name: &str) -> Option<&str>;
}

impl<'a> TagSet<'a> {
    /// The tags of a sample that has only tags of its own.
    #[must_use]
    pub fn own(own: &'a [(&'a str, &'a str)]) -> TagSet<'a> {
        TagSet { own, ..TagSet::default() }
    }

    /// The value of a tag.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        if let Some(value) = self.measured.and_then(|measured| measured.get(name)) {
            return Some(value);
        }
        let own = self.own.iter().copied().find(|(tag, _)| *tag == name).map(|(_, value)| value);
        let group = self.group.filter(|_| name == "group");
        let user = || self.user.iter().find(|(tag, _)| tag == name).map(|(_, value)| value.as_str());
        own.or(group).or_else(user)
    }

    /// All tags, each once.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let TagSet { measured, own, group, user, .. } = *self;
        let names = measured.map_or(&[][..], |measured| measured.names());
        let first = names.iter().filter_map(move |name| Some((*name, measured?.get(name)?)));
        let is_measured = move |name: &str| measured.is_some_and(|measured| measured.get(name).is_some());
        let is_own = move |name: &str| is_measured(name) || own.iter().any(|(tag, _)| *tag == name);
        let own = own.iter().copied().filter(move |(name, _)| !is_measured(name));
        let group = group.filter(|_| !is_own("group")).map(|group| ("group", group));
        let has_group = group.is_some();
        let user = user.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let user = user.filter(move |(name, _)| !(is_own(name) || has_group && *name == "group"));
        first.chain(own).chain(group).chain(user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tags_of_a_sample_win_over_those_of_its_user() {
        let user =
            [("name", "user"), ("group", "user"), ("team", "x")].map(|(name, value)| (name.into(), value.into()));
        let tags = TagSet { own: &[("name", "own")], group: Some("::a"), user: &user, ..TagSet::default() };
        assert_eq!(tags.iter().collect::<Vec<_>>(), [("name", "own"), ("group", "::a"), ("team", "x")]);
        assert_eq!((tags.get("name"), tags.get("team"), tags.get("none")), (Some("own"), Some("x"), None));
        let tags = TagSet { own: &[("group", "own")], ..tags };
        assert_eq!(tags.get("group"), Some("own"));
    }

    #[derive(Debug)]
    struct Status(&'static str);

    impl Measured for Status {
        fn names(&self) -> &'static [&'static str] {
            &["proto", "status"]
        }

        fn get(&self, name: &str) -> Option<&str> {
            (name == "status").then_some(self.0)
        }
    }

    #[test]
    fn measured_tags_take_precedence() {
        let user = [("proto", "user"), ("status", "user")].map(|(name, value)| (name.into(), value.into()));
        let own = [("status", "own"), ("a", "b")];
        let tags = TagSet { measured: Some(&Status("200")), own: &own, user: &user, ..TagSet::default() };
        assert_eq!(tags.iter().collect::<Vec<_>>(), [("status", "200"), ("a", "b"), ("proto", "user")]);
        assert_eq!(["status", "a", "proto"].map(|name| tags.get(name)), [Some("200"), Some("b"), Some("user")]);
    }
}
