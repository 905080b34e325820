//! Keys of the global `crypto`: secrets for HMAC.

use super::hash;
use crate::modules::encoding;
use crate::value::{self, non_null, thrown};
use rquickjs::class::Trace;
use rquickjs::{Array, Ctx, Exception, JsLifetime, Object, Result, Value};

/// The hashes of the global `crypto`: their names there and in `k6/crypto`, and the length of a block in bytes.
const HASHES: [(&str, &str, usize); 4] =
    [("SHA-1", "sha1", 64), ("SHA-256", "sha256", 64), ("SHA-384", "sha384", 128), ("SHA-512", "sha512", 128)];

/// The usages of keys for HMAC.
const USAGES: [&str; 2] = ["sign", "verify"];

/// One of the hashes.
#[derive(Clone, Copy, Debug)]
pub(super) struct HashName {
    /// `SHA-256`
    web: &'static str,
    /// `sha256`
    k6: &'static str,
    /// Bytes of a block.
    block: usize,
}

impl HashName {
    /// The hash of an algorithm, which is a text or an object with a `name`.
    pub(super) fn read<'js>(ctx: &Ctx<'js>, algorithm: &Value<'js>) -> Result<HashName> {
        let name = name_of(ctx, algorithm)?;
        let found = HASHES.into_iter().find(|(web, ..)| web.eq_ignore_ascii_case(&name));
        let hash = found.map(|(web, k6, block)| HashName { web, k6, block });
        hash.ok_or_else(|| unsupported(ctx, &name, "SHA-1, SHA-256, SHA-384 and SHA-512"))
    }

    /// The hash of these bytes.
    pub(super) fn digest(self, data: &[u8]) -> Vec<u8> {
        let mut hash = hash::hash(self.k6).expect("each has its name there");
        hash.update(data);
        hash.value()
    }
}

/// The name of an algorithm.
fn name_of<'js>(ctx: &Ctx<'js>, algorithm: &Value<'js>) -> Result<String> {
    let name = match algorithm.as_object() {
        Some(object) => object.get("name")?,
        None => algorithm.clone(),
    };
    name.as_string()
        .map_or_else(|| Err(value::wrong(ctx, "the name of an algorithm", &name)), rquickjs::String::to_string)
}

/// Fails unless the algorithm is HMAC.
pub(super) fn check_hmac<'js>(ctx: &Ctx<'js>, algorithm: &Value<'js>) -> Result<()> {
    let name = name_of(ctx, algorithm)?;
    if name.eq_ignore_ascii_case("HMAC") { Ok(()) } else { Err(unsupported(ctx, &name, "HMAC with SHA")) }
}

fn unsupported(ctx: &Ctx<'_>, name: &str, there: &str) -> rquickjs::Error {
    Exception::throw_type(ctx, &format!("the algorithm `{name}` is not supported here: there are {there}"))
}

/// A secret for HMAC.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(super) struct CryptoKey {
    #[qjs(skip_trace)]
    secret: Vec<u8>,
    #[qjs(skip_trace)]
    hash: HashName,
    extractable: bool,
    #[qjs(skip_trace)]
    usages: Vec<&'static str>,
}

#[rquickjs::methods]
impl CryptoKey {
    #[qjs(get, rename = "type")]
    fn kind(&self) -> &'static str {
        "secret"
    }

    #[qjs(get)]
    fn extractable(&self) -> bool {
        self.extractable
    }

    #[qjs(get)]
    fn usages(&self) -> Vec<&'static str> {
        self.usages.clone()
    }

    #[qjs(get)]
    fn algorithm<'js>(&self, ctx: Ctx<'js>) -> Result<Object<'js>> {
        let hash = Object::new(ctx.clone())?;
        hash.set("name", self.hash.web)?;
        let algorithm = Object::new(ctx)?;
        algorithm.set("name", "HMAC")?;
        algorithm.set("hash", hash)?;
        algorithm.set("length", self.secret.len() * 8)?;
        Ok(algorithm)
    }
}

/// The format of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Its bytes.
    Raw,
    /// An object with its bytes in base64.
    Jwk,
}

impl Format {
    pub(super) fn read(ctx: &Ctx<'_>, name: &str) -> Result<Format> {
        match name {
            "raw" => Ok(Format::Raw),
            "jwk" => Ok(Format::Jwk),
            _ => Err(unsupported_format(ctx, name)),
        }
    }
}

fn unsupported_format(ctx: &Ctx<'_>, name: &str) -> rquickjs::Error {
    thrown(ctx, format!("the key format `{name}` is not supported here: there are `raw` and `jwk`"))
}

impl CryptoKey {
    /// Imports a key.
    pub(super) fn import<'js>(
        ctx: &Ctx<'js>,
        format: Format,
        data: &Value<'js>,
        algorithm: &Value<'js>,
        extractable: bool,
        usages: &Array<'js>,
    ) -> Result<CryptoKey> {
        check_hmac(ctx, algorithm)?;
        let secret = match (format, data.as_object()) {
            (Format::Raw, _) => {
                value::binary(data)?.ok_or_else(|| value::wrong(ctx, "an ArrayBuffer or a view of one", data))?
            }
            (Format::Jwk, Some(jwk)) => secret_of(ctx, jwk)?,
            (Format::Jwk, None) => return Err(value::wrong(ctx, "a JSON Web Key", data)),
        };
        if secret.is_empty() {
            return Err(thrown(ctx, "expected a key, found one without any bytes"));
        }
        let hash = HashName::read(ctx, &hash_in(ctx, algorithm)?)?;
        Ok(CryptoKey { secret, hash, extractable, usages: usages_of(ctx, usages)? })
    }

    /// A new key: as long as a block of its hash, or with as many bits as the algorithm says.
    pub(super) fn generate<'js>(
        ctx: &Ctx<'js>,
        algorithm: &Value<'js>,
        extractable: bool,
        usages: &Array<'js>,
    ) -> Result<CryptoKey> {
        check_hmac(ctx, algorithm)?;
        let hash = HashName::read(ctx, &hash_in(ctx, algorithm)?)?;
        let bits = algorithm.get::<Object<'js>>()?.get::<_, Value<'js>>("length")?;
        let bytes = match non_null(Some(bits)).map(|bits| bits.as_number()) {
            None => hash.block,
            Some(Some(bits)) if (8.0..65_536.0).contains(&bits) && bits % 8.0 == 0.0 => bits as usize / 8,
            Some(_) => return Err(thrown(ctx, "expected a length of 8 to 65528 bits, in bytes")),
        };
        Ok(CryptoKey { secret: super::random(ctx, bytes)?, hash, extractable, usages: usages_of(ctx, usages)? })
    }

    /// Exports the key.
    pub(super) fn export<'js>(&self, ctx: &Ctx<'js>, format: Format) -> Result<Value<'js>> {
        if !self.extractable {
            return Err(thrown(ctx, "the key was made without leave to export it"));
        }
        if format == Format::Raw {
            return value::buffer(ctx, self.secret.clone());
        }
        let jwk = Object::new(ctx.clone())?;
        jwk.set("kty", "oct")?;
        jwk.set("k", encoding::encode(&self.secret, "rawurl"))?;
        jwk.set("alg", self.hash.web.replace("SHA-", "HS"))?;
        jwk.set("ext", true)?;
        jwk.set("key_ops", self.usages.clone())?;
        Ok(jwk.into_value())
    }

    /// The signature of these bytes.
    pub(super) fn sign(&self, ctx: &Ctx<'_>, usage: &str, data: &[u8]) -> Result<Vec<u8>> {
        if !self.usages.contains(&usage) {
            return Err(thrown(ctx, format!("the key was made without the usage `{usage}`")));
        }
        let mut hmac = hash::hmac(self.hash.k6, &self.secret).expect("each has its name there");
        hmac.update(data);
        Ok(hmac.value())
    }
}

fn hash_in<'js>(ctx: &Ctx<'js>, algorithm: &Value<'js>) -> Result<Value<'js>> {
    match algorithm.as_object() {
        Some(object) => object.get("hash"),
        None => Err(value::wrong(ctx, "an algorithm with its `hash`", algorithm)),
    }
}

fn secret_of(ctx: &Ctx<'_>, jwk: &Object<'_>) -> Result<Vec<u8>> {
    let kind: Option<String> = jwk.get("kty")?;
    if kind.as_deref() != Some("oct") {
        return Err(thrown(ctx, "expected a JSON Web Key of the type (`kty`) `oct`"));
    }
    let key: String = jwk.get("k")?;
    encoding::decode(key.as_bytes(), "rawurl").map_err(|fault| thrown(ctx, fault))
}

fn usages_of(ctx: &Ctx<'_>, usages: &Array<'_>) -> Result<Vec<&'static str>> {
    let known = |name: String| {
        let found = USAGES.into_iter().find(|usage| *usage == name);
        found.ok_or_else(|| thrown(ctx, format!("expected the key usages `sign` and `verify`, found `{name}`")))
    };
    let read: Vec<_> = usages.iter::<String>().map(|name| known(name?)).collect::<Result<_>>()?;
    if read.is_empty() { Err(thrown(ctx, "expected the usages of the key, found none")) } else { Ok(read) }
}
