import http from 'k6/http';
import { check, sleep } from 'k6';

export default function () {
  const login = http.post(`${__ENV.TARGET}/login`, JSON.stringify({ user: __VU }), { tags: { name: 'login' } });
  if (!check(login, { 'logged in': (response) => response.status === 200 })) return;
  sleep(-Math.log(1 - Math.random()) / 2);
  http.get(`${__ENV.TARGET}/item/${login.json('token')}`, { tags: { name: 'item' } });
}
