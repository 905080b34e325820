//! `crypto.subtle` as scripts see it. The parts have the tests of their standards.

use crate::testing::TestUser;

/// What an async function of this body returns.
fn evaluated(body: &str) -> String {
    let text = format!(
        "import k6 from 'k6/crypto'; const s = crypto.subtle;
        const text = (it) => new TextEncoder().encode(it), shown = (bytes) => new TextDecoder().decode(bytes);
        const why = (promise) => promise.then(() => 'nothing', (error) => error.name);
        const raw = (name, bytes, usages, more) => s.importKey('raw', bytes, {{ name, ...more }}, true, usages);
        export default async () => {{ {body} }};"
    );
    TestUser::of(&text).returned()
}

#[test]
fn what_is_encrypted_is_decrypted_by_the_same_key_alone() {
    let body = "const said = [];
        for (const [name, more] of [['AES-CBC', { iv: new Uint8Array(16) }], ['AES-CTR', { counter: new Uint8Array(16), length: 64 }],
            ['AES-GCM', { iv: new Uint8Array(12), additionalData: text('a'), tagLength: 96 }]]) {
            for (const length of [128, 192, 256]) {
                const key = await s.generateKey({ name, length }, true, ['encrypt', 'decrypt']);
                const sealed = await s.encrypt({ name, ...more }, key, text('something'));
                said.push(shown(await s.decrypt({ name, ...more }, key, sealed)), sealed.byteLength, key.algorithm.length);
            }
        }
        return said;";
    assert_eq!(
        evaluated(body),
        format!(
            "[{}]",
            [16, 9, 21]
                .map(|size| [128, 192, 256].map(|bits| format!("\"something\",{size},{bits}")).join(","))
                .join(",")
        )
    );
    let body = "const gcm = { name: 'AES-GCM', iv: new Uint8Array(12) };
        const [one, other] = [await raw('AES-GCM', new Uint8Array(16), ['encrypt', 'decrypt']), await raw('AES-GCM', new Uint8Array(32), ['encrypt'])];
        const sealed = await s.encrypt(gcm, one, text('x'));
        return Promise.all([s.decrypt(gcm, other, sealed), s.decrypt({ ...gcm, additionalData: text('y') }, one, sealed), s.encrypt({ name: 'AES-CBC', iv: new Uint8Array(16) }, one, sealed),
            s.encrypt({ ...gcm, iv: new Uint8Array(3) }, one, sealed), s.encrypt({ ...gcm, tagLength: 7 }, one, sealed), s.encrypt({ name: 'AES-GCM' }, one, sealed),
            raw('AES-GCM', new Uint8Array(5), ['encrypt']), s.generateKey({ name: 'AES-CBC', length: 100 }, true, ['encrypt'])].map(why));";
    assert_eq!(
        evaluated(body),
        r#"["InvalidAccessError","OperationError","InvalidAccessError","OperationError","OperationError","OperationError","DataError","OperationError"]"#
    );
}

#[test]
fn keys_of_curves_sign_and_agree_in_every_format() {
    let body = "const said = [];
        for (const namedCurve of ['P-256', 'P-384', 'P-521']) {
            const ecdsa = { name: 'ECDSA', namedCurve }, how = { name: 'ECDSA', hash: 'SHA-256' };
            const { publicKey, privateKey } = await s.generateKey(ecdsa, true, ['sign', 'verify']);
            const signature = await s.sign(how, await s.importKey('jwk', await s.exportKey('jwk', privateKey), ecdsa, true, ['sign']), text('data'));
            for (const format of ['raw', 'spki', 'jwk']) {
                const again = await s.importKey(format, await s.exportKey(format, publicKey), ecdsa, true, ['verify']);
                said.push(await s.verify(how, again, signature, text('data')), await s.verify(how, again, signature, text('other')));
            }
            const ecdh = { name: 'ECDH', namedCurve };
            const [one, two] = [await s.generateKey(ecdh, true, ['deriveBits', 'deriveKey']), await s.generateKey(ecdh, true, ['deriveBits'])];
            const again = await s.importKey('pkcs8', await s.exportKey('pkcs8', one.privateKey), ecdh, false, ['deriveBits']);
            const shared = [await s.deriveBits({ name: 'ECDH', public: two.publicKey }, again, 256), await s.deriveBits({ name: 'ECDH', public: one.publicKey }, two.privateKey, 256)];
            said.push(k6.hexEncode(shared[0]) === k6.hexEncode(shared[1]), (await s.deriveKey({ name: 'ECDH', public: two.publicKey }, one.privateKey, { name: 'AES-CTR', length: 128 }, true, ['encrypt'])).algorithm.length);
        }
        return said;";
    let one = "true,false,true,false,true,false,true,128";
    assert_eq!(evaluated(body), format!("[{}]", [one; 3].join(",")));
}

/// A key of 1024 bits, which nobody uses: a new one takes a while.
const RSA_KEY: &str = include_str!("rsa_key.json");

#[test]
fn keys_of_rsa_encrypt_and_sign_in_every_format() {
    let body = format!(
        "const jwk = {RSA_KEY}, open = {{ kty: 'RSA', n: jwk.n, e: jwk.e }}, said = [];
        const pair = async (name, hash, [own, others]) => {{
            const how = {{ name, hash }};
            const [key, all] = [await s.importKey('jwk', jwk, how, true, own), await s.importKey('jwk', open, how, true, others)];
            return [await s.importKey('pkcs8', await s.exportKey('pkcs8', key), how, true, own), await s.importKey('spki', await s.exportKey('spki', all), how, true, others)];
        }};
        for (const hash of ['SHA-1', 'SHA-256']) {{
            const [key, all] = await pair('RSA-OAEP', hash, [['decrypt'], ['encrypt']]);
            const oaep = {{ name: 'RSA-OAEP', label: text('label') }};
            const sealed = await s.encrypt(oaep, all, text('secret'));
            said.push(shown(await s.decrypt(oaep, key, sealed)), await why(s.decrypt({{ name: 'RSA-OAEP' }}, key, sealed)));
            for (const [name, more] of [['RSA-PSS', {{ saltLength: 20 }}], ['RSASSA-PKCS1-v1_5', {{}}]]) {{
                const [key, all] = await pair(name, hash, [['sign'], ['verify']]);
                const signature = await s.sign({{ name, ...more }}, key, text('data'));
                said.push(await s.verify({{ name, ...more }}, all, signature, text('data')), await s.verify({{ name, ...more }}, all, signature, text('other')), signature.byteLength);
            }}
        }}
        const key = await s.importKey('jwk', jwk, {{ name: 'RSA-PSS', hash: 'SHA-256' }}, true, ['sign']);
        const {{ name, modulusLength, publicExponent, hash }} = key.algorithm, written = await s.exportKey('jwk', key);
        return [said, name, modulusLength, [...publicExponent], hash.name, key.type, ['n', 'e', 'd', 'p', 'q', 'dp', 'dq', 'qi'].every((part) => written[part] === jwk[part]), written.alg];"
    );
    let one = r#""secret","OperationError",true,false,128,true,false,128"#;
    assert_eq!(evaluated(&body), format!(r#"[[{one},{one}],"RSA-PSS",1024,[1,0,1],"SHA-256","private",true,"PS256"]"#));
}

#[test]
fn bits_and_keys_are_derived() {
    let body = "const password = await raw('PBKDF2', text('password'), ['deriveBits', 'deriveKey']), secret = await raw('HKDF', text('secret'), ['deriveBits']);
        const pbkdf2 = { name: 'PBKDF2', hash: 'SHA-1', salt: text('salt'), iterations: 2 };
        const key = await s.deriveKey(pbkdf2, password, { name: 'AES-GCM', length: 128 }, true, ['encrypt']);
        const hkdf = { name: 'HKDF', hash: 'SHA-256', salt: text(''), info: text('i') };
        return [k6.hexEncode(await s.deriveBits(pbkdf2, password, 160)), k6.hexEncode(await s.exportKey('raw', key)), (await s.deriveBits(hkdf, secret, 64)).byteLength,
            await why(s.deriveBits(pbkdf2, password, 7)), await why(s.deriveBits(pbkdf2, password)), await why(s.deriveBits({ ...pbkdf2, iterations: 0 }, password, 8)), await why(s.deriveBits(hkdf, password, 8)),
            await why(s.deriveKey(hkdf, secret, { name: 'AES-GCM', length: 128 }, true, ['encrypt']))];";
    assert_eq!(
        evaluated(body),
        r#"["ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957","ea6c014dc72d6f8ccd1ed92ace1d41f0",8,"OperationError","OperationError","OperationError","InvalidAccessError","InvalidAccessError"]"#
    );
}

#[test]
fn keys_have_only_the_usages_that_fit_them() {
    let body = "const ec = { name: 'ECDSA', namedCurve: 'P-256' }, hmac = { name: 'HMAC', hash: 'SHA-1' };
        const { publicKey, privateKey } = await s.generateKey(ec, false, ['sign', 'verify']);
        return [publicKey.usages, publicKey.extractable, publicKey.type, privateKey.usages, privateKey.extractable, privateKey.algorithm.namedCurve,
            ...await Promise.all([s.exportKey('jwk', privateKey), s.exportKey('pkcs8', publicKey), s.sign({ ...ec, hash: 'SHA-256' }, publicKey, text('')), s.generateKey(ec, true, ['encrypt']), s.generateKey(ec, true, ['verify']),
                raw('HMAC', text('k'), [], hmac), raw('HMAC', text('k'), ['encrypt'], hmac), raw('HMAC', text(''), ['sign'], hmac), raw('ECDSA', text('x'), ['verify'], ec), raw('AES-KW', text('x'), ['wrapKey']),
                s.importKey('jwk', { kty: 'EC', crv: 'P-384' }, ec, true, ['verify']), s.importKey('raw', text('x'), { name: 'ECDSA', namedCurve: 'P-1' }, true, ['verify'])].map(why))];";
    assert_eq!(
        evaluated(body),
        r#"[["verify"],true,"public",["sign"],false,"P-256","InvalidAccessError","NotSupportedError","InvalidAccessError","SyntaxError","SyntaxError","SyntaxError","SyntaxError","DataError","DataError","NotSupportedError","DataError","NotSupportedError"]"#
    );
}
