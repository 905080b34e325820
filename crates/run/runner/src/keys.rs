//! Secrets of a run: generates those of the servers that it starts, and keeps all of them out of its bundle.

use plimsoll_database::Databases;
use plimsoll_model::database::{Database, DatabaseFacts, Origin};
use plimsoll_model::result::FinishedStart;
use plimsoll_model::start::Validity;
use plimsoll_model::storage::{KeyPair, Secret};
use plimsoll_study::Study;
use plimsoll_system::random_text;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Environment variables that hold secrets in every study.
const SECRET_VARIABLES: [&str; 2] = ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];

/// Characters of a secret key: as many as in Amazon's.
const SECRET_LENGTH: usize = 40;

/// A shorter text is not treated as a secret: it would occur in many places by chance.
const LEAST_LENGTH: usize = 4;

/// The secrets of a run that are known before its first trial.
pub(crate) struct Keys {
    /// The key pairs that are generated for it, by the names of their stores.
    pub(crate) pairs: BTreeMap<String, KeyPair>,
    /// The environment variables that hold secrets.
    variables: BTreeSet<String>,
}

impl Keys {
    /// Generates a key pair for each store of the study that asks for one, and collects the variables with the
    /// passwords of its databases and users.
    ///
    /// # Errors
    /// The machine provides no random numbers.
    pub(crate) fn generate(study: &Study, databases: &[Database], of_users: Vec<String>) -> io::Result<Keys> {
        let pair = |store: String| {
            let secret = Secret(random_text(SECRET_LENGTH)?);
            Ok((store, KeyPair { access_key: format!("PLIMSOLL{}", random_text(12)?), secret }))
        };
        let pairs = study.stand_in_keys().into_keys().map(pair).collect::<io::Result<_>>()?;
        let passwords = databases.iter().filter_map(|database| match &database.origin {
            Origin::External(external) => external.password_variable.clone(),
            Origin::Started(_) => None,
        });
        let variables = SECRET_VARIABLES.map(str::to_owned).into_iter().chain(passwords).chain(of_users).collect();
        Ok(Keys { pairs, variables })
    }

    /// Every text that must not appear in the bundle: the secrets of the servers that the run starts, and those in the
    /// environment, which systems inherit.
    pub(crate) fn secrets(&self, databases: &Databases) -> Vec<String> {
        let generated = self.pairs.values().map(|pair| pair.secret.0.clone());
        let inherited = self.variables.iter().filter_map(|name| std::env::var(name).ok());
        let passwords = databases.secrets().into_iter().map(|secret| secret.0);
        generated.chain(inherited).chain(passwords).filter(|secret| secret.len() >= LEAST_LENGTH).collect()
    }
}

/// Overwrites, in the results of a start, every secret that a system may have printed.
pub(crate) fn without_secrets(secrets: &[String], mut finished: FinishedStart) -> FinishedStart {
    let FinishedStart { summary, loads } = &mut finished;
    let of_databases = summary.systems.iter_mut().flat_map(|systems| &mut systems.databases).flat_map(server_texts);
    let of_start = reasons(&mut summary.validity).iter_mut().chain(&mut summary.warnings).chain(of_databases);
    let of_loads = loads.iter_mut().flat_map(|load| {
        let examples = load.replies.error_examples.values_mut().flat_map(BTreeMap::values_mut);
        reasons(&mut load.validity).iter_mut().chain(&mut load.warnings).chain(examples)
    });
    for text in of_start.chain(of_loads) {
        for secret in secrets {
            *text = text.replace(secret, &"*".repeat(secret.len()));
        }
    }
    finished
}

fn reasons(validity: &mut Validity) -> &mut [String] {
    match validity {
        Validity::Valid => &mut [],
        Validity::Void(reasons) | Validity::Failed(reasons) => reasons,
    }
}

/// The texts among the facts of a database that its server or a command of the study has printed.
fn server_texts(facts: &mut DatabaseFacts) -> impl Iterator<Item = &mut String> {
    let details = facts.conditions.iter_mut().map(|condition| &mut condition.detail);
    let settings =
        facts.settings.iter_mut().flat_map(|setting| setting.asked.iter_mut().chain([&mut setting.in_force]));
    [&mut facts.version, &mut facts.restored].into_iter().chain(details).chain(settings)
}
