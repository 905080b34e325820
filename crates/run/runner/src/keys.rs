//! Secrets of a run: generates those of the servers that it starts, and keeps all of them out of its bundle.

use plimsoll_database::Databases;
use plimsoll_model::database::{Database, DatabaseFacts, Origin};
use plimsoll_model::event::Event;
use plimsoll_model::record::Subject;
use plimsoll_model::result::FinishedStart;
use plimsoll_model::start::Validity;
use plimsoll_model::storage::{KeyPair, Secret};
use plimsoll_study::{Bindings, SecretSource, Study};
use plimsoll_system::random_text;
use plimsoll_web::encodings;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Environment variables that hold secrets in every study.
const SECRET_VARIABLES: [&str; 2] = ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];

/// Words in the name of a variable that holds a secret, whatever the study says: `GITHUB_TOKEN`, `DB_PASSWORD`.
const SECRET_WORDS: [&str; 7] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS", "APIKEY"];

/// Ends of such names.
const SECRET_ENDS: [&str; 4] = ["API_KEY", "PRIVATE_KEY", "ACCESS_KEY", "ENCRYPTION_KEY"];

/// The least length of a secret that only the name of its variable shows to be one. `PASSWORD=test` must not put stars
/// into every word of a system's output.
const LEAST_GUESSED: usize = 8;

/// Characters of a secret key: as many as in Amazon's.
const SECRET_LENGTH: usize = 40;

/// Characters of the password for systems, which needs no quoting.
const PASSWORD_LENGTH: usize = 32;

/// A shorter text is not treated as a secret: it would occur in many places by chance.
const LEAST_LENGTH: usize = 4;

/// The fields of events that are maps by names of requests, systems or hosts. All other keys are words of the format.
const MAPS_BY_NAME: [&str; 5] = ["accounts", "bound_to", "error_examples", "others_elsewhere", "sequences"];

/// The place of the word that says which event one is.
const KIND_OF_EVENT: &str = "/event";

/// The secrets of a run that are known before its first trial.
pub(crate) struct Keys {
    /// The key pairs that are generated for it, by the names of their stores.
    pairs: BTreeMap<String, KeyPair>,
    /// The passwords with which systems log in to databases, by the names of these.
    passwords: BTreeMap<String, Secret>,
    /// The secrets that the study names, by their names.
    of_study: BTreeMap<String, Secret>,
    /// The texts that show the secrets of the study, longer ones first: a shorter one may be part of one.
    texts_of_study: Vec<String>,
    /// The environment variables that hold secrets.
    variables: BTreeSet<String>,
}

impl Keys {
    /// Generates a key pair for each store of the study that asks for one and a password for each database that the run
    /// starts, and collects the variables with the passwords of other databases and of users.
    ///
    /// # Errors
    /// The machine provides no random numbers, or a secret of the study is not there.
    pub(crate) fn generate(study: &Study, databases: &[Database], of_users: Vec<String>) -> io::Result<Keys> {
        let pair = |store: String| {
            let secret = Secret(random_text(SECRET_LENGTH)?);
            Ok((store, KeyPair { access_key: format!("PLIMSOLL{}", random_text(12)?), secret }))
        };
        let pairs = study.stand_ins().keys.into_keys().map(pair).collect::<io::Result<_>>()?;
        let mut variables: BTreeSet<String> = SECRET_VARIABLES.map(str::to_owned).into_iter().chain(of_users).collect();
        let mut passwords = BTreeMap::new();
        for Database { name, origin, .. } in databases {
            let password = match origin {
                Origin::Started(_) => Some(random_text(PASSWORD_LENGTH)?),
                // What is not set is reported where the database is looked at.
                Origin::External(external) => external.password_variable.as_ref().and_then(|variable| {
                    variables.insert(variable.clone());
                    std::env::var(variable).ok()
                }),
            };
            passwords.extend(password.map(|password| (name.clone(), Secret(password))));
        }
        let of_study = read_secrets(study).map_err(|faults| io::Error::other(faults.join("\n")))?;
        Ok(Keys { pairs, passwords, ..Keys::new(of_study, variables) })
    }

    fn new(of_study: BTreeMap<String, Secret>, variables: BTreeSet<String>) -> Keys {
        let texts_of_study = longest_first(of_study.values().flat_map(|secret| encodings(&secret.0)));
        Keys { pairs: BTreeMap::new(), passwords: BTreeMap::new(), of_study, texts_of_study, variables }
    }

    /// What placeholders of systems stand for, but for ports and the program.
    pub(crate) fn bindings(&self) -> Bindings {
        Bindings {
            keys: self.pairs.clone(),
            passwords: self.passwords.clone(),
            secrets: self.of_study.clone(),
            ..Bindings::default()
        }
    }

    /// Every text that must not appear in the bundle: the secrets of the servers that the run starts, and those in the
    /// environment, which systems inherit. Longer ones come first.
    pub(crate) fn secrets(&self, databases: &Databases) -> Vec<String> {
        let generated = self.pairs.values().map(|pair| &pair.secret).chain(self.passwords.values());
        let generated = generated.map(|secret| secret.0.clone());
        let inherited = self.variables.iter().filter_map(|name| std::env::var(name).ok());
        let inherited = inherited.chain(probable_secrets().into_values());
        let passwords = databases.secrets().into_iter().map(|secret| secret.0);
        let texts = generated.chain(inherited).chain(passwords).flat_map(|secret| encodings(&secret));
        let texts = texts.chain(self.texts_of_study.iter().cloned());
        longest_first(texts.filter(|text| text.len() >= LEAST_LENGTH))
    }

    /// The text with stars in place of the study's secrets.
    pub(crate) fn without_secrets(&self, text: &str) -> String {
        let least = if may_be_histogram(text) { LEAST_IN_HISTOGRAM } else { LEAST_LENGTH };
        let secrets = self.texts_of_study.iter().filter(|secret| secret.len() >= least);
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, &"*".repeat(secret.len())))
    }

    /// The event with stars in place of the study's secrets, wherever a text of it holds one: names of requests,
    /// messages, lines of a console. None if no text does. A word of the format stays, also if a secret is that word.
    pub(crate) fn masked(&self, event: &Event) -> Option<Event> {
        if self.of_study.is_empty() {
            return None;
        }
        let mut value = serde_json::to_value(event).expect("an event is plain data");
        let renamed = self.mask_names(&mut value);
        let mut places = self.places(&value);
        places.retain(|place| place != KIND_OF_EVENT);
        if !renamed && places.is_empty() {
            return None;
        }
        let mut all = value.clone();
        places.iter().for_each(|place| self.mask_at(place, &mut all));
        if let Ok(event) = serde_json::from_value(all) {
            return Some(event);
        }
        // One of the texts is a word of the format, such as `iteration`, without which this is no event.
        for place in &places {
            let mut candidate = value.clone();
            self.mask_at(place, &mut candidate);
            if serde_json::from_value::<Event>(candidate.clone()).is_ok() {
                value = candidate;
            }
        }
        serde_json::from_value(value).ok()
    }

    /// Masks the keys of all maps by names that somebody has given. True if one held a secret.
    fn mask_names(&self, value: &mut Value) -> bool {
        match value {
            Value::Array(items) => items.iter_mut().fold(false, |changed, item| self.mask_names(item) | changed),
            Value::Object(entries) => entries.iter_mut().fold(false, |changed, (field, item)| {
                let by_name = MAPS_BY_NAME.contains(&field.as_str());
                changed | if by_name { self.mask_keys(item) } else { self.mask_names(item) }
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }

    fn mask_keys(&self, map: &mut Value) -> bool {
        let Value::Object(entries) = map else { return false };
        let mut changed = false;
        for key in entries.keys().cloned().collect::<Vec<_>>() {
            let masked = self.masked_text(&key);
            if masked != key
                && let Some(item) = entries.remove(&key)
            {
                entries.insert(masked, item);
                changed = true;
            }
        }
        changed
    }

    /// The places of all texts in `value` that hold a secret, as JSON pointers (RFC 6901).
    fn places(&self, value: &Value) -> Vec<String> {
        let below = |item: &Value, key: &str| -> Vec<String> {
            let places = self.places(item);
            if places.is_empty() {
                return places;
            }
            let key = key.replace('~', "~0").replace('/', "~1");
            places.into_iter().map(|rest| format!("/{key}{rest}")).collect()
        };
        match value {
            Value::String(text) if self.masked_text(text) != *text => vec![String::new()],
            Value::Array(items) => {
                items.iter().enumerate().flat_map(|(index, item)| below(item, &index.to_string())).collect()
            }
            Value::Object(entries) => entries.iter().flat_map(|(key, item)| below(item, key)).collect(),
            _ => Vec::new(),
        }
    }

    fn mask_at(&self, place: &str, value: &mut Value) {
        if let Some(Value::String(text)) = value.pointer_mut(place) {
            *text = self.masked_text(text);
        }
    }

    /// A text of an event with stars in place of secrets. The tag of a subject, as in `request:NAME`, is a word of the
    /// format.
    fn masked_text(&self, text: &str) -> String {
        match text.split_once(':') {
            Some((tag, name)) if self.without_secrets(tag) != tag && text.parse::<Subject>().is_ok() => {
                format!("{tag}:{}", self.without_secrets(name))
            }
            _ => self.without_secrets(text),
        }
    }
}

/// Each text once, longer ones first: a shorter one may be part of one, whose rest would stay without its stars.
fn longest_first(texts: impl IntoIterator<Item = String>) -> Vec<String> {
    let texts: BTreeSet<String> = texts.into_iter().collect();
    let mut texts: Vec<String> = texts.into_iter().collect();
    texts.sort_by_key(|text| Reverse(text.len()));
    texts
}

/// True if the name of an environment variable says that its value is a secret, and not where one lies.
/// The variables of the environment that their names show to be secrets, with their values.
pub(crate) fn probable_secrets() -> BTreeMap<String, String> {
    let texts =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.filter(|(name, value)| names_secret(name) && value.len() >= LEAST_GUESSED).collect()
}

fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let has_word = name.split('_').any(|word| SECRET_WORDS.contains(&word));
    let is_place = ["_FILE", "_PATH", "_DIR", "_URL"].iter().any(|end| name.ends_with(end));
    !is_place && (has_word || SECRET_ENDS.iter().any(|end| name.ends_with(end)))
}

/// The length from which on a text of base64 alone may be a histogram.
const HISTOGRAM: usize = 100;

/// The least length of a secret that is looked for in a histogram too. Ten letters stand in one by chance about once in
/// 10¹⁸ places; for a shorter secret, stars would damage what nobody wrote.
const LEAST_IN_HISTOGRAM: usize = 10;

/// True for a text that may be a histogram, and not something that a person or a system wrote.
fn may_be_histogram(text: &str) -> bool {
    text.len() >= HISTOGRAM && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
}

/// Reads the secrets that the study names.
///
/// # Errors
/// Every secret that is not there, or that cannot be kept out of a bundle.
pub(crate) fn read_secrets(study: &Study) -> Result<BTreeMap<String, Secret>, Vec<String>> {
    let (mut secrets, mut faults) = (BTreeMap::new(), Vec::new());
    for (name, source) in study.secrets() {
        match read_secret(&source) {
            Ok(secret) => drop(secrets.insert(name, secret)),
            Err(reason) => faults.push(format!("secret `{name}`: {reason}")),
        }
    }
    if faults.is_empty() { Ok(secrets) } else { Err(faults) }
}

fn read_secret(source: &SecretSource) -> Result<Secret, String> {
    let (text, place) = match source {
        SecretSource::Environment(name) => {
            let place = format!("the variable {name}");
            (std::env::var(name).map_err(|error| format!("failed to read {place}: {error}"))?, place)
        }
        SecretSource::File(path) => {
            let place = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|error| format!("failed to read {place}: {error}"))?;
            (text.trim_end_matches(['\r', '\n']).to_owned(), place)
        }
    };
    if text.chars().any(char::is_control) {
        return Err(format!("expected one line, found a line break or another control character in {place}"));
    }
    if text.len() < LEAST_LENGTH {
        return Err(format!(
            "expected {LEAST_LENGTH} characters or more, found {} in {place}: so short a text occurs by chance, and \
             could not be kept out of the bundle",
            text.len()
        ));
    }
    Ok(Secret(text))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::finished;
    use plimsoll_model::event::Second;
    use plimsoll_model::record::{ErrorKind, Interval, RecordedPhase, Tally};
    use plimsoll_model::sample::{ProcessSample, Samples};
    use plimsoll_model::units::Instant;
    use plimsoll_system::Launcher;
    use std::path::Path;

    #[test]
    fn names_of_variables_show_that_they_hold_secrets() {
        for name in ["GITHUB_TOKEN", "db_password", "STRIPE_API_KEY", "AWS_SECRET_ACCESS_KEY", "npm_config_token"] {
            assert!(names_secret(name), "{name}");
        }
        for name in ["PATH", "TOKEN_FILE", "SECRETS_DIR", "KEYBOARD", "AWS_ACCESS_KEY_ID", "SSH_AUTH_SOCK", "PASSAGE"] {
            assert!(!names_secret(name), "{name}");
        }
    }

    fn keys(secret: &str) -> Keys {
        let of_study = BTreeMap::from([("api_key".to_owned(), Secret(secret.to_owned()))]);
        Keys::new(of_study, BTreeSet::new())
    }

    #[test]
    fn a_secret_is_masked_in_whatever_text_an_event_has() {
        let keys = keys("s3/cr3t!");
        let event = |text: &str| Event::Warning { message: text.to_owned() };
        assert_eq!(keys.masked(&event("key s3/cr3t!, s3%2Fcr3t%21")), Some(event("key ********, ************")));
        assert_eq!(keys.masked(&event("nothing of that kind")), None);
        let named = |name: &str| {
            let mut recorded = Interval::default();
            let mut tally = Tally::default();
            tally.service.record(1_000).expect("in range");
            recorded.tallies.insert((RecordedPhase::Measure, Subject::Request(name.to_owned())), tally);
            Event::SecondPassed(Box::new(Second::of(1, 1, Instant(0), recorded)))
        };
        assert_eq!(keys.masked(&named("GET /?key=s3/cr3t!")), Some(named("GET /?key=********")));
        let long = "0123456789".repeat(12);
        assert_eq!(self::keys(&long).masked(&event(&long)), Some(event(&"*".repeat(120))));
        let histogram = event(&"key4".repeat(30));
        assert_eq!(self::keys("key4").masked(&histogram), None, "so short a text stands in a histogram by chance");
        // `user:s3/cr3t!` as Basic authorization: all but the letters that the secret shares with its neighbours.
        let basic = event("authorization: Basic dXNlcjpzMy9jcjN0IQ==");
        assert_eq!(keys.masked(&basic), Some(event("authorization: Basic dXNlcjp**********Q==")));
        let none = Keys::new(BTreeMap::new(), BTreeSet::new());
        assert_eq!(none.masked(&event("s3/cr3t!")), None);
    }

    /// A second in which a request of this name failed, with samples.
    fn second(name: &str) -> Event {
        let mut tally = Tally::default();
        tally.service.record(1_000).expect("in range");
        tally.errors.insert(ErrorKind::Timeout, 1);
        let mut recorded = Interval::default();
        recorded.tallies.insert((RecordedPhase::Measure, Subject::Request(name.to_owned())), tally.clone());
        recorded.tallies.insert((RecordedPhase::Measure, Subject::Iteration), tally);
        recorded.generator.users = 7;
        let system = ProcessSample { system: "api".to_owned(), threads: 5, ..ProcessSample::default() };
        let samples = Samples { processes: vec![system], ..Samples::default() };
        Event::SecondPassed(Box::new(Second { samples, ..Second::of(1, 1, Instant(0), recorded) }))
    }

    /// The results of a start on which a request of this name failed.
    fn results(name: &str) -> Event {
        let examples = BTreeMap::from([(ErrorKind::Timeout, format!("{name} took 9 s"))]);
        Event::ResultsComplete(Box::new(finished(|load| {
            load.replies.error_examples.insert(Subject::Request(name.to_owned()).to_string(), examples);
            load.others_elsewhere.insert("far".to_owned(), 0.5);
        })))
    }

    #[test]
    fn fields_and_kinds_stay_where_a_secret_is_a_part_of_their_names() {
        for secret in ["user", "load", "start", "time", "sample", "second", "replies", "examples", "summary"] {
            let (keys, stars) = (keys(secret), "*".repeat(secret.len()));
            let (name, masked) = (format!("GET /{secret}"), format!("GET /{stars}"));
            for event in [second, results] {
                assert_eq!(keys.masked(&event("GET /")), None, "{secret}");
                assert_eq!(keys.masked(&event(&name)), Some(event(&masked)), "{secret}");
            }
        }
    }

    #[test]
    fn a_secret_that_is_a_word_of_the_format_stays_there_alone() {
        for secret in ["iteration", "request", "valid", "measure"] {
            for event in [second, results] {
                let masked = self::keys(secret).masked(&event("GET /"));
                assert!(masked.is_none_or(|masked| masked == event("GET /")), "{secret}");
            }
        }
        for (secret, masked) in [("iteration", "GET /*********"), ("request", "GET /*******")] {
            for event in [second, results] {
                assert_eq!(keys(secret).masked(&event(&format!("GET /{secret}"))), Some(event(masked)), "{secret}");
            }
        }
    }

    #[test]
    fn of_a_secret_that_begins_with_another_nothing_stays() {
        let passwords = [("a", "hunter2"), ("b", "hunter2-and-more"), ("c", "hunter2")];
        let passwords = passwords.map(|(name, password)| (name.to_owned(), Secret(password.to_owned())));
        let keys = Keys { passwords: passwords.into(), ..Keys::new(BTreeMap::new(), BTreeSet::new()) };
        let secrets = keys.secrets(&Databases::new(&Launcher::of_this_program(&[]), Path::new("logs")));
        let mask = |text: String, secret: &String| text.replace(secret, &"*".repeat(secret.len()));
        assert_eq!(secrets.iter().fold("hunter2-and-more".to_owned(), mask), "*".repeat(16));
        assert_eq!(secrets.iter().filter(|secret| *secret == "hunter2").count(), 1, "{secrets:?}");
    }

    #[test]
    fn a_secret_that_cannot_be_kept_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let read = |text: &str| {
            std::fs::write(&path, text).expect("room");
            read_secret(&SecretSource::File(path.clone()))
        };
        assert_eq!(read("hunter2\n").map(|secret| secret.0), Ok("hunter2".to_owned()));
        assert!(read("abc").is_err_and(|reason| reason.contains("expected 4 characters or more, found 3")));
        assert!(read("one\ntwo").is_err_and(|reason| reason.contains("expected one line")));
        std::fs::remove_file(&path).expect("it is there");
        assert!(read_secret(&SecretSource::File(path)).is_err_and(|reason| reason.contains("failed to read")));
        let nowhere = SecretSource::Environment("PLIMSOLL_TEST_NO_SUCH_SECRET".to_owned());
        assert!(
            read_secret(&nowhere).is_err_and(|reason| reason.contains("the variable PLIMSOLL_TEST_NO_SUCH_SECRET"))
        );
    }
}
