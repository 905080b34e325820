//! The global `crypto`, as browsers have it: random values, hashes and HMAC.

use super::key::{self, CryptoKey, Format, HashName};
use super::random;
use crate::hex::hex;
use crate::native::Native;
use crate::value::{binary, buffer, construct, settled, thrown, wrong};
use rquickjs::function::This;
use rquickjs::{Array, Class, Ctx, Function, IntoJs, Object, Promise, Result, TypedArray, U8Clamped, Value};

/// Methods of `crypto.subtle` that are not supported.
const REFUSED: [&str; 6] = ["encrypt", "decrypt", "deriveBits", "deriveKey", "wrapKey", "unwrapKey"];

/// The most bytes that are filled at once, as in browsers.
const MOST: usize = 65_536;

/// The global.
pub(crate) fn crypto<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let crypto = Object::new(ctx.clone())?;
    crypto.native("getRandomValues", get_random_values)?;
    crypto.native("randomUUID", random_uuid)?;
    crypto.set("subtle", subtle(ctx)?)?;
    Ok(crypto)
}

fn subtle<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let subtle = Object::new(ctx.clone())?;
    subtle.native("digest", digest)?;
    subtle.native("sign", sign)?;
    subtle.native("verify", verify)?;
    subtle.native("importKey", import_key)?;
    subtle.native("exportKey", export_key)?;
    subtle.native("generateKey", generate_key)?;
    for name in REFUSED {
        let refuse = move |ctx: Ctx<'js>| {
            settled(&ctx, |ctx| Err(thrown(ctx, format!("`crypto.subtle.{name}` is not supported here"))))
        };
        subtle.native(name, refuse)?;
    }
    Ok(subtle)
}

/// Fills an array of integers, and returns it.
fn get_random_values<'js>(ctx: Ctx<'js>, array: Object<'js>) -> Result<Object<'js>> {
    let Some(length) = array.get::<_, Value<'js>>("byteLength")?.as_number().filter(|_| is_of_integers(&array)) else {
        return Err(wrong(&ctx, "a typed array of integers", array.as_value()));
    };
    if length as usize > MOST {
        return Err(thrown(&ctx, format!("expected an array of at most {MOST} bytes, found {length}")));
    }
    let place = (array.get::<_, Object<'js>>("buffer")?, array.get::<_, f64>("byteOffset")?, length);
    let view = construct(&ctx, "Uint8Array", place)?;
    let random = TypedArray::<u8>::new(ctx.clone(), random(&ctx, length as usize)?)?;
    view.get::<_, Function<'js>>("set")?.call::<_, ()>((This(view.clone()), random))?;
    Ok(array)
}

fn is_of_integers(array: &Object<'_>) -> bool {
    array.is_typed_array::<u8>()
        || array.is_typed_array::<U8Clamped>()
        || array.is_typed_array::<i8>()
        || array.is_typed_array::<u16>()
        || array.is_typed_array::<i16>()
        || array.is_typed_array::<u32>()
        || array.is_typed_array::<i32>()
        || array.is_typed_array::<u64>()
        || array.is_typed_array::<i64>()
}

/// A UUID of version 4 (RFC 9562, section 5.4).
fn random_uuid(ctx: Ctx<'_>) -> Result<String> {
    let mut bytes = random(&ctx, 16)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = hex(&bytes);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    Ok(parts.join("-"))
}

/// The bytes to hash or sign; texts are refused.
fn source<'js>(ctx: &Ctx<'js>, data: &Value<'js>) -> Result<Vec<u8>> {
    binary(data)?.ok_or_else(|| wrong(ctx, "an ArrayBuffer or a view of one", data))
}

fn digest<'js>(ctx: Ctx<'js>, algorithm: Value<'js>, data: Value<'js>) -> Result<Promise<'js>> {
    settled(&ctx, |ctx| buffer(ctx, HashName::read(ctx, &algorithm)?.digest(&source(ctx, &data)?)))
}

fn sign<'js>(
    ctx: Ctx<'js>,
    algorithm: Value<'js>,
    key: Class<'js, CryptoKey>,
    data: Value<'js>,
) -> Result<Promise<'js>> {
    settled(&ctx, |ctx| {
        key::check_hmac(ctx, &algorithm)?;
        buffer(ctx, key.borrow().sign(ctx, "sign", &source(ctx, &data)?)?)
    })
}

fn verify<'js>(
    ctx: Ctx<'js>,
    algorithm: Value<'js>,
    key: Class<'js, CryptoKey>,
    signature: Value<'js>,
    data: Value<'js>,
) -> Result<Promise<'js>> {
    settled(&ctx, |ctx| {
        key::check_hmac(ctx, &algorithm)?;
        let right = key.borrow().sign(ctx, "verify", &source(ctx, &data)?)?;
        (right == source(ctx, &signature)?).into_js(ctx)
    })
}

fn import_key<'js>(
    ctx: Ctx<'js>,
    format: String,
    data: Value<'js>,
    algorithm: Value<'js>,
    extractable: bool,
    usages: Array<'js>,
) -> Result<Promise<'js>> {
    settled(&ctx, |ctx| {
        let format = Format::read(ctx, &format)?;
        let key = CryptoKey::import(ctx, format, &data, &algorithm, extractable, &usages)?;
        Ok(Class::instance(ctx.clone(), key)?.into_value())
    })
}

fn export_key<'js>(ctx: Ctx<'js>, format: String, key: Class<'js, CryptoKey>) -> Result<Promise<'js>> {
    settled(&ctx, |ctx| key.borrow().export(ctx, Format::read(ctx, &format)?))
}

fn generate_key<'js>(
    ctx: Ctx<'js>,
    algorithm: Value<'js>,
    extractable: bool,
    usages: Array<'js>,
) -> Result<Promise<'js>> {
    settled(&ctx, |ctx| {
        let key = CryptoKey::generate(ctx, &algorithm, extractable, &usages)?;
        Ok(Class::instance(ctx.clone(), key)?.into_value())
    })
}
