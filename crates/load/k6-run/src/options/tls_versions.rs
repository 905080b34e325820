//! The option `tlsVersion`: a version of TLS, or the range of those that are offered.

use super::OptionFault;
use super::table::Field;
use serde_json::{Value, json};

/// The names of versions, from the oldest to the newest. Only the last two are ever offered.
const NAMES: [&str; 5] = ["ssl3.0", "tls1.0", "tls1.1", "tls1.2", "tls1.3"];

/// The index of TLS 1.2 in [`NAMES`].
const TLS_1_2: usize = 3;

const EXPECTED: &str = "`tls1.2` or `tls1.3`, which are all that Plimsoll has, or a range with one of them";

/// A range of versions with TLS 1.2, 1.3 or both in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsVersions {
    /// Indices of [`NAMES`].
    min: usize,
    max: usize,
}

impl TlsVersions {
    /// True if TLS 1.2 is offered.
    #[must_use]
    pub fn has_1_2(self) -> bool {
        (self.min..=self.max).contains(&TLS_1_2)
    }

    /// True if TLS 1.3 is offered.
    #[must_use]
    pub fn has_1_3(self) -> bool {
        (self.min..=self.max).contains(&(TLS_1_2 + 1))
    }
}

impl Field for TlsVersions {
    fn read(value: &Value, _: &str, _: &mut Vec<OptionFault>) -> Result<TlsVersions, String> {
        let version = |value: &Value| NAMES.iter().position(|name| Some(*name) == value.as_str());
        let end = |range: &serde_json::Map<String, Value>, name: &str, otherwise: usize| match range.get(name) {
            None | Some(Value::Null) => Some(otherwise),
            Some(value) => version(value),
        };
        let (min, max) = match value {
            Value::Object(range) => (end(range, "min", 0), end(range, "max", NAMES.len() - 1)),
            one => (version(one), version(one)),
        };
        let versions = min.zip(max).map(|(min, max)| TlsVersions { min, max });
        versions.filter(|versions| versions.has_1_2() || versions.has_1_3()).ok_or_else(|| EXPECTED.to_owned())
    }

    fn written(&self) -> Value {
        json!({ "min": NAMES[self.min], "max": NAMES[self.max] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_to_hold_a_version_that_can_be_offered() {
        for (value, offered) in [
            (json!("tls1.2"), Some((true, false))),
            (json!("tls1.3"), Some((false, true))),
            (json!({ "min": "tls1.0", "max": "tls1.2" }), Some((true, false))),
            (json!({ "min": "tls1.2" }), Some((true, true))),
            (json!({ "max": null }), Some((true, true))),
            (json!("tls1.1"), None),
            (json!({ "max": "tls1.1" }), None),
            (json!({ "min": "tls1.3", "max": "tls1.2" }), None),
            (json!({ "min": "tls9" }), None),
            (json!(1.2), None),
        ] {
            let read = TlsVersions::read(&value, "tlsVersion", &mut Vec::new()).ok();
            assert_eq!(read.map(|versions| (versions.has_1_2(), versions.has_1_3())), offered, "{value}");
        }
    }
}
