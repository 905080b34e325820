//! Secrets of a run: made up for the servers that it starts, and kept out of its bundle.

use plimsoll_database::Databases;
use plimsoll_model::database::{Database, DatabaseFacts, Origin};
use plimsoll_model::result::FinishedStart;
use plimsoll_model::start::Validity;
use plimsoll_model::storage::{KeyPair, Secret};
use plimsoll_study::Study;
use plimsoll_system::random_text;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Variables of the environment that hold secrets whatever the study.
const SECRET_VARIABLES: [&str; 2] = ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];

/// Characters of a secret: as many as those of Amazon's have.
const SECRET_LENGTH: usize = 40;

/// A shorter text is no secret, and would be found in many places.
const LEAST_LENGTH: usize = 4;

/// The secrets of a run that are known before its first trial.
pub(crate) struct Keys {
    /// The key pairs that are made up for it, by the names of their stores.
    pub(crate) pairs: BTreeMap<String, KeyPair>,
    /// The variables of the environment that hold secrets.
    variables: BTreeSet<String>,
}

impl Keys {
    /// A pair for each store of the study that asks for one, and the passwords of its databases and users.
    ///
    /// # Errors
    /// The machine gives no random numbers.
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

    /// Every text that must not stand in the bundle: those of the servers that the run starts, and
    /// those of the environment, which systems inherit.
    pub(crate) fn secrets(&self, databases: &Databases) -> Vec<String> {
        let generated = self.pairs.values().map(|pair| pair.secret.0.clone());
        let inherited = self.variables.iter().filter_map(|name| std::env::var(name).ok());
        let passwords = databases.secrets().into_iter().map(|secret| secret.0);
        generated.chain(inherited).chain(passwords).filter(|secret| secret.len() >= LEAST_LENGTH).collect()
    }
}

/// What is known of a start, without secrets that a system may have told.
pub(crate) fn hidden(secrets: &[String], mut finished: FinishedStart) -> FinishedStart {
    let FinishedStart { summary, loads } = &mut finished;
    let of_databases = summary.systems.iter_mut().flat_map(|systems| &mut systems.databases).flat_map(told_by_server);
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

/// What of the facts of a database comes from its server or from a command of the study.
fn told_by_server(facts: &mut DatabaseFacts) -> impl Iterator<Item = &mut String> {
    let details = facts.conditions.iter_mut().map(|condition| &mut condition.detail);
    let settings =
        facts.settings.iter_mut().flat_map(|setting| setting.asked.iter_mut().chain([&mut setting.in_force]));
    [&mut facts.version, &mut facts.restored].into_iter().chain(details).chain(settings)
}
