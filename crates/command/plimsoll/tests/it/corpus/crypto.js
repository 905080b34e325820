// exit 0
// checks 9 of 9
import { check } from 'k6';
import crypto, { createHMAC, createHash, hmac, md5, sha1, sha256 } from 'k6/crypto';
export default function () {
  check(null, {
    md4: () => crypto.md4('abc', 'hex') === 'a448017aaf21d8525fc10ae87aa6729d',
    md5: () => md5('abc', 'hex') === '900150983cd24fb0d6963f7d28e17f72',
    sha1: () => sha1('abc', 'base64') === 'qZk+NkcGgWq6PiVxeFDCbJzQ2J0=',
    sha256: () => sha256('abc', 'hex').startsWith('ba7816bf8f01cfea'),
    ripemd160: () => crypto.ripemd160('abc', 'hex') === '8eb208f7e05d987a9b044a8e98c6b087f15a0bfc',
    hmac: () => hmac('md5', 'key', 'abc', 'hex') === 'd2fe98063f876b03193afb49b4979591',
    createHash: () => { const h = createHash('sha512'); h.update('a'); h.update('bc'); return h.digest('hex').startsWith('ddaf35a1'); },
    createHMAC: () => { const h = createHMAC('sha256', 'key'); h.update('abc'); return h.digest('hex').startsWith('9c196e32'); },
    randomBytes: () => crypto.randomBytes(8).byteLength === 8,
  });
}
