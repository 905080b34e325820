//! Algorithms as scripts name them: `"HMAC"`, `{ name: "AES-GCM", iv }`.

use super::aes::is_key_length;
use super::elliptic::Curve;
use super::fault::Fault;
use super::hash_name::HashName;
use super::key::{Algorithm, Family};
use super::{done, source};
use crate::value::{non_null, wrong};
use rquickjs::{Coerced, Ctx, FromJs, Object, Result, Value};

/// The most bits of a key for HMAC that is made.
const MOST_BITS: usize = 65_528;

/// The name of an algorithm, and its parameters.
pub(super) struct Params<'js> {
    pub(super) name: String,
    object: Option<Object<'js>>,
}

impl<'js> Params<'js> {
    pub(super) fn read(ctx: &Ctx<'js>, algorithm: &Value<'js>) -> Result<Params<'js>> {
        let object = algorithm.as_object().cloned();
        let name = match &object {
            Some(object) => object.get("name")?,
            None => algorithm.clone(),
        };
        match name.as_string() {
            Some(name) => Ok(Params { name: name.to_string()?, object }),
            None => Err(wrong(ctx, "the name of an algorithm", &name)),
        }
    }

    /// A parameter; `undefined` if it is missing.
    pub(super) fn value(&self, ctx: &Ctx<'js>, name: &str) -> Result<Value<'js>> {
        self.object.as_ref().map_or_else(|| Ok(Value::new_undefined(ctx.clone())), |object| object.get(name))
    }

    pub(super) fn bytes(&self, ctx: &Ctx<'js>, name: &str) -> Result<Option<Vec<u8>>> {
        non_null(Some(self.value(ctx, name)?)).map(|value| source(ctx, &value)).transpose()
    }

    pub(super) fn needed_bytes(&self, ctx: &Ctx<'js>, name: &str) -> Result<Vec<u8>> {
        let missing = || Fault::operation(format!("expected `{name}` in the algorithm {}", self.name)).throw(ctx);
        self.bytes(ctx, name)?.ok_or_else(missing)
    }

    /// A whole number.
    pub(super) fn number(&self, ctx: &Ctx<'js>, name: &str) -> Result<Option<usize>> {
        let Some(value) = non_null(Some(self.value(ctx, name)?)) else { return Ok(None) };
        let number = Coerced::<f64>::from_js(ctx, value)?.0;
        if number < 0.0 || number.fract() != 0.0 || number > f64::from(u32::MAX) {
            return Err(Fault::operation(format!("expected a whole number as `{name}`, found {number}")).throw(ctx));
        }
        Ok(Some(number as usize))
    }

    pub(super) fn hash(&self, ctx: &Ctx<'js>) -> Result<HashName> {
        let hash = Params::read(ctx, &self.value(ctx, "hash")?)?;
        done(ctx, HashName::parse(&hash.name))
    }

    /// The length of a tag of GCM in bytes.
    pub(super) fn tag_bytes(&self, ctx: &Ctx<'js>) -> Result<usize> {
        match self.number(ctx, "tagLength")?.unwrap_or(128) {
            bits @ (96 | 104 | 112 | 120 | 128) => Ok(bits / 8),
            bits => {
                let why = format!("expected a `tagLength` of 96, 104, 112, 120 or 128 bits, found {bits}");
                Err(Fault::operation(why).throw(ctx))
            }
        }
    }

    /// The algorithm of a key that is imported, generated or derived.
    pub(super) fn algorithm_of_key(&self, ctx: &Ctx<'js>) -> Result<Algorithm> {
        Ok(match done(ctx, Family::parse(&self.name))? {
            Family::Hmac => Algorithm::Hmac(self.hash(ctx)?),
            Family::Aes(mode) => Algorithm::Aes(mode),
            Family::Rsa(scheme) => Algorithm::Rsa(scheme, self.hash(ctx)?),
            Family::Derive(derivation) => Algorithm::Derive(derivation),
            Family::Elliptic(scheme) => {
                let name = self.value(ctx, "namedCurve")?;
                let name = name.as_string().ok_or_else(|| wrong(ctx, "the name of a curve as `namedCurve`", &name))?;
                Algorithm::Elliptic(scheme, done(ctx, Curve::parse(&name.to_string()?))?)
            }
        })
    }

    /// How many bytes a new secret for an algorithm has.
    pub(super) fn bytes_of_key(&self, ctx: &Ctx<'js>, algorithm: Algorithm) -> Result<usize> {
        let bits = self.number(ctx, "length")?;
        let bytes = match (algorithm, bits) {
            (Algorithm::Hmac(hash), None) => Ok(hash.block()),
            (Algorithm::Hmac(_), Some(bits)) if (8..=MOST_BITS).contains(&bits) && bits % 8 == 0 => Ok(bits / 8),
            (Algorithm::Hmac(_), _) => {
                Err(Fault::operation(format!("expected a `length` of 8 to {MOST_BITS} bits, in whole bytes")))
            }
            (Algorithm::Aes(_), Some(bits)) if bits % 8 == 0 && is_key_length(bits / 8) => Ok(bits / 8),
            (Algorithm::Aes(_), _) => Err(Fault::operation("expected a `length` of 128, 192 or 256 bits")),
            _ => Err(Fault::unsupported(format!("no secret can be made for {}", self.name))),
        };
        done(ctx, bytes)
    }
}
