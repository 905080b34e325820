//! Numbers of bytes as a study writes them: `"100KB"`, `"1.5MiB"`, `4096`.

use super::scalar::{Problem, Scalar};
use plimsoll_model::factor::Level;
use serde_json::{Value, json};

/// A number of bytes between two bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<const FROM: u64, const TO: u64>(pub(crate) u64);

/// Of an object, or of a piece of one.
pub(crate) type Size = Bytes<1, 5_000_000_000_000>;
/// Of a part of a multipart upload, between the bounds of S3.
pub(crate) type PartSize = Bytes<{ 5 << 20 }, { 5 << 30 }>;

/// The units, largest first.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

impl<const FROM: u64, const TO: u64> Scalar for Bytes<FROM, TO> {
    const EXPECTED: &'static str = "a size such as \"100KB\" or \"1MiB\", or a whole number of bytes";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let bytes = match level {
            Level::Integer(number) => u64::try_from(*number).ok(),
            Level::Text(text) => bytes(text),
            Level::Bool(_) | Level::Number(_) => None,
        };
        match bytes {
            Some(bytes) if bytes < FROM => Err(Problem::new(format!("must be at least {}, not {level}", shown(FROM)))),
            Some(bytes) if bytes > TO => Err(Problem::new(format!("must be at most {}, not {level}", shown(TO)))),
            Some(bytes) => Ok(Bytes(bytes)),
            None => Err(Problem::wrong::<Self>(level).maybe_help(with_known_unit(&level.to_string()))),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "integer", "minimum": FROM, "maximum": TO },
            { "type": "string", "pattern": "^[0-9][0-9_.]* ?([KMGT]i?)?B?$" },
        ] })
    }
}

/// What files are read and written in at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block(pub(crate) u64);

/// What `O_DIRECT` asks for on every file system that has it.
const ALIGNMENT: u64 = 4096;

impl Scalar for Block {
    const EXPECTED: &'static str = Size::EXPECTED;

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let bytes = Bytes::<ALIGNMENT, { 16 << 20 }>::from_level(level)?.0;
        match aligned_instead(bytes) {
            None => Ok(Block(bytes)),
            Some(nearest) => Err(Problem::new(format!("must be a multiple of 4KiB, not {level}")).help(nearest)),
        }
    }

    fn schema() -> Value {
        Bytes::<ALIGNMENT, { 16 << 20 }>::schema()
    }
}

/// Which numbers of bytes `O_DIRECT` takes instead of this one; none if it takes this one.
pub(crate) fn aligned_instead(bytes: u64) -> Option<String> {
    let below = bytes / ALIGNMENT * ALIGNMENT;
    let above = shown(below + ALIGNMENT);
    match below {
        _ if below == bytes => None,
        0 => Some(format!("the least that fits is \"{above}\"")),
        _ => Some(format!("the nearest that fit are \"{}\" and \"{above}\"", shown(below))),
    }
}

/// A number of bytes above zero in the largest unit that it is a multiple of: `96KiB`.
pub(crate) fn shown(bytes: u64) -> String {
    let (name, unit) = UNITS.into_iter().find(|(_, unit)| bytes.is_multiple_of(*unit)).unwrap_or(("B", 1));
    format!("{}{name}", bytes / unit)
}

/// The bytes that a text stands for, if it stands for whole ones.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text);
    let unit = if unit.is_empty() { 1 } else { UNITS.iter().find(|(name, _)| *name == unit)?.1 };
    let number = number.replace('_', "");
    let (whole, decimals) = number.split_once('.').unwrap_or((&number, ""));
    let digits: u128 = format!("{whole}{decimals}").parse().ok()?;
    let product = digits.checked_mul(unit.into())?;
    let scale = 10_u128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    product.is_multiple_of(scale).then(|| u64::try_from(product / scale).ok())?
}

/// `1.5 MiB` as `1.5` and `MiB`.
fn number_and_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// What was meant where the unit has another name: `1 mb` is `1MB`.
fn with_known_unit(text: &str) -> Option<String> {
    let (number, unit) = number_and_unit(text);
    let unit = unit.to_lowercase();
    let stem = ["bytes", "byte", "b"].iter().find_map(|ending| unit.strip_suffix(ending)).unwrap_or(&unit);
    let is_meant = |name: &str| name.to_lowercase().strip_suffix('b') == Some(stem);
    let (name, _) = UNITS.iter().find(|(name, _)| is_meant(name))?;
    let meant = format!("{number}{name}");
    bytes(&meant).map(|_| format!("did you mean \"{meant}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(text: &str) -> Level {
        Level::Text(text.to_owned())
    }

    #[test]
    fn sizes_are_written_with_decimal_and_binary_units() {
        for (written, bytes) in [
            ("1B", 1),
            ("100KB", 100_000),
            ("1MiB", 1_048_576),
            ("1.5 MB", 1_500_000),
            ("0.001MB", 1_000),
            ("1_000", 1_000),
            ("10GB", 10_000_000_000),
            ("1GiB", 1 << 30),
            ("5TB", 5_000_000_000_000),
        ] {
            assert_eq!(Size::from_level(&text(written)).expect(written).0, bytes, "{written}");
        }
        assert_eq!(Size::from_level(&Level::Integer(7)).expect("a size").0, 7);
        for wrong in
            ["", "MB", "1.5", "1.0001KB", "1..5MB", "-1B", "1 parsec", "0B", "6TB", "99999999999999999999999TiB"]
        {
            assert!(Size::from_level(&text(wrong)).is_err(), "{wrong}");
        }
        for wrong in [Level::Integer(-1), Level::Number(1.5), Level::Bool(true)] {
            assert!(Size::from_level(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn units_by_other_names_are_recognised() {
        for (written, meant) in [("1 kb", "1KB"), ("2mib", "2MiB"), ("3 G", "3GB"), ("4 bytes", "4B"), ("5ki", "5KiB")]
        {
            assert_eq!(with_known_unit(written), Some(format!("did you mean \"{meant}\"?")), "{written}");
        }
        for other in ["", "big", "20 parsecs", "1..mb"] {
            assert_eq!(with_known_unit(other), None, "{other}");
        }
    }

    #[test]
    fn blocks_are_aligned() {
        assert_eq!(Block::from_level(&text("1MiB")).expect("a block").0, 1 << 20);
        for wrong in ["1MB", "1KiB", "32MiB"] {
            assert!(Block::from_level(&text(wrong)).is_err(), "{wrong}");
        }
        let nearest = aligned_instead(100_000);
        assert_eq!(nearest.as_deref(), Some("the nearest that fit are \"96KiB\" and \"100KiB\""));
        assert_eq!(aligned_instead(5).as_deref(), Some("the least that fits is \"4KiB\""));
    }

    proptest! {
        #[test]
        fn any_number_of_bytes_reads_back(bytes in 1_u64..5_000_000_000_000) {
            prop_assert_eq!(Size::from_level(&text(&shown(bytes))).expect("a size").0, bytes);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[0-9._ kKMiBé]{0,12}") {
            let _ = Size::from_level(&Level::Text(text));
        }
    }
}
