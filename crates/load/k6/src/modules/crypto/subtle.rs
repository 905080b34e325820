//! `crypto.subtle`: hashes, signatures, encryption and keys, as <https://www.w3.org/TR/WebCryptoAPI> has them. What takes
//! long is computed at once, and the promise is settled when it is returned.

mod aes;
mod derive;
mod elliptic;
mod fault;
mod hash_name;
mod jwk;
mod key;
mod params;
mod rsa;
#[cfg(test)]
mod tests;

use super::random;
use crate::native::Native;
use crate::value::{Arg, TextArg, binary, buffer, instance, non_null, settled, thrown, wrong};
use aes::{Gcm, Mode};
use fault::Fault;
use hash_name::HashName;
use key::{Algorithm, CryptoKey, Derivation, EllipticScheme, Family, Material, RsaScheme};
use params::Params;
use rquickjs::function::Opt;
use rquickjs::{Class, Ctx, FromJs, IntoJs, Object, Promise, Result, Value};

/// Methods that are not supported.
const REFUSED: [&str; 2] = ["wrapKey", "unwrapKey"];

/// The object.
pub(super) fn subtle<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let subtle = Object::new(ctx.clone())?;
    subtle.native("digest", digest)?;
    subtle.native("sign", sign)?;
    subtle.native("verify", verify)?;
    subtle.native("encrypt", encrypt)?;
    subtle.native("decrypt", decrypt)?;
    subtle.native("importKey", import_key)?;
    subtle.native("exportKey", export_key)?;
    subtle.native("generateKey", generate_key)?;
    subtle.native("deriveBits", derive_bits)?;
    subtle.native("deriveKey", derive_key)?;
    for name in REFUSED {
        let refuse = move |ctx: Ctx<'js>| {
            settled(&ctx, |ctx| Err(thrown(ctx, format!("`crypto.subtle.{name}` is not supported here"))))
        };
        subtle.native(name, refuse)?;
    }
    Ok(subtle)
}

type Done<T> = std::result::Result<T, Fault>;

/// Throws a fault.
fn done<T>(ctx: &Ctx<'_>, done: Done<T>) -> Result<T> {
    done.map_err(|fault| fault.throw(ctx))
}

/// The bytes to work on; texts are refused.
fn source<'js>(ctx: &Ctx<'js>, data: &Value<'js>) -> Result<Vec<u8>> {
    binary(data)?.ok_or_else(|| wrong(ctx, "an ArrayBuffer or a view of one", data))
}

fn key_of<'js>(ctx: &Ctx<'js>, key: &Value<'js>) -> Result<Class<'js, CryptoKey>> {
    instance(key).ok_or_else(|| wrong(ctx, "a CryptoKey", key))
}

fn digest<'js>(ctx: Ctx<'js>, algorithm: Arg<'js>, data: Arg<'js>) -> Result<Promise<'js>> {
    settled(&ctx, |ctx| {
        let name = Params::read(ctx, &algorithm.0)?.name;
        buffer(ctx, done(ctx, HashName::parse(&name))?.digest(&source(ctx, &data.0)?))
    })
}

fn sign<'js>(ctx: Ctx<'js>, algorithm: Arg<'js>, key: Arg<'js>, data: Arg<'js>) -> Result<Promise<'js>> {
    settled(&ctx, |ctx| {
        let (params, key, data) = (Params::read(ctx, &algorithm.0)?, key_of(ctx, &key.0)?, source(ctx, &data.0)?);
        let key = key.borrow();
        done(ctx, key.check(done(ctx, Family::parse(&params.name))?, "sign"))?;
        let signed = match (&key.material, key.algorithm) {
            (Material::Secret(secret), Algorithm::Hmac(hash)) => Ok(hash.hmac(secret, &data)),
            (Material::CurvePrivate(private), Algorithm::Elliptic(_, curve)) => {
                elliptic::sign(curve, private, &params.hash(ctx)?.digest(&data))
            }
            (Material::RsaPrivate(private), Algorithm::Rsa(RsaScheme::Pss, hash)) => {
                rsa::sign_pss(private, hash, params.number(ctx, "saltLength")?.unwrap_or_default(), &data)
            }
            (Material::RsaPrivate(private), Algorithm::Rsa(_, hash)) => rsa::sign_pkcs1(private, hash, &data),
            _ => Err(Fault::access("the key cannot sign")),
        };
        buffer(ctx, done(ctx, signed)?)
    })
}

fn verify<'js>(
    ctx: Ctx<'js>,
    algorithm: Arg<'js>,
    key: Arg<'js>,
    signature: Arg<'js>,
    data: Arg<'js>,
) -> Result<Promise<'js>> {
    settled(&ctx, |ctx| {
        let (params, key) = (Params::read(ctx, &algorithm.0)?, key_of(ctx, &key.0)?);
        let (signature, data) = (source(ctx, &signature.0)?, source(ctx, &data.0)?);
        let key = key.borrow();
        done(ctx, key.check(done(ctx, Family::parse(&params.name))?, "verify"))?;
        let verified = match (&key.material, key.algorithm) {
            (Material::Secret(secret), Algorithm::Hmac(hash)) => Ok(hash.hmac(secret, &data) == signature),
            (Material::CurvePublic(public), Algorithm::Elliptic(_, curve)) => {
                elliptic::verify(curve, public, &params.hash(ctx)?.digest(&data), &signature)
            }
            (Material::RsaPublic(public), Algorithm::Rsa(RsaScheme::Pss, hash)) => {
                let salt = params.number(ctx, "saltLength")?.unwrap_or_default();
                Ok(rsa::verify_pss(public, hash, salt, &data, &signature))
            }
            (Material::RsaPublic(public), Algorithm::Rsa(_, hash)) => {
                Ok(rsa::verify_pkcs1(public, hash, &data, &signature))
            }
            _ => Err(Fault::access("the key cannot verify")),
        };
        done(ctx, verified)?.into_js(ctx)
    })
}

fn encrypt<'js>(ctx: Ctx<'js>, algorithm: Arg<'js>, key: Arg<'js>, data: Arg<'js>) -> Result<Promise<'js>> {
    crypt(&ctx, "encrypt", &algorithm.0, &key.0, &data.0)
}

fn decrypt<'js>(ctx: Ctx<'js>, algorithm: Arg<'js>, key: Arg<'js>, data: Arg<'js>) -> Result<Promise<'js>> {
    crypt(&ctx, "decrypt", &algorithm.0, &key.0, &data.0)
}

fn crypt<'js>(
    ctx: &Ctx<'js>,
    usage: &str,
    algorithm: &Value<'js>,
    key: &Value<'js>,
    data: &Value<'js>,
) -> Result<Promise<'js>> {
    settled(ctx, |ctx| {
        let (params, key, data) = (Params::read(ctx, algorithm)?, key_of(ctx, key)?, source(ctx, data)?);
        let key = key.borrow();
        done(ctx, key.check(done(ctx, Family::parse(&params.name))?, usage))?;
        let encrypts = usage == "encrypt";
        let crypted = match (&key.material, key.algorithm) {
            (Material::Secret(secret), Algorithm::Aes(mode)) => {
                let iv = params.needed_bytes(ctx, if mode == Mode::Ctr { "counter" } else { "iv" })?;
                match mode {
                    Mode::Cbc if encrypts => aes::encrypt_cbc(secret, &iv, &data),
                    Mode::Cbc => aes::decrypt_cbc(secret, &iv, &data),
                    Mode::Ctr => aes::apply_ctr(secret, &iv, &data),
                    Mode::Gcm => {
                        let additional = params.bytes(ctx, "additionalData")?.unwrap_or_default();
                        let gcm = Gcm { iv: &iv, additional: &additional, tag: params.tag_bytes(ctx)? };
                        if encrypts {
                            aes::encrypt_gcm(secret, &gcm, &data)
                        } else {
                            aes::decrypt_gcm(secret, &gcm, &data)
                        }
                    }
                }
            }
            (Material::RsaPublic(public), Algorithm::Rsa(_, hash)) => {
                rsa::encrypt(public, hash, &params.bytes(ctx, "label")?.unwrap_or_default(), &data)
            }
            (Material::RsaPrivate(private), Algorithm::Rsa(_, hash)) => {
                rsa::decrypt(private, hash, &params.bytes(ctx, "label")?.unwrap_or_default(), &data)
            }
            _ => Err(Fault::access(format!("the key cannot {usage}"))),
        };
        buffer(ctx, done(ctx, crypted)?)
    })
}

fn usages_of<'js>(ctx: &Ctx<'js>, usages: Option<Value<'js>>) -> Result<Vec<String>> {
    non_null(usages).map(|usages| Vec::from_js(ctx, usages)).transpose().map(Option::unwrap_or_default)
}

fn import_key<'js>(
    ctx: Ctx<'js>,
    format: TextArg,
    data: Arg<'js>,
    algorithm: Arg<'js>,
    extractable: Opt<bool>,
    usages: Opt<Value<'js>>,
) -> Result<Promise<'js>> {
    settled(&ctx, |ctx| {
        let (params, usages) = (Params::read(ctx, &algorithm.0)?, usages_of(ctx, usages.0)?);
        let algorithm = params.algorithm_of_key(ctx)?;
        let material = match format.0.as_str() {
            "jwk" => {
                let json = ctx.json_stringify(data.0.clone())?.map(|json| json.to_string()).transpose()?;
                let jwk = json.and_then(|json| serde_json::from_str(&json).ok());
                let Some(serde_json::Value::Object(jwk)) = jwk else {
                    return Err(wrong(ctx, "a JSON Web Key", &data.0));
                };
                let curve = if let Algorithm::Elliptic(_, curve) = algorithm { Some(curve) } else { None };
                jwk::read(&jwk, algorithm.family(), curve)
            }
            format => decoded(format, algorithm, &source(ctx, &data.0)?),
        };
        let key = material.and_then(|material| {
            must_have_fitting_length(&material, algorithm)?;
            CryptoKey::new(material, algorithm, extractable.0.unwrap_or_default(), usages)
        });
        Ok(Class::instance(ctx.clone(), done(ctx, key)?)?.into_value())
    })
}

/// The key in a format other than JSON.
fn decoded(format: &str, algorithm: Algorithm, data: &[u8]) -> Done<Material> {
    match (format, algorithm) {
        ("raw", Algorithm::Hmac(_) | Algorithm::Aes(_) | Algorithm::Derive(_)) => Ok(Material::Secret(data.to_vec())),
        ("raw", Algorithm::Elliptic(_, curve)) => elliptic::public_key(curve, data).map(Material::CurvePublic),
        ("spki", Algorithm::Elliptic(_, curve)) => elliptic::public_from_spki(curve, data).map(Material::CurvePublic),
        ("pkcs8", Algorithm::Elliptic(_, curve)) => {
            elliptic::private_from_pkcs8(curve, data).map(Material::CurvePrivate)
        }
        ("spki", Algorithm::Rsa(..)) => rsa::public_from_spki(data).map(Material::RsaPublic),
        ("pkcs8", Algorithm::Rsa(..)) => rsa::private_from_pkcs8(data).map(|key| Material::RsaPrivate(Box::new(key))),
        _ => Err(no_such_format(format, algorithm)),
    }
}

fn no_such_format(format: &str, algorithm: Algorithm) -> Fault {
    let name = algorithm.family().name();
    Fault::unsupported(format!("a key for {name} has no format `{format}`"))
}

fn must_have_fitting_length(material: &Material, algorithm: Algorithm) -> Done<()> {
    match (material, algorithm) {
        (Material::Secret(secret), Algorithm::Aes(_)) if !aes::is_key_length(secret.len()) => {
            let bits = secret.len() * 8;
            Err(Fault::data(format!("expected a key for AES of 128, 192 or 256 bits, found {bits}")))
        }
        (Material::Secret(secret), Algorithm::Hmac(_)) if secret.is_empty() => {
            Err(Fault::data("expected a key, found one without any bytes"))
        }
        _ => Ok(()),
    }
}

fn export_key<'js>(ctx: Ctx<'js>, format: TextArg, key: Arg<'js>) -> Result<Promise<'js>> {
    settled(&ctx, |ctx| {
        let key = key_of(ctx, &key.0)?;
        let key = key.borrow();
        if !key.extractable {
            return Err(Fault::access("the key was made without leave to export it").throw(ctx));
        }
        if format.0 == "jwk" {
            return ctx.json_parse(done(ctx, jwk::write(&key))?.to_string());
        }
        let encoded = match (format.0.as_str(), &key.material, key.algorithm) {
            ("raw", Material::Secret(secret), _) => Ok(secret.clone()),
            ("raw", Material::CurvePublic(public), _) => Ok(public.clone()),
            ("spki", Material::CurvePublic(public), Algorithm::Elliptic(_, curve)) => {
                elliptic::public_to_spki(curve, public)
            }
            ("pkcs8", Material::CurvePrivate(private), Algorithm::Elliptic(_, curve)) => {
                elliptic::private_to_pkcs8(curve, private)
            }
            ("spki", Material::RsaPublic(public), _) => rsa::public_to_spki(public),
            ("pkcs8", Material::RsaPrivate(private), _) => rsa::private_to_pkcs8(private),
            (format, material, algorithm) => {
                let (kind, name) = (material.kind(), algorithm.family().name());
                Err(Fault::unsupported(format!("a {kind} key for {name} has no format `{format}`")))
            }
        };
        buffer(ctx, done(ctx, encoded)?)
    })
}

fn generate_key<'js>(
    ctx: Ctx<'js>,
    algorithm: Arg<'js>,
    extractable: Opt<bool>,
    usages: Opt<Value<'js>>,
) -> Result<Promise<'js>> {
    settled(&ctx, |ctx| {
        let (params, usages) = (Params::read(ctx, &algorithm.0)?, usages_of(ctx, usages.0)?);
        let (algorithm, extractable) = (params.algorithm_of_key(ctx)?, extractable.0.unwrap_or_default());
        let materials = match algorithm {
            Algorithm::Elliptic(_, curve) => {
                let private = elliptic::generate(curve);
                [
                    Material::CurvePublic(done(ctx, elliptic::public_of(curve, &private))?),
                    Material::CurvePrivate(private),
                ]
            }
            Algorithm::Rsa(..) => {
                let bits = params.number(ctx, "modulusLength")?.unwrap_or_default();
                let private = done(ctx, rsa::generate(bits, &params.needed_bytes(ctx, "publicExponent")?))?;
                [Material::RsaPublic(private.to_public_key()), Material::RsaPrivate(Box::new(private))]
            }
            algorithm => {
                let secret = Material::Secret(random(ctx, params.bytes_of_key(ctx, algorithm)?)?);
                let key = done(ctx, CryptoKey::new(secret, algorithm, extractable, usages))?;
                return Ok(Class::instance(ctx.clone(), key)?.into_value());
            }
        };
        let [public, private] = done(ctx, CryptoKey::pair(materials, algorithm, extractable, &usages))?;
        let pair = Object::new(ctx.clone())?;
        pair.set("publicKey", Class::instance(ctx.clone(), public)?)?;
        pair.set("privateKey", Class::instance(ctx.clone(), private)?)?;
        Ok(pair.into_value())
    })
}

fn derive_bits<'js>(ctx: Ctx<'js>, algorithm: Arg<'js>, key: Arg<'js>, bits: Opt<Value<'js>>) -> Result<Promise<'js>> {
    settled(&ctx, |ctx| {
        let bits = non_null(bits.0).map(|bits| f64::from_js(ctx, bits)).transpose()?;
        let bytes = match bits {
            Some(bits) if bits < 8.0 || bits % 8.0 != 0.0 || bits > 1e6 => {
                return Err(
                    Fault::operation(format!("expected a multiple of 8 bits to derive, found {bits}")).throw(ctx)
                );
            }
            bits => bits.map(|bits| bits as usize / 8),
        };
        buffer(ctx, derived(ctx, &algorithm.0, &key.0, "deriveBits", bytes)?)
    })
}

fn derive_key<'js>(
    ctx: Ctx<'js>,
    algorithm: Arg<'js>,
    key: Arg<'js>,
    derived_algorithm: Arg<'js>,
    extractable: Opt<bool>,
    usages: Opt<Value<'js>>,
) -> Result<Promise<'js>> {
    settled(&ctx, |ctx| {
        let (params, usages) = (Params::read(ctx, &derived_algorithm.0)?, usages_of(ctx, usages.0)?);
        let new = params.algorithm_of_key(ctx)?;
        let bytes = params.bytes_of_key(ctx, new)?;
        let secret = Material::Secret(derived(ctx, &algorithm.0, &key.0, "deriveKey", Some(bytes))?);
        let key = CryptoKey::new(secret, new, extractable.0.unwrap_or_default(), usages);
        Ok(Class::instance(ctx.clone(), done(ctx, key)?)?.into_value())
    })
}

/// Bytes that are derived from a key: `length` of them, or as many as there are.
fn derived<'js>(
    ctx: &Ctx<'js>,
    algorithm: &Value<'js>,
    key: &Value<'js>,
    usage: &str,
    length: Option<usize>,
) -> Result<Vec<u8>> {
    let (params, key) = (Params::read(ctx, algorithm)?, key_of(ctx, key)?);
    let key = key.borrow();
    done(ctx, key.check(done(ctx, Family::parse(&params.name))?, usage))?;
    let needed = || length.ok_or_else(|| Fault::operation("expected the number of bits to derive, found none"));
    let bits = match (&key.material, key.algorithm) {
        (Material::Secret(secret), Algorithm::Derive(derivation)) => {
            let (hash, salt, length) = (params.hash(ctx)?, params.needed_bytes(ctx, "salt")?, done(ctx, needed())?);
            match derivation {
                Derivation::Pbkdf2 => {
                    let rounds = params.number(ctx, "iterations")?.unwrap_or_default();
                    derive::pbkdf2(hash, secret, &salt, u32::try_from(rounds).unwrap_or(u32::MAX), length)
                }
                Derivation::Hkdf => derive::hkdf(hash, secret, &salt, &params.needed_bytes(ctx, "info")?, length),
            }
        }
        (Material::CurvePrivate(private), Algorithm::Elliptic(EllipticScheme::Ecdh, curve)) => {
            let other = key_of(ctx, &params.value(ctx, "public")?)?;
            let other = other.borrow();
            let (Material::CurvePublic(public), true) = (&other.material, other.algorithm == key.algorithm) else {
                return Err(Fault::access("expected a public key for ECDH on the same curve as `public`").throw(ctx));
            };
            elliptic::shared_secret(curve, private, public).and_then(|secret| match length {
                None => Ok(secret),
                Some(length) if length <= secret.len() => Ok(secret[..length].to_vec()),
                Some(length) => Err(Fault::operation(format!("ECDH gives {} bytes, not {length}", secret.len()))),
            })
        }
        _ => Err(Fault::access("nothing can be derived from the key")),
    };
    done(ctx, bits)
}
