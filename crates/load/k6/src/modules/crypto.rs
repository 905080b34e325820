//! The module `k6/crypto`, and the global `crypto` (`crypto::web`).
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

mod hash;
mod subtle;
pub(crate) mod web;

use crate::hex::hex;
use crate::modules::encoding;
use crate::native::Native;
use crate::value::{Arg, TextArg, buffer, bytes, optional_text, thrown};
use hash::Hash;
use plimsoll_javascript::NativeModule;
use rquickjs::class::Trace;
use rquickjs::function::Opt;
use rquickjs::{Class, Ctx, IntoJs, JsLifetime, Object, Result, Value};

/// See the module.
pub(crate) struct Crypto;

impl NativeModule for Crypto {
    const NAME: &'static str = "k6/crypto";
    const EXPORTS: &'static [&'static str] = &[
        "default",
        "createHash",
        "createHMAC",
        "hexEncode",
        "hmac",
        "md4",
        "md5",
        "randomBytes",
        "ripemd160",
        "sha1",
        "sha256",
        "sha384",
        "sha512",
        "sha512_224",
        "sha512_256",
    ];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let object = Object::new(ctx.clone())?;
        object.native("createHash", create_hash)?;
        object.native("createHMAC", create_hmac)?;
        object.native("hmac", hmac)?;
        object.native("hexEncode", hex_encode)?;
        object.native("randomBytes", random_bytes)?;
        for name in hash::NAMES {
            let hash = move |ctx: Ctx<'js>, Arg(data): Arg<'js>, encoding: Opt<Value<'js>>| {
                let mut hash = hash_named(&ctx, name)?;
                hash.update(&bytes(&ctx, &data)?);
                output(&ctx, hash.value(), encoding.0)
            };
            object.native(name, hash)?;
        }
        Ok(object)
    }
}

/// A hash that a script updates step by step.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
struct Hasher {
    #[qjs(skip_trace)]
    hash: Box<dyn Hash>,
}

#[rquickjs::methods]
impl Hasher {
    fn update<'js>(&mut self, ctx: Ctx<'js>, data: Arg<'js>) -> Result<()> {
        self.hash.update(&bytes(&ctx, &data.0)?);
        Ok(())
    }

    fn digest<'js>(&self, ctx: Ctx<'js>, encoding: Opt<Value<'js>>) -> Result<Value<'js>> {
        output(&ctx, self.hash.value(), encoding.0)
    }
}

fn create_hash<'js>(ctx: Ctx<'js>, TextArg(name): TextArg) -> Result<Class<'js, Hasher>> {
    Class::instance(ctx.clone(), Hasher { hash: hash_named(&ctx, &name)? })
}

fn create_hmac<'js>(ctx: Ctx<'js>, TextArg(name): TextArg, Arg(secret): Arg<'js>) -> Result<Class<'js, Hasher>> {
    Class::instance(ctx.clone(), Hasher { hash: hmac_named(&ctx, &name, &secret)? })
}

fn hmac<'js>(
    ctx: Ctx<'js>,
    TextArg(name): TextArg,
    Arg(secret): Arg<'js>,
    Arg(data): Arg<'js>,
    encoding: Opt<Value<'js>>,
) -> Result<Value<'js>> {
    let mut hash = hmac_named(&ctx, &name, &secret)?;
    hash.update(&bytes(&ctx, &data)?);
    output(&ctx, hash.value(), encoding.0)
}

fn hex_encode<'js>(ctx: Ctx<'js>, Arg(data): Arg<'js>) -> Result<String> {
    Ok(hex(&bytes(&ctx, &data)?))
}

fn random_bytes<'js>(ctx: Ctx<'js>, count: f64) -> Result<Value<'js>> {
    // The memory of a script is 64 MiB in all.
    if !(1.0..67_108_864.0).contains(&count) {
        return Err(thrown(&ctx, format!("expected a number of bytes from 1 to 67108863, found {count}")));
    }
    buffer(&ctx, random(&ctx, count as usize)?)
}

/// Random bytes of the system.
pub(crate) fn random(ctx: &Ctx<'_>, count: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes).map_err(|error| thrown(ctx, format!("the system has no random bytes: {error}")))?;
    Ok(bytes)
}

fn hash_named(ctx: &Ctx<'_>, name: &str) -> Result<Box<dyn Hash>> {
    hash::hash(name).ok_or_else(|| unknown(ctx, name))
}

fn hmac_named<'js>(ctx: &Ctx<'js>, name: &str, secret: &Value<'js>) -> Result<Box<dyn Hash>> {
    hash::hmac(name, &bytes(ctx, secret)?).ok_or_else(|| unknown(ctx, name))
}

fn unknown(ctx: &Ctx<'_>, name: &str) -> rquickjs::Error {
    thrown(ctx, format!("expected a hash out of {}, found `{name}`", hash::NAMES.join(", ")))
}

/// A hash in the encoding that the script wants.
fn output<'js>(ctx: &Ctx<'js>, value: Vec<u8>, encoding: Option<Value<'js>>) -> Result<Value<'js>> {
    match optional_text(ctx, encoding)?.as_deref() {
        Some("hex") => hex(&value).into_js(ctx),
        Some("base64") => encoding::encode(&value, "std").into_js(ctx),
        Some("base64url") => encoding::encode(&value, "url").into_js(ctx),
        Some("base64rawurl") => encoding::encode(&value, "rawurl").into_js(ctx),
        Some("binary") => buffer(ctx, value),
        other => {
            let found = other.unwrap_or("nothing");
            let names = "`hex`, `base64`, `base64url`, `base64rawurl` or `binary`";
            Err(thrown(ctx, format!("expected the output encoding {names}, found `{found}`")))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::TestUser;

    /// What k6 v1.8.1 gives for the same.
    #[test]
    fn scripts_hash_as_in_k6() {
        let text = "import crypto, { sha1, createHash } from 'k6/crypto'; import encoding from 'k6/encoding';
            export default () => {
                const hash = createHash('sha1'); hash.update('a'); const early = hash.digest('hex'); hash.update('b');
                const hmac = crypto.createHMAC('sha256', 'k'); hmac.update('a');
                return [crypto.md5('a', 'base64'), crypto.hmac('sha1', 'k', 'd', 'base64url'), sha1('a', 'base64rawurl'),
                    sha1('a', 'binary').byteLength, sha1(new Uint8Array([1, 2]), 'hex'),
                    crypto.hexEncode('ab'), early, hash.digest('hex'), hash.digest('hex'), hmac.digest('hex').slice(0, 8),
                    crypto.randomBytes(4).byteLength, encoding.b64encode('ü'), encoding.b64encode(new Uint8Array([255, 254]).buffer, 'rawurl'),
                    encoding.b64decode('/w==').byteLength, encoding.b64decode('w7w', 'rawstd', 's')];
            };";
        assert_eq!(
            TestUser::of(text).returned(),
            "[\"DMF1ucDxtqgxw5niaXcmYQ==\",\"K5DkHnwMyOL3XAKRDDiZzEaLoxY=\",\"hvfkN_qlp_zhXR3cuerq6jd2Z7g\",20,\
            \"0ca623e2855f2c75c842ad302fe820e41b4d197d\",\"6162\",\"86f7e437faa5a7fce15d1ddcb9eaeaea377667b8\",\
            \"da23614e02469a0d7c7bd1bdab5c9c474b1904dc\",\"da23614e02469a0d7c7bd1bdab5c9c474b1904dc\",\"78da9151\",4,\
            \"w7w=\",\"__4\",1,\"ü\"]"
        );
    }

    #[test]
    fn values_that_are_no_bytes_are_exceptions() {
        let text = "import crypto from 'k6/crypto'; import encoding from 'k6/encoding';
            export default () => [() => crypto.sha1('a'), () => crypto.sha1('a', 'x'), () => crypto.hmac('no', 'a', 'b', 'hex'),
                () => crypto.createHash('no'), () => crypto.randomBytes(0), () => crypto.randomBytes(-1), () => crypto.sha1(5, 'hex'),
                () => crypto.sha1([1], 'hex'), () => encoding.b64decode('a?'), () => encoding.b64encode(5)].map((make) => {
                try { make(); return 'nothing'; } catch (error) { return error.message.split(' ')[0]; }
            });";
        assert_eq!(TestUser::of(text).returned(), format!("[{}]", ["\"expected\""; 10].join(",")));
    }
}
