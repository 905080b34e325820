//! Secrets of a script: the sources from which it reads them by `k6/secrets`, and the masking of those that it has read.

use memchr::memmem;
use plimsoll_web::encodings;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// The name of the source that scripts read from if they name none.
pub(crate) const DEFAULT: &str = "default";

/// What stands in place of a secret, as in k6.
const MASK: &str = "***SECRET_REDACTED***";

/// The kinds of sources.
const KINDS: &str = "`file=PATH` and `mock=NAME=VALUE,…`";

/// Names and values of one source.
type Source = Arc<BTreeMap<String, String>>;

/// The sources of secrets of a run.
#[derive(Debug, Default)]
pub struct Secrets {
    sources: BTreeMap<String, Source>,
    /// The texts of secrets that a script has read, longest first.
    read: RwLock<Vec<String>>,
}

/// Why there is no secret of a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretFault {
    /// The run has no sources.
    #[error("no secret sources are configured: expected `--secret-source`")]
    NoSources,
    /// There is no source of this name.
    #[error("no secret source with name \"{0}\" is configured")]
    NoSource(String),
    /// The source has no secret of this name.
    #[error("no value: the secret source \"{from}\" has no secret `{name}`")]
    NoValue {
        /// The source.
        from: String,
        /// The name.
        name: String,
    },
}

impl Secrets {
    /// Reads the sources that the command line names, such as `file=secrets.txt` and `mock=name=own,token=abc`.
    ///
    /// # Errors
    /// One of them has no known kind, a file cannot be read or has a line without `=`, or two have the same name.
    pub fn configured(texts: &[String], read_file: impl Fn(&Path) -> io::Result<String>) -> Result<Secrets, String> {
        let mut sources = BTreeMap::new();
        for text in texts {
            let Setting { kind, name, is_default, content } = Setting::parse(text);
            let at_fault = |why: String| format!("`--secret-source {text}`: {why}");
            let pairs: Result<BTreeMap<_, _>, String> = match kind {
                "mock" => content.split(',').filter(|pair| !pair.is_empty()).map(pair).collect(),
                "file" => {
                    let path = content.strip_prefix("filename=").unwrap_or(&content);
                    let lines = read_file(Path::new(path)).map_err(|why| format!("failed to read {path}: {why}"));
                    lines.and_then(|lines| lines.lines().filter(|line| !line.is_empty()).map(pair).collect())
                }
                other => Err(format!("expected one of the kinds {KINDS}, found `{other}`")),
            };
            let source: Source = Arc::new(pairs.map_err(at_fault)?);
            let names = std::iter::once(name).chain(is_default.then(|| DEFAULT.to_owned()));
            for name in names {
                if sources.insert(name.clone(), Arc::clone(&source)).is_some() {
                    return Err(at_fault(format!("expected one source of the name `{name}`, found two")));
                }
            }
        }
        if sources.len() == 1 {
            let only = sources.values().next().map(Arc::clone);
            sources.extend(only.map(|only| (DEFAULT.to_owned(), only)));
        }
        Ok(Secrets { sources, read: RwLock::default() })
    }

    /// Sources with these names.
    #[must_use]
    pub fn of(sources: impl IntoIterator<Item = (String, BTreeMap<String, String>)>) -> Secrets {
        let sources = sources.into_iter().map(|(name, pairs)| (name, Arc::new(pairs))).collect();
        Secrets { sources, read: RwLock::default() }
    }

    /// All sources by name, with their secrets.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &BTreeMap<String, String>)> {
        self.sources.iter().map(|(name, source)| (name.as_str(), &**source))
    }

    /// Masks all secrets from now on, as if a script had read them: one elsewhere may.
    pub fn mask_all(&self) {
        let sources: BTreeSet<&String> = self.sources.values().flat_map(|source| source.values()).collect();
        sources.into_iter().for_each(|value| self.mask(value));
    }

    /// The secret of a name, which is masked from now on.
    ///
    /// # Errors
    /// There is none.
    pub fn get(&self, source: &str, name: &str) -> Result<String, SecretFault> {
        if self.sources.is_empty() {
            return Err(SecretFault::NoSources);
        }
        let found = self.sources.get(source).ok_or_else(|| SecretFault::NoSource(source.to_owned()))?;
        let value = found.get(name).ok_or_else(|| SecretFault::NoValue { from: source.into(), name: name.into() })?;
        self.mask(value);
        Ok(value.clone())
    }

    fn mask(&self, value: &str) {
        if value.trim().is_empty() {
            return;
        }
        let mut read = self.read.write().unwrap_or_else(PoisonError::into_inner);
        let all: BTreeSet<String> = read.drain(..).chain(encodings(value)).collect();
        read.extend(all);
        // A text inside another one would leave the rest of that one to be seen.
        read.sort_by_key(|text| std::cmp::Reverse(text.len()));
    }

    /// A text without the secrets that a script has read: neither as they are nor percent-encoded, as in JSON or in base64.
    #[must_use]
    pub fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
        let mut masked = Cow::Borrowed(text);
        for secret in read.iter().filter(|secret| text.contains(secret.as_str())) {
            masked = masked.replace(secret.as_str(), MASK).into();
        }
        masked
    }

    /// Bytes, which need be no text, with stars in place of the secrets.
    #[must_use]
    pub fn masked_bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
        let mut masked = Cow::Borrowed(bytes);
        for secret in read.iter() {
            if let Some(replaced) = replaced(&masked, secret.as_bytes()) {
                masked = replaced.into();
            }
        }
        masked
    }
}

/// The bytes with the mask in place of each `secret`, which is not empty; none if there is no such place.
fn replaced(bytes: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
    let mut places = memmem::find_iter(bytes, secret).peekable();
    places.peek()?;
    let (mut masked, mut done) = (Vec::with_capacity(bytes.len()), 0);
    for at in places {
        masked.extend_from_slice(&bytes[done..at]);
        masked.extend_from_slice(MASK.as_bytes());
        done = at + secret.len();
    }
    masked.extend_from_slice(&bytes[done..]);
    Some(masked)
}

/// One source as the command line names it: `mock=name=own,default,token=abc`.
struct Setting<'t> {
    kind: &'t str,
    name: String,
    is_default: bool,
    /// What belongs to the kind.
    content: String,
}

impl Setting<'_> {
    fn parse(text: &str) -> Setting<'_> {
        let (kind, rest) = text.split_once('=').unwrap_or((text, ""));
        let (mut name, mut is_default, mut content) = (kind.to_owned(), false, Vec::new());
        for part in rest.split(',') {
            match part.split_once('=') {
                None if part == DEFAULT => is_default = true,
                Some(("name", given)) => given.clone_into(&mut name),
                _ => content.push(part),
            }
        }
        Setting { kind, name, is_default, content: content.join(",") }
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    // The text may be a secret.
    pair.ok_or_else(|| "expected `NAME=VALUE`, found a secret without `=`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(texts: &[&str]) -> Result<Secrets, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        Secrets::configured(&texts, |path| match path.to_str() {
            Some("secrets.txt") => Ok("token=abc=def\n\nuser=ann\n".to_owned()),
            Some("bad.txt") => Ok("token=abc\nhunter2\n".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        })
    }

    #[test]
    fn sources_are_named_as_in_k6() {
        let get = |texts: &[&str], source: &str, name: &str| {
            configured(texts).expect("fine sources").get(source, name).map_err(|fault| fault.to_string())
        };
        for (texts, source, name, value) in [
            (&["mock=cool=1,other=2"][..], "default", "other", "2"),
            (&["mock=cool=1"], "mock", "cool", "1"),
            (&["file=secrets.txt"], "default", "token", "abc=def"),
            (&["file=name=own,filename=secrets.txt"], "own", "user", "ann"),
            (&["mock=name=one,a=1", "mock=name=two,default,a=2"], "default", "a", "2"),
            (&["mock=name=one,a=1", "mock=name=two,default,a=2"], "one", "a", "1"),
        ] {
            assert_eq!(get(texts, source, name).as_deref(), Ok(value), "{texts:?}");
        }
        for (texts, source, name, why) in [
            (&[][..], "default", "a", "no secret sources are configured"),
            (&["mock=a=1"], "other", "a", "no secret source with name \"other\""),
            (&["mock=a=1"], "default", "b", "has no secret `b`"),
            (&["mock=name=x,a=1", "mock=name=y,a=2"], "default", "a", "no secret source with name \"default\""),
        ] {
            let fault = get(texts, source, name).expect_err("no secret");
            assert!(fault.contains(why), "{texts:?}: {fault}");
        }
    }

    #[test]
    fn wrong_sources_are_refused_and_show_no_secret() {
        for (texts, why) in [
            (&["vault=x"][..], "found `vault`"),
            (&["file=none.txt"], "failed to read none.txt"),
            (&["file=bad.txt"], "without `=`"),
            (&["mock=a=1", "mock=b=2"], "of the name `mock`, found two"),
            (&["mock=name=a,default,b=1", "mock=name=c,default,d=2"], "of the name `default`, found two"),
        ] {
            let refused = configured(texts).map(|_| ()).expect_err("it is wrong");
            assert!(refused.contains(why) && !refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn what_a_script_has_read_is_masked_in_every_encoding() {
        let secrets = configured(&["mock=a=p@ss\"word,b=unread,c= "]).expect("a source");
        let shown = ["p@ss\"word", "p%40ss%22word", r#"p@ss\"word"#, "Basic YW5uOnBAc3Mid29yZA==", "unread"];
        assert_eq!(shown.map(|text| secrets.masked(text).into_owned()), shown, "nothing is read");
        for name in ["a", "c"] {
            secrets.get("default", name).expect("a secret");
        }
        let masked = shown.map(|text| secrets.masked(text).into_owned());
        assert_eq!(masked[..3], [MASK; 3]);
        assert!(masked[3].contains(MASK) && !masked[3].contains("BAc3Mid29y"), "{masked:?}");
        assert_eq!(masked[4], "unread");
        assert_eq!(secrets.masked("a b c"), "a b c", "a blank secret masks nothing");
        let bytes = |text: &[u8]| [&[0xff][..], text, &[0xfe], text, &[0]].concat();
        assert_eq!(*secrets.masked_bytes(&bytes(b"p@ss\"word")), *bytes(MASK.as_bytes()));
        assert_eq!(*secrets.masked_bytes(&bytes(b"unread")), *bytes(b"unread"));
    }
}
