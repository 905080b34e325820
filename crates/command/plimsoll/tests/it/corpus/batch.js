// exit 0
// requests 8
// checks 3 of 3
import { check } from 'k6';
import http from 'k6/http';
export default function () {
  const url = __ENV.URL;
  const list = http.batch([`${url}/a`, ['POST', `${url}/b`, 'x'], { method: 'PUT', url: `${url}/c`, body: 'y', params: { tags: { k: 'v' } } }]);
  check(list, { 'in order': (all) => all.map((r) => r.request.method).join() === 'GET,POST,PUT' });
  const named = http.batch({ one: `${url}/d`, two: { method: 'GET', url: `${url}/json` } });
  check(named, { 'by name': (all) => all.two.json('name') === 'ann' });
  check(http.batch([`${url}/e`, `${url}/f`, `${url}/g`]), { 'all came': (all) => all.every((r) => r.status === 200) });
}
