// exit 0
// requests 9
// checks 1 of 1
import { check } from 'k6';
import http, { get, post } from 'k6/http';
export default function () {
  const url = __ENV.URL;
  get(`${url}/get`);
  http.head(`${url}/text`);
  post(`${url}/post`, 'text');
  http.put(`${url}/put`, JSON.stringify({ a: 1 }), { headers: { 'Content-Type': 'application/json' } });
  http.patch(`${url}/patch`, 'p');
  http.del(`${url}/del`);
  http.options(`${url}/options`);
  http.request('REPORT', `${url}/report`, 'body');
  check(http.request('get', `${url}/lower`), { 'it came': (r) => r.status === 200 });
}
