// exit 0
// requests 3
// checks 2 of 2
import { check } from 'k6';
import http from 'k6/http';
export default function () {
  check(http.get(`${__ENV.URL}/gzip`), { 'it is unpacked': (r) => r.body === 'hello, packed' });
  check(http.get(`${__ENV.URL}/gzip`, { headers: { 'Accept-Encoding': 'gzip' } }), { 'asked for': (r) => r.body === 'hello, packed' });
  http.post(`${__ENV.URL}/packed`, 'hello hello hello hello', { compression: 'gzip' });
}
