//! Secrets of a run: made up for the servers that it starts, and kept out of its bundle.

use plimsoll_model::result::TrialSummary;
use plimsoll_model::storage::{KeyPair, Secret};
use plimsoll_model::trial::Validity;
use plimsoll_study::Study;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};

/// Variables of the environment that systems inherit, and might print.
const SECRET_VARIABLES: [&str; 2] = ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];

/// Characters of a secret: as many as those of Amazon's have.
const SECRET_LENGTH: usize = 40;

/// A shorter text is no secret, and would be found in many places.
const LEAST_LENGTH: usize = 8;

/// The key pairs of a run, by the names of their stores.
pub(crate) struct Keys {
    pub(crate) pairs: BTreeMap<String, KeyPair>,
}

impl Keys {
    /// A pair for each store of the study that asks for one.
    ///
    /// # Errors
    /// The machine gives no random numbers.
    pub(crate) fn generate(study: &Study) -> io::Result<Keys> {
        let pair = |store: String| {
            let secret = Secret(random_text(SECRET_LENGTH)?);
            Ok((store, KeyPair { access_key: format!("PLIMSOLL{}", random_text(12)?), secret }))
        };
        Ok(Keys { pairs: study.stand_in_keys().into_keys().map(pair).collect::<io::Result<_>>()? })
    }

    /// The summary of a trial without secrets that a system may have told.
    pub(crate) fn hidden(&self, mut summary: TrialSummary) -> TrialSummary {
        let texts = match &mut summary.validity {
            Validity::Valid => &mut Vec::new(),
            Validity::Void(reasons) | Validity::Failed(reasons) => reasons,
        };
        let examples = summary.error_examples.values_mut().flat_map(BTreeMap::values_mut);
        for text in texts.iter_mut().chain(&mut summary.warnings).chain(examples) {
            for secret in self.secrets() {
                *text = text.replace(&secret, &"*".repeat(secret.len()));
            }
        }
        summary
    }

    /// Every text that must not stand in the bundle.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let generated = self.pairs.values().map(|pair| pair.secret.0.clone());
        let inherited = SECRET_VARIABLES.iter().filter_map(|name| std::env::var(name).ok());
        generated.chain(inherited).filter(|secret| secret.len() >= LEAST_LENGTH).collect()
    }
}

/// Letters and digits that nobody can guess: not from the study's seed, which everybody knows.
fn random_text(length: usize) -> io::Result<String> {
    let mut bytes = vec![0_u8; length];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    // 32 of them, so that each is as likely as the others.
    let letters = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    Ok(bytes.iter().map(|byte| char::from(letters[usize::from(byte % 32)])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_texts_are_alike() {
        let texts = [random_text(40).expect("random numbers"), random_text(40).expect("random numbers")];
        assert_ne!(texts[0], texts[1]);
        assert!(texts.iter().all(|text| text.len() == 40 && text.chars().all(|c| c.is_ascii_alphanumeric())));
    }
}
