//! `CryptoKey`: what kind of key it is, for which algorithm, and what may be done with it.

use super::aes::Mode;
use super::elliptic::Curve;
use super::fault::Fault;
use super::hash_name::HashName;
use super::rsa::public_numbers;
use ::rsa::traits::PublicKeyParts;
use ::rsa::{PrivateKey, PublicKey};
use rquickjs::class::Trace;
use rquickjs::{Ctx, IntoJs, JsLifetime, Object, Result, TypedArray};

/// The algorithm that a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Hmac(HashName),
    Aes(Mode),
    Rsa(RsaScheme, HashName),
    Elliptic(EllipticScheme, Curve),
    /// A secret from which bits are derived.
    Derive(Derivation),
}

/// What RSA is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RsaScheme {
    Oaep,
    Pss,
    Pkcs1,
}

/// What a curve is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EllipticScheme {
    Ecdsa,
    Ecdh,
}

/// How bits are derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Derivation {
    Pbkdf2,
    Hkdf,
}

/// The name of an algorithm, without what else there is to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Hmac,
    Aes(Mode),
    Rsa(RsaScheme),
    Elliptic(EllipticScheme),
    Derive(Derivation),
}

impl Family {
    const ALL: [(Family, &str); 11] = [
        (Family::Hmac, "HMAC"),
        (Family::Aes(Mode::Cbc), "AES-CBC"),
        (Family::Aes(Mode::Ctr), "AES-CTR"),
        (Family::Aes(Mode::Gcm), "AES-GCM"),
        (Family::Rsa(RsaScheme::Oaep), "RSA-OAEP"),
        (Family::Rsa(RsaScheme::Pss), "RSA-PSS"),
        (Family::Rsa(RsaScheme::Pkcs1), "RSASSA-PKCS1-v1_5"),
        (Family::Elliptic(EllipticScheme::Ecdsa), "ECDSA"),
        (Family::Elliptic(EllipticScheme::Ecdh), "ECDH"),
        (Family::Derive(Derivation::Pbkdf2), "PBKDF2"),
        (Family::Derive(Derivation::Hkdf), "HKDF"),
    ];

    pub(super) fn parse(name: &str) -> std::result::Result<Family, Fault> {
        let found = Family::ALL.into_iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
        found.map(|(family, _)| family).ok_or_else(|| {
            let known: Vec<&str> = Family::ALL.iter().map(|(_, name)| *name).collect();
            Fault::unsupported(format!("the algorithm `{name}` is not supported here: there are {}", known.join(", ")))
        })
    }

    pub(super) fn name(self) -> &'static str {
        let found = Family::ALL.into_iter().find(|(family, _)| *family == self);
        found.map_or("", |(_, name)| name)
    }
}

impl Algorithm {
    pub(super) fn family(self) -> Family {
        match self {
            Algorithm::Hmac(_) => Family::Hmac,
            Algorithm::Aes(mode) => Family::Aes(mode),
            Algorithm::Rsa(scheme, _) => Family::Rsa(scheme),
            Algorithm::Elliptic(scheme, _) => Family::Elliptic(scheme),
            Algorithm::Derive(derivation) => Family::Derive(derivation),
        }
    }
}

/// The key itself.
#[derive(Clone, Debug)]
pub(super) enum Material {
    Secret(Vec<u8>),
    RsaPublic(PublicKey),
    RsaPrivate(Box<PrivateKey>),
    /// A point, uncompressed.
    CurvePublic(Vec<u8>),
    /// A scalar.
    CurvePrivate(Vec<u8>),
}

impl Material {
    /// `secret`, `public` or `private`.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Material::Secret(_) => "secret",
            Material::RsaPublic(_) | Material::CurvePublic(_) => "public",
            Material::RsaPrivate(_) | Material::CurvePrivate(_) => "private",
        }
    }

    /// The usages that a key of this kind may have.
    fn possible_usages(&self, family: Family) -> &'static [&'static str] {
        let is_public = self.kind() == "public";
        match family {
            Family::Hmac => &["sign", "verify"],
            Family::Aes(_) => &["encrypt", "decrypt", "wrapKey", "unwrapKey"],
            Family::Derive(_) => &["deriveKey", "deriveBits"],
            Family::Rsa(RsaScheme::Oaep) if is_public => &["encrypt", "wrapKey"],
            Family::Rsa(RsaScheme::Oaep) => &["decrypt", "unwrapKey"],
            Family::Elliptic(EllipticScheme::Ecdh) if is_public => &[],
            Family::Elliptic(EllipticScheme::Ecdh) => &["deriveKey", "deriveBits"],
            Family::Rsa(_) | Family::Elliptic(EllipticScheme::Ecdsa) if is_public => &["verify"],
            Family::Rsa(_) | Family::Elliptic(EllipticScheme::Ecdsa) => &["sign"],
        }
    }
}

/// A key.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(super) struct CryptoKey {
    #[qjs(skip_trace)]
    pub(super) material: Material,
    #[qjs(skip_trace)]
    pub(super) algorithm: Algorithm,
    #[qjs(skip_trace)]
    pub(super) extractable: bool,
    #[qjs(skip_trace)]
    pub(super) usages: Vec<String>,
}

impl CryptoKey {
    /// A key that may be used for `usages`.
    pub(super) fn new(
        material: Material,
        algorithm: Algorithm,
        extractable: bool,
        usages: Vec<String>,
    ) -> std::result::Result<CryptoKey, Fault> {
        let possible = material.possible_usages(algorithm.family());
        if let Some(wrong) = usages.iter().find(|usage| !possible.contains(&usage.as_str())) {
            let (kind, name) = (material.kind(), algorithm.family().name());
            return Err(Fault::syntax(format!(
                "a {kind} key for {name} has the usages {}, found `{wrong}`",
                quoted(possible)
            )));
        }
        if usages.is_empty() && material.kind() != "public" {
            return Err(Fault::syntax(format!("expected usages of the key out of {}, found none", quoted(possible))));
        }
        Ok(CryptoKey { material, algorithm, extractable, usages })
    }

    /// Both keys of a pair, each with those of the usages that it may have.
    pub(super) fn pair(
        [public, private]: [Material; 2],
        algorithm: Algorithm,
        extractable: bool,
        usages: &[String],
    ) -> std::result::Result<[CryptoKey; 2], Fault> {
        let family = algorithm.family();
        let [of_public, of_private] = [&public, &private].map(|material| material.possible_usages(family));
        let of = |possible: &[&str]| -> Vec<String> {
            usages.iter().filter(|usage| possible.contains(&usage.as_str())).cloned().collect()
        };
        if let Some(wrong) = usages.iter().find(|usage| ![of_public, of_private].concat().contains(&usage.as_str())) {
            return Err(Fault::syntax(format!("a key for {} has no usage `{wrong}`", family.name())));
        }
        Ok([
            CryptoKey::new(public, algorithm, true, of(of_public))?,
            CryptoKey::new(private, algorithm, extractable, of(of_private))?,
        ])
    }

    /// Fails unless the key is for this algorithm and usage.
    pub(super) fn check(&self, family: Family, usage: &str) -> std::result::Result<(), Fault> {
        let own = self.algorithm.family();
        if own != family {
            let (own, other) = (own.name(), family.name());
            return Err(Fault::access(format!("the key is for {own}, and not for {other}")));
        }
        if !self.usages.iter().any(|known| known == usage) {
            return Err(Fault::access(format!("the key was made without the usage `{usage}`")));
        }
        Ok(())
    }
}

/// Texts in quotation marks, with commas between them.
fn quoted(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("`{text}`")).collect();
    if quoted.is_empty() { "that are none".to_owned() } else { quoted.join(", ") }
}

#[rquickjs::methods]
impl CryptoKey {
    #[qjs(get, enumerable, rename = "type")]
    fn kind(&self) -> &'static str {
        self.material.kind()
    }

    #[qjs(get, enumerable)]
    fn extractable(&self) -> bool {
        self.extractable
    }

    #[qjs(get, enumerable)]
    fn usages(&self) -> Vec<String> {
        self.usages.clone()
    }

    #[qjs(get, enumerable)]
    fn algorithm<'js>(&self, ctx: Ctx<'js>) -> Result<Object<'js>> {
        let object = Object::new(ctx.clone())?;
        object.set("name", self.algorithm.family().name())?;
        if let Algorithm::Hmac(hash) | Algorithm::Rsa(_, hash) = self.algorithm {
            let named = Object::new(ctx.clone())?;
            named.set("name", hash.name())?;
            object.set("hash", named)?;
        }
        if let Algorithm::Elliptic(_, curve) = self.algorithm {
            object.set("namedCurve", curve.name())?;
        }
        match (&self.material, self.algorithm) {
            (Material::Secret(secret), Algorithm::Hmac(_) | Algorithm::Aes(_)) => {
                object.set("length", secret.len() * 8)?;
            }
            (Material::RsaPublic(key), _) => describe_modulus(&ctx, &object, key)?,
            (Material::RsaPrivate(key), _) => describe_modulus(&ctx, &object, key.as_public_key())?,
            _ => {}
        }
        Ok(object)
    }
}

fn describe_modulus<'js>(ctx: &Ctx<'js>, object: &Object<'js>, key: &PublicKey) -> Result<()> {
    object.set("modulusLength", key.size() * 8)?;
    let [_, exponent] = public_numbers(key);
    object.set("publicExponent", TypedArray::<u8>::new(ctx.clone(), exponent)?.into_js(ctx)?)
}
