//! The texts under which a secret may come back: as it is, and as it stands in a URL, in a form, in JSON and in base64.

use crate::{form, percent};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;
use std::collections::BTreeSet;

/// The bytes of the shortest secret that is looked for in base64: of a shorter one hardly a letter is its own.
const LEAST_IN_BASE64: usize = 4;

/// All texts that show the secret, each once, and none of them empty. An empty secret has none.
#[must_use]
pub fn encodings(secret: &str) -> BTreeSet<String> {
    let in_json = Value::from(secret).to_string().trim_matches('"').to_owned();
    // A secret in a URL may have been encoded by Plimsoll, by a script, or only where it must be.
    let in_url = [percent::component(secret), percent::component_of_script(secret)].map(|text| text.to_string());
    let repaired = percent::repaired(secret).ok();
    let mut in_form = Vec::new();
    form::write(secret, &mut in_form);
    let in_form = String::from_utf8_lossy(&in_form).into_owned();
    let places = if secret.len() < LEAST_IN_BASE64 { 0 } else { 3 };
    let in_base64 = (0..places).flat_map(|before| base64_after(before, secret.as_bytes()));
    let plain = [secret.to_owned(), in_json, in_form].into_iter().chain(in_url).chain(repaired);
    plain.chain(in_base64).filter(|text| !text.is_empty()).collect()
}

/// The secret inside a longer text in base64, as in `user:password` of Basic authorization, where the number of bytes
/// before it is `before` modulo 3: the letters that depend on nothing but the secret, in both alphabets.
fn base64_after(before: usize, secret: &[u8]) -> [String; 2] {
    let bytes = [&[0; 2][..before], secret].concat();
    // A letter has six bits.
    let (first, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)].map(|text| text[first..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_at_any_place_of_base64() {
        for secret in ["hunter2", "s3/cr3t!", "ÿþ?>~~~", "abcd"] {
            let texts = encodings(secret);
            for before in ["", "u", "us", "user:"] {
                for after in ["", "!", " more"] {
                    let text = format!("{before}{secret}{after}");
                    for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                        let found = texts.iter().filter(|one| encoded.contains(one.as_str())).map(String::len).max();
                        // All but a letter at either end, which it may share with its neighbours.
                        assert!(found >= Some(secret.len() * 8 / 6 - 1), "{text}: {encoded}, {texts:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_secret_is_found_however_a_url_or_a_form_encodes_it() {
        let texts = encodings("P@ss w0rd!");
        for text in ["P%40ss%20w0rd%21", "P%40ss%20w0rd!", "P%40ss+w0rd%21", "P@ss%20w0rd!"] {
            assert!(texts.contains(text), "{text}: {texts:?}");
        }
    }

    #[test]
    fn a_short_secret_has_no_text_that_is_everywhere() {
        assert_eq!(encodings("").len(), 0);
        assert_eq!(encodings("a").into_iter().collect::<Vec<String>>(), ["a"]);
    }

    #[test]
    fn a_plain_secret_has_few_texts() {
        let texts: Vec<String> = encodings("hunter2").into_iter().collect();
        assert_eq!(texts, ["aHVudGVyM", "h1bnRlcj", "hunter2", "odW50ZXIy"]);
    }
}
