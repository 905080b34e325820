//! The bytes of buffers and of views.

use rquickjs::{ArrayBuffer, Object, Result, Value};

/// The bytes of a buffer or of a view; None for other values.
///
/// # Errors
/// A getter of the value throws.
pub fn binary(value: &Value<'_>) -> Result<Option<Vec<u8>>> {
    let Some(object) = value.as_object() else { return Ok(None) };
    let Some(length) = object.get::<_, Value<'_>>("byteLength")?.as_number() else { return Ok(None) };
    let (buffer, offset) = match object.get::<_, Value<'_>>("buffer")?.into_object() {
        Some(buffer) => (buffer, object.get::<_, Value<'_>>("byteOffset")?.as_number().unwrap_or_default()),
        None => (object.clone(), 0.0),
    };
    let Some(buffer) = array_buffer(buffer) else { return Ok(None) };
    let (start, length) = (offset as usize, length as usize);
    Ok(buffer.as_bytes().and_then(|bytes| bytes.get(start..start + length)).map(<[u8]>::to_vec))
}

/// The value as a buffer. For other values the engine sets an exception, which is cleared.
fn array_buffer(object: Object<'_>) -> Option<ArrayBuffer<'_>> {
    let ctx = object.ctx().clone();
    let found = ArrayBuffer::from_object(object);
    if found.is_none() {
        ctx.catch();
    }
    found
}
