//! `Blob`: immutable bytes with a content type.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

use super::bytes_of;
use crate::value::{buffer, construct, non_null, settled, text, thrown, wrong};
use plimsoll_javascript::{HeldBytes, HeldMemory};
use rquickjs::class::Trace;
use rquickjs::function::Opt;
use rquickjs::{Coerced, Ctx, IntoJs, JsLifetime, Object, Promise, Result, Value};

/// See the module.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(super) struct Blob {
    #[qjs(skip_trace)]
    bytes: HeldBytes,
    kind: String,
}

impl Blob {
    /// A blob without a type.
    ///
    /// # Errors
    /// The user holds more than it may.
    pub(super) fn of(ctx: &Ctx<'_>, bytes: Vec<u8>) -> Result<Blob> {
        let memory = HeldMemory::of(ctx)?;
        let bytes = HeldBytes::new(bytes, &memory);
        memory.look(ctx)?;
        Ok(Blob { bytes, kind: String::new() })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// An index of a script: negative ones count from the end.
    fn index(&self, index: Option<Coerced<f64>>, default: usize) -> usize {
        let length = self.bytes.len();
        match index {
            None => default,
            Some(Coerced(index)) if index < 0.0 => (length as f64 + index) as usize,
            Some(Coerced(index)) => (index as usize).min(length),
        }
    }
}

#[rquickjs::methods(rename_all = "camelCase")]
impl Blob {
    #[qjs(constructor)]
    fn new<'js>(ctx: Ctx<'js>, parts: Opt<Value<'js>>, options: Opt<Object<'js>>) -> Result<Self> {
        let mut bytes = Vec::new();
        if let Some(parts) = non_null(parts.0) {
            let Some(parts) = parts.as_array() else { return Err(wrong(&ctx, "an array of [blobParts]", &parts)) };
            for part in parts.iter::<Value<'js>>() {
                bytes.extend(part_of(&ctx, &part?)?);
            }
        }
        let kind = match options.0 {
            Some(options) => non_null(options.get("type")?).map(|kind| text(&ctx, kind)).transpose()?,
            None => None,
        };
        Ok(Blob { kind: kind.unwrap_or_default(), ..Blob::of(&ctx, bytes)? })
    }

    #[qjs(get)]
    fn size(&self) -> usize {
        self.bytes.len()
    }

    #[qjs(get, rename = "type")]
    fn kind(&self) -> String {
        self.kind.clone()
    }

    fn text<'js>(&self, ctx: Ctx<'js>) -> Result<Promise<'js>> {
        settled(&ctx, |ctx| String::from_utf8_lossy(&self.bytes).into_owned().into_js(ctx))
    }

    fn array_buffer<'js>(&self, ctx: Ctx<'js>) -> Result<Promise<'js>> {
        settled(&ctx, |ctx| buffer(ctx, self.bytes.to_vec()))
    }

    #[qjs(rename = "bytes")]
    fn typed<'js>(&self, ctx: Ctx<'js>) -> Result<Promise<'js>> {
        settled(&ctx, |ctx| {
            let buffer = buffer(ctx, self.bytes.to_vec())?;
            Ok(construct(ctx, "Uint8Array", (buffer,))?.into_value())
        })
    }

    fn slice(
        &self,
        ctx: Ctx<'_>,
        start: Opt<Coerced<f64>>,
        end: Opt<Coerced<f64>>,
        kind: Opt<Coerced<String>>,
    ) -> Result<Self> {
        let (start, end) = (self.index(start.0, 0), self.index(end.0, self.bytes.len()));
        let bytes = self.bytes.get(start..end).unwrap_or_default().to_vec();
        Ok(Blob { kind: kind.0.map(|kind| kind.0).unwrap_or_default(), ..Blob::of(&ctx, bytes)? })
    }

    fn stream(&self, ctx: Ctx<'_>) -> Result<()> {
        Err(thrown(&ctx, "`Blob.stream()` is not supported: `arrayBuffer()`, `bytes()` and `text()` are"))
    }

    fn to_string(&self) -> &'static str {
        "[object Blob]"
    }
}

/// The bytes of a part: a text, buffer, view or blob.
fn part_of<'js>(ctx: &Ctx<'js>, part: &Value<'js>) -> Result<Vec<u8>> {
    if let Some(string) = part.as_string() {
        return Ok(string.to_string()?.into_bytes());
    }
    bytes_of(part)?.ok_or_else(|| wrong(ctx, "texts, buffers and blobs as [blobParts]", part))
}
