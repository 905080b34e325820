// exit 0
// requests 6
// checks 3 of 3
// A jar for each user, which is empty again in the next iteration.
import { check } from 'k6';
import http from 'k6/http';
export const options = { iterations: 2 };
export default function () {
  const response = http.get(`${__ENV.URL}/cookie`);
  http.get(`${__ENV.URL}/text`);
  http.get(`${__ENV.URL}/text`, { cookies: { extra: 'x', session: { value: 'own', replace: true } } });
  if (__ITER > 0) return;
  const jar = http.cookieJar().cookiesForURL(`${__ENV.URL}/text`);
  check(response.cookies.session[0], { 'the response has it': (c) => c.value === 'abc' && c.path === '/' });
  check(jar, { 'the jar has it': (c) => c.session[0] === 'abc', 'and the other': (c) => c.theme[0] === 'dark' });
}
