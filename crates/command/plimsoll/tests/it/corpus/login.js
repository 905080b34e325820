// exit 0
// requests 6
// checks 4 of 4
// A session: a form, a cookie, a token that later requests carry.
import { check, group, sleep } from 'k6';
import http from 'k6/http';
export const options = { iterations: 2 };
export default function () {
  const token = group('log in', () => {
    http.get(`${__ENV.URL}/cookie`);
    const response = http.post(`${__ENV.URL}/json`, { user: 'ann', password: 'x' }, { tags: { name: 'log in' } });
    check(response, { 'logged in': (r) => r.status === 200, 'with a name': (r) => r.json('name') === 'ann' });
    return response.json('name');
  });
  sleep(0.01);
  http.get(`${__ENV.URL}/text`, { headers: { Authorization: `Bearer ${token}` } });
}
