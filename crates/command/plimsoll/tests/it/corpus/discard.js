// exit 0
// requests 2
// checks 2 of 2
import { check } from 'k6';
import http from 'k6/http';
export const options = { discardResponseBodies: true };
export default function () {
  check(http.get(`${__ENV.URL}/text`), { 'no body': (r) => r.body === null });
  check(http.get(`${__ENV.URL}/text`, { responseType: 'text' }), { 'asked for': (r) => r.body === 'hello' });
}
