//! The module `k6/encoding`: base64.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

use crate::native::Native;
use crate::value::{Arg, buffer, bytes, optional_text, thrown};
use base64::Engine;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use plimsoll_javascript::NativeModule;
use rquickjs::function::Opt;
use rquickjs::{Ctx, IntoJs, Object, Result, Value};

/// See the module.
pub(crate) struct Encoding;

impl NativeModule for Encoding {
    const NAME: &'static str = "k6/encoding";
    const EXPORTS: &'static [&'static str] = &["default", "b64encode", "b64decode"];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let object = Object::new(ctx.clone())?;
        object.native("b64encode", b64encode)?;
        object.native("b64decode", b64decode)?;
        Ok(object)
    }
}

fn b64encode<'js>(ctx: Ctx<'js>, Arg(data): Arg<'js>, variant: Opt<Value<'js>>) -> Result<String> {
    let variant = optional_text(&ctx, variant.0)?;
    Ok(encode(&bytes(&ctx, &data)?, variant.as_deref().unwrap_or("std")))
}

/// Decodes to a text with the format `s`, else to a buffer.
fn b64decode<'js>(
    ctx: Ctx<'js>,
    Arg(data): Arg<'js>,
    variant: Opt<Value<'js>>,
    format: Opt<Value<'js>>,
) -> Result<Value<'js>> {
    let variant = optional_text(&ctx, variant.0)?;
    let decoded = decode(&bytes(&ctx, &data)?, variant.as_deref().unwrap_or("std"));
    let decoded = decoded.map_err(|fault| thrown(&ctx, fault))?;
    match optional_text(&ctx, format.0)?.as_deref() {
        Some("s") => String::from_utf8_lossy(&decoded).into_js(&ctx),
        _ => buffer(&ctx, decoded),
    }
}

/// Bytes in base64: `std`, `rawstd`, `url` or `rawurl`; other names mean `std`.
pub(crate) fn encode(data: &[u8], variant: &str) -> String {
    engine(variant).encode(data)
}

/// Decodes base64. Ignores line breaks.
pub(crate) fn decode(text: &[u8], variant: &str) -> std::result::Result<Vec<u8>, String> {
    let text: Vec<u8> = text.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let decoded = engine(variant).decode(text);
    decoded.map_err(|error| format!("expected base64 of the encoding `{variant}`, found something else: {error}"))
}

fn engine(variant: &str) -> GeneralPurpose {
    let (alphabet, padded): (&Alphabet, bool) = match variant {
        "rawstd" => (&STANDARD, false),
        "url" => (&URL_SAFE, true),
        "rawurl" => (&URL_SAFE, false),
        _ => (&STANDARD, true),
    };
    let padding = if padded { DecodePaddingMode::RequireCanonical } else { DecodePaddingMode::RequireNone };
    let config = GeneralPurposeConfig::new().with_encode_padding(padded).with_decode_padding_mode(padding);
    // Go, the language of k6, ignores the bits behind the last byte.
    GeneralPurpose::new(alphabet, config.with_decode_allow_trailing_bits(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variant_has_its_alphabet_and_padding() {
        let data = [0xfb, 0xff, 0xbf, 0x01];
        for (variant, text) in [
            ("std", "+/+/AQ=="),
            ("rawstd", "+/+/AQ"),
            ("url", "-_-_AQ=="),
            ("rawurl", "-_-_AQ"),
            ("anything", "+/+/AQ=="),
        ] {
            assert_eq!(encode(&data, variant), text, "{variant}");
            assert_eq!(decode(text.as_bytes(), variant).as_deref(), Ok(data.as_slice()), "{variant}");
        }
    }

    #[test]
    fn what_is_no_base64_is_refused_and_line_breaks_are_not() {
        assert_eq!(decode(b"aGVs\r\nbG8=\n", "std").as_deref(), Ok(b"hello".as_slice()));
        for (text, variant) in
            [("aGVsbG8", "std"), ("aGVsbG8=", "rawstd"), ("-_8=", "std"), ("+/8=", "url"), ("a", "std")]
        {
            let fault = decode(text.as_bytes(), variant).expect_err(text);
            assert!(fault.contains(variant), "{fault}");
        }
    }
}
