//! The global `crypto`, as browsers have it: random values, and [`subtle`](super::subtle).

use super::{random, subtle};
use crate::hex::hex;
use crate::native::Native;
use crate::value::{construct, thrown, wrong};
use rquickjs::function::This;
use rquickjs::{Ctx, Function, Object, Result, TypedArray, U8Clamped, Value};

/// The most bytes that are filled at once, as in browsers.
const MOST: usize = 65_536;

/// The global.
pub(crate) fn crypto<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let crypto = Object::new(ctx.clone())?;
    crypto.native("getRandomValues", get_random_values)?;
    crypto.native("randomUUID", random_uuid)?;
    crypto.set("subtle", subtle::subtle(ctx)?)?;
    Ok(crypto)
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
