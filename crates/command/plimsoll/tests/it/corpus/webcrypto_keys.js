// Keys that encrypt, sign and agree.
// checks 14 of 14
import { check } from 'k6';
import encoding from 'k6/encoding';

const { subtle } = crypto;
const text = (it) => new Uint8Array([...it].map((letter) => letter.charCodeAt(0)));
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('');
const jwk = JSON.parse(open('./lib/rsa_key.json'));
const spki = encoding.b64decode(open('./lib/rsa_key.spki.txt'));
const data = text('what do ya want for nothing?');
const zeros = (count) => new Uint8Array(count);

async function aes() {
  const bytes = text('0123456789abcdef');
  const key = (name) => subtle.importKey('raw', bytes, { name }, true, ['encrypt', 'decrypt']);
  const [cbc, ctr, gcm] = [await key('AES-CBC'), await key('AES-CTR'), await key('AES-GCM')];
  const modes = [
    [cbc, { name: 'AES-CBC', iv: zeros(16) }],
    [ctr, { name: 'AES-CTR', counter: zeros(16), length: 64 }],
    [gcm, { name: 'AES-GCM', iv: zeros(12), additionalData: text('more') }],
  ];
  for (const [key, mode] of modes) {
    const sealed = await subtle.encrypt(mode, key, data);
    const plain = await subtle.decrypt(mode, key, sealed);
    check(plain, { [`${mode.name} there and back`]: (plain) => hex(plain) === hex(data) && hex(sealed) !== hex(data) });
  }
  check(hex(await subtle.encrypt(modes[0][1], cbc, text('abc'))), { 'what AES-CBC gives': (it) => it.length === 32 });
  check(await subtle.exportKey('jwk', gcm), { 'a key of AES as JSON': ({ kty, alg, k }) => kty === 'oct' && alg === 'A128GCM' && k === 'MDEyMzQ1Njc4OWFiY2RlZg' });
}

async function curves() {
  for (const [namedCurve, hash] of [['P-256', 'SHA-256'], ['P-384', 'SHA-384'], ['P-521', 'SHA-512']]) {
    const pair = await subtle.generateKey({ name: 'ECDSA', namedCurve }, true, ['sign', 'verify']);
    const how = { name: 'ECDSA', hash };
    const signature = await subtle.sign(how, pair.privateKey, data);
    const open = await subtle.importKey('spki', await subtle.exportKey('spki', pair.publicKey), { name: 'ECDSA', namedCurve }, true, ['verify']);
    check(await subtle.verify(how, open, signature, data), { [`ECDSA on ${namedCurve}`]: (holds) => holds });
  }
  const ecdh = { name: 'ECDH', namedCurve: 'P-256' };
  const [one, two] = [await subtle.generateKey(ecdh, true, ['deriveBits']), await subtle.generateKey(ecdh, true, ['deriveBits'])];
  const again = await subtle.importKey('pkcs8', await subtle.exportKey('pkcs8', one.privateKey), ecdh, true, ['deriveBits']);
  const shared = [await subtle.deriveBits({ name: 'ECDH', public: two.publicKey }, again, 256), await subtle.deriveBits({ name: 'ECDH', public: one.publicKey }, two.privateKey, 256)];
  check(shared, { 'ECDH': ([one, two]) => hex(one) === hex(two) });
}

async function rsa() {
  const own = (name, usage) => subtle.importKey('jwk', jwk, { name, hash: 'SHA-256' }, true, [usage]);
  const open = (name, usage) => subtle.importKey('spki', spki, { name, hash: 'SHA-256' }, true, [usage]);
  const sealed = await subtle.encrypt({ name: 'RSA-OAEP' }, await open('RSA-OAEP', 'encrypt'), data);
  const plain = await subtle.decrypt({ name: 'RSA-OAEP' }, await own('RSA-OAEP', 'decrypt'), sealed);
  check(plain, { 'RSA-OAEP': (plain) => hex(plain) === hex(data) });
  for (const how of [{ name: 'RSA-PSS', saltLength: 32 }, { name: 'RSASSA-PKCS1-v1_5' }]) {
    const signature = await subtle.sign(how, await own(how.name, 'sign'), data);
    const holds = await subtle.verify(how, await open(how.name, 'verify'), signature, data);
    check(holds, { [how.name]: (holds) => holds });
  }
}

async function derived() {
  const how = { name: 'PBKDF2', hash: 'SHA-256', salt: text('salt'), iterations: 1000 };
  const key = await subtle.importKey('raw', text('password'), { name: 'PBKDF2' }, false, ['deriveBits', 'deriveKey']);
  check(hex(await subtle.deriveBits(how, key, 256)), { 'PBKDF2': (bits) => bits === '632c2812e46d4604102ba7618e9d6d7d2f8128f6266b4a03264d2a0460b7dcb3' });
  const aes = await subtle.deriveKey(how, key, { name: 'AES-CBC', length: 256 }, true, ['encrypt']);
  check(hex(await subtle.exportKey('raw', aes)), { 'a derived key': (key) => key.startsWith('632c2812') });
}

export default async function () {
  await aes();
  await curves();
  await rsa();
  await derived();
}
