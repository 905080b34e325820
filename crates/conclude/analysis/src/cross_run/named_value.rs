//! Named texts by which two bundles are compared.

use plimsoll_model::load::Think;

/// A fact about a bundle: its name and its value.
pub(super) type NamedValue = (String, String);

/// The longest text of a value in messages; longer texts are cut, and a checksum tells them apart.
pub(super) const LONGEST: usize = 120;

pub(super) fn named(name: impl Into<String>, value: impl AsRef<str>) -> NamedValue {
    let value = value.as_ref();
    let cut = match value.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} … ({} bytes, sum {:08x})", &value[..end], value.len(), sum(value)),
        None => value.to_owned(),
    };
    (name.into(), cut)
}

/// A checksum that tells long texts apart (FNV-1a).
fn sum(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

pub(super) fn think(think: &Think) -> String {
    match think {
        Think::Constant(pause) if pause.is_zero() => "none".to_owned(),
        Think::Constant(pause) => format!("{pause:?}"),
        Think::Uniform { from, to } => format!("uniform, {from:?} to {to:?}"),
        Think::Exponential(mean) => format!("exponential, {mean:?} on average"),
        Think::LogNormal { median, sigma } => format!("log-normal, median {median:?}, sigma {sigma}"),
    }
}
