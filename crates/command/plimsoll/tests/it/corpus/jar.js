// exit 0
// requests 4
// checks 4 of 4
import { check } from 'k6';
import http from 'k6/http';
export const options = { iterations: 1 };
export default function () {
  const url = __ENV.URL;
  const jar = new http.CookieJar();
  jar.set(url, 'mine', '1');
  jar.set(url, 'other', '2', { path: '/text' });
  http.get(`${url}/text`, { jar });
  http.get(`${url}/else`, { jar });
  check(jar.cookiesForURL(`${url}/text`), { 'both': (c) => c.mine[0] === '1' && c.other[0] === '2' });
  jar.delete(url, 'mine');
  check(jar.cookiesForURL(url), { 'one less': (c) => c.mine === undefined });
  http.get(`${url}/text`, { jar });
  check(jar, { 'a name alone has no cookies': () => jar.set('shop.example', 'a', '1') && Object.keys(jar.cookiesForURL('shop.example')).length === 0 });
  jar.clear(url);
  check(http.cookieJar().cookiesForURL(url), { 'the jar of the user is another': (c) => Object.keys(c).length === 0 });
  http.get(`${url}/text`);
}
