//! JSON objects whose members keep the order and the text in which they were written.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The members of an object in the order of its text: each name, unescaped, and its value as it was written. A name may
/// occur more than once.
#[derive(Debug)]
pub struct Members<'a>(pub Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        std::iter::from_fn(|| map.next_entry().transpose()).collect::<Result<_, _>>().map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_their_text() {
        let Members(members) =
            serde_json::from_str(r#"{"b": 1.50, "\u0061": {"y":1, "x": [ ]}, "b": null}"#).expect("JSON");
        let members: Vec<_> = members.iter().map(|(name, value)| (name.as_str(), value.get())).collect();
        assert_eq!(members, [("b", "1.50"), ("a", r#"{"y":1, "x": [ ]}"#), ("b", "null")]);
        assert!(serde_json::from_str::<Members<'_>>("[1]").is_err());
    }
}
