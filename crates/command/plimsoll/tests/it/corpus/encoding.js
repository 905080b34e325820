// exit 0
// checks 6 of 6
import { check } from 'k6';
import encoding, { b64decode, b64encode } from 'k6/encoding';
export default function () {
  check(null, {
    std: () => b64encode('hello?>') === 'aGVsbG8/Pg==',
    url: () => b64encode('hello?>', 'url') === 'aGVsbG8_Pg==',
    rawstd: () => encoding.b64encode('hello?>', 'rawstd') === 'aGVsbG8/Pg',
    rawurl: () => b64encode(new Uint8Array([104, 105]).buffer, 'rawurl') === 'aGk',
    'back as text': () => b64decode('aGVsbG8/Pg==', 'std', 's') === 'hello?>',
    'back as bytes': () => b64decode('aGk=').byteLength === 2,
  });
}
