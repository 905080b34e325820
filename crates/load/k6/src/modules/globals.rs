//! Global objects of k6: `crypto`, `global`, `TextEncoder` and `TextDecoder`.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

use crate::modules::crypto::web;
use crate::value::{binary, non_null, optional_text, wrong};
use rquickjs::class::Trace;
use rquickjs::function::Opt;
use rquickjs::object::{Accessor, Property};
use rquickjs::{Class, Ctx, Exception, IntoJs, JsLifetime, Object, Result, TypedArray, Value};

/// Installs the global objects. Each is made when a script first reads it, because most users need none.
pub(crate) fn install(ctx: &Ctx<'_>) -> Result<()> {
    // The name of Node.js.
    ctx.globals().prop("global", Property::from(ctx.globals()).writable().configurable())?;
    at_first_touch(ctx, "crypto", |ctx| Ok(web::crypto(ctx)?.into_value()))?;
    at_first_touch(ctx, "TextEncoder", |ctx| Class::<TextEncoder>::create_constructor(ctx)?.into_js(ctx))?;
    at_first_touch(ctx, "TextDecoder", |ctx| Class::<TextDecoder>::create_constructor(ctx)?.into_js(ctx))
}

type Make<'js> = fn(&Ctx<'js>) -> Result<Value<'js>>;

/// A global variable that replaces its own getter at the first read or write.
fn at_first_touch<'js>(ctx: &Ctx<'js>, name: &'static str, make: Make<'js>) -> Result<()> {
    let get = move |ctx: Ctx<'js>| keep(&ctx, name, make(&ctx)?);
    let set = move |ctx: Ctx<'js>, value: Value<'js>| keep(&ctx, name, value).map(|_| ());
    ctx.globals().prop(name, Accessor::new(get, set).configurable())
}

fn keep<'js>(ctx: &Ctx<'js>, name: &str, value: Value<'js>) -> Result<Value<'js>> {
    ctx.globals().prop(name, Property::from(value.clone()).writable().configurable())?;
    Ok(value)
}

/// Encodes texts in UTF-8.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
struct TextEncoder {}

#[rquickjs::methods]
impl TextEncoder {
    #[qjs(constructor)]
    fn new() -> Self {
        TextEncoder {}
    }

    #[qjs(get)]
    fn encoding(&self) -> &'static str {
        "utf-8"
    }

    fn encode<'js>(&self, ctx: Ctx<'js>, text: Opt<Value<'js>>) -> Result<TypedArray<'js, u8>> {
        let text = optional_text(&ctx, text.0.filter(|text| !text.is_undefined()))?;
        TypedArray::new(ctx, text.unwrap_or_default().into_bytes())
    }
}

/// Decodes texts from UTF-8.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
struct TextDecoder {
    /// True if bytes that are no UTF-8 throw.
    fatal: bool,
    /// True to keep a byte order mark.
    keeps_mark: bool,
}

#[rquickjs::methods]
impl TextDecoder {
    #[qjs(constructor)]
    fn new<'js>(ctx: Ctx<'js>, label: Opt<Value<'js>>, options: Opt<Object<'js>>) -> Result<Self> {
        let label = optional_text(&ctx, label.0)?.unwrap_or_else(|| "utf-8".to_owned());
        if !["utf-8", "utf8", "unicode-1-1-utf-8"].contains(&label.trim().to_ascii_lowercase().as_str()) {
            return Err(Exception::throw_range(&ctx, &format!("expected the encoding `utf-8`, found `{label}`")));
        }
        let flag = |name| -> Result<bool> {
            let value = options.0.as_ref().map(|options| options.get::<_, Option<bool>>(name)).transpose()?;
            Ok(value.flatten().unwrap_or_default())
        };
        Ok(TextDecoder { fatal: flag("fatal")?, keeps_mark: flag("ignoreBOM")? })
    }

    #[qjs(get)]
    fn encoding(&self) -> &'static str {
        "utf-8"
    }

    #[qjs(get)]
    fn fatal(&self) -> bool {
        self.fatal
    }

    #[qjs(get, rename = "ignoreBOM")]
    fn ignore_bom(&self) -> bool {
        self.keeps_mark
    }

    fn decode<'js>(&self, ctx: Ctx<'js>, data: Opt<Value<'js>>) -> Result<String> {
        let Some(data) = non_null(data.0) else { return Ok(String::new()) };
        let bytes = binary(&data)?.ok_or_else(|| wrong(&ctx, "an ArrayBuffer or a typed array", &data))?;
        let bytes = if self.keeps_mark { &bytes[..] } else { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes) };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) if self.fatal => Err(Exception::throw_type(&ctx, "expected UTF-8, found bytes that are none")),
            Err(_) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::TestUser;

    fn evaluated(body: &str) -> String {
        let text = format!("import k6 from 'k6/crypto'; export default async () => {{ {body} }};");
        TestUser::of(&text).returned()
    }

    #[test]
    fn texts_are_encoded_and_decoded() {
        let body = "const e = new TextEncoder(), d = new TextDecoder();
            const bytes = e.encode('ü€');
            const said = [[...bytes], e.encoding, bytes instanceof Uint8Array, e.encode().length, d.decode(bytes), d.decode(),
                d.decode(bytes.subarray(2)), d.decode(new Uint8Array([0xef, 0xbb, 0xbf, 65])),
                new TextDecoder('UTF-8', { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf, 65])).length,
                d.decode(new DataView(bytes.buffer, 0, 2)), d.decode(new Uint8Array([255]).buffer)];
            for (const make of [() => new TextDecoder('utf-16'), () => new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255]))]) {
                try { make(); } catch (error) { said.push(error.name); }
            }
            return said;";
        assert_eq!(
            evaluated(body),
            r#"[[195,188,226,130,172],"utf-8",true,0,"ü€","","€","A",2,"ü","�","RangeError","TypeError"]"#
        );
    }

    #[test]
    fn random_values_fill_arrays_of_integers() {
        let body = "const all = [new Uint8Array(64), new Int32Array(16), new Uint8Array(100).subarray(30, 94), new BigUint64Array(8),
                new Uint8ClampedArray(64)];
            const said = all.map((array) => crypto.getRandomValues(array) === array && array.some((one) => one != 0));
            said.push([...new Uint8Array(all[2].buffer, 0, 30)].every((one) => one === 0));
            for (const wrong of [new Float64Array(2), new Uint8Array(65537), [1], {}]) {
                try { crypto.getRandomValues(wrong); } catch (error) { said.push(error.message.startsWith('expected')); }
            }
            return said;";
        assert_eq!(evaluated(body), "[true,true,true,true,true,true,true,true,true,true]");
    }

    #[test]
    fn uuids_are_of_version_4() {
        let body = "const a = crypto.randomUUID(), b = crypto.randomUUID();
            return [/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(a), a !== b];";
        assert_eq!(evaluated(body), "[true,true]");
    }

    /// FIPS 180-4 ("abc"), and RFC 4231, test case 2.
    #[test]
    fn hashes_and_signatures_are_those_of_their_standards() {
        let body = "const s = crypto.subtle, text = (it) => new TextEncoder().encode(it), hmac = { name: 'HMAC', hash: 'SHA-256' };
            const key = await s.importKey('raw', text('Jefe'), hmac, true, ['sign', 'verify']);
            const data = text('what do ya want for nothing?'), signed = await s.sign('HMAC', key, data);
            return [k6.hexEncode(await s.digest('sha-1', text('abc'))), k6.hexEncode(await s.digest({ name: 'SHA-256' }, text('abc').buffer)),
                k6.hexEncode(signed), await s.verify('HMAC', key, signed, data), await s.verify('HMAC', key, signed, text('other')),
                key.type, key.extractable, key.usages, key.algorithm];";
        assert_eq!(
            evaluated(body),
            "[\"a9993e364706816aba3e25717850c26c9cd0d89d\",\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\",\
            \"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843\",true,false,\"secret\",true,[\"sign\",\"verify\"],\
            {\"name\":\"HMAC\",\"hash\":{\"name\":\"SHA-256\"},\"length\":32}]"
        );
    }

    #[test]
    fn keys_are_written_down_and_made() {
        let body = "const s = crypto.subtle, all = ['sign', 'verify'], said = [];
            const key = await s.importKey('raw', new Uint8Array([1, 2, 255]), { name: 'HMAC', hash: 'SHA-512' }, true, all);
            const jwk = await s.exportKey('jwk', key); said.push(jwk);
            const again = await s.importKey('jwk', jwk, { name: 'HMAC', hash: 'SHA-512' }, true, all);
            said.push([...new Uint8Array(await s.exportKey('raw', again))]);
            for (const how of [{ hash: 'SHA-1' }, { hash: { name: 'SHA-384' } }, { hash: 'SHA-1', length: 24 }]) {
                said.push((await s.exportKey('raw', await s.generateKey({ name: 'HMAC', ...how }, true, ['sign']))).byteLength);
            }
            return said;";
        assert_eq!(
            evaluated(body),
            r#"[{"alg":"HS512","ext":true,"k":"AQL_","key_ops":["sign","verify"],"kty":"oct"},[1,2,255],64,128,3]"#
        );
    }

    #[test]
    fn unsupported_methods_reject_by_name() {
        let body = "const s = crypto.subtle, raw = new Uint8Array([1]), hmac = { name: 'HMAC', hash: 'SHA-1' };
            const signing = await s.importKey('raw', raw, hmac, false, ['sign']);
            const tries = [s.digest('MD5', raw), s.importKey('raw', raw, { name: 'AES-GCM' }, true, ['encrypt']),
                s.importKey('pkcs8', raw, hmac, true, ['sign']), s.encrypt({ name: 'AES-GCM' }, signing, raw),
                s.generateKey({ name: 'RSA-PSS', hash: 'SHA-1' }, true, ['sign']), s.importKey('raw', raw, hmac, true, []),
                s.importKey('raw', raw, hmac, true, ['wrapKey']), s.verify('HMAC', signing, raw, raw), s.exportKey('raw', signing)];
            return (await Promise.allSettled(tries)).map((one) => one.reason.message);";
        let said = evaluated(body);
        let found =
            ["MD5", "128, 192", "pkcs8", "not for AES", "publicExponent", "found none", "wrapKey", "verify", "leave"];
        for (message, name) in said.split("\",\"").zip(found) {
            assert!(message.contains(name), "{name}: {message}");
        }
        assert_eq!(said.split("\",\"").count(), found.len());
    }
}
