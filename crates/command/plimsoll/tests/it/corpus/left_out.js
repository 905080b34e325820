// Arguments that are left out are undefined or empty.
// checks 9 of 9
import http, { cookieJar } from 'k6/http';
import { check } from 'k6';
import { sha256 } from 'k6/crypto';
import encoding from 'k6/encoding';
import { parseHTML } from 'k6/html';

const throws = (call) => {
  try { call(); return false; } catch (error) { return true; }
};

export default function () {
  const jar = http.cookieJar();
  check(null, {
    'a cookie without a value': () => jar.set(__ENV.URL, 'a') && jar.cookiesForURL(__ENV.URL).a[0] === '',
    'a cookie with a number for a value': () => jar.set(__ENV.URL, 'b', 5) && jar.cookiesForURL(__ENV.URL).b[0] === '5',
    'a request in one object': () => http.request({ method: 'GET', url: __ENV.URL }).error_code === 1020,
    'a request without a URL': () => http.get().status === 0 && http.request('GET').status === 0,
    'a body left out': () => http.post().error_code === 1020,
    'a callback left out': () => http.setResponseCallback() === undefined,
    'a batch of nothing': () => throws(() => http.batch()),
    'a file of nothing': () => throws(() => http.file()),
    'an attribute without a name': () => parseHTML('<p>x').find('p').attr() === undefined,
  });
}
