// exit 0
// requests 2
// checks 3 of 3
import { check } from 'k6';
import http from 'k6/http';
export default function () {
  const bytes = new Uint8Array([0, 255, 128, 10]);
  http.post(`${__ENV.URL}/bytes`, bytes.buffer);
  const response = http.get(`${__ENV.URL}/text`, { responseType: 'binary' });
  check(response, {
    'the body is a buffer': (r) => r.body instanceof ArrayBuffer,
    'of all bytes': (r) => r.body.byteLength === 5,
    'of these': (r) => new Uint8Array(r.body)[0] === 'h'.charCodeAt(0),
  });
}
