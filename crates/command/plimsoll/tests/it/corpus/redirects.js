// exit 0
// requests 9
// checks 6 of 6
import { check } from 'k6';
import http from 'k6/http';
export default function () {
  const url = __ENV.URL;
  const followed = http.get(`${url}/redirect`);
  check(followed, {
    'it was followed': (r) => r.status === 200 && r.body === 'hello',
    'the URL is the last one': (r) => r.url === `${url}/text`,
  });
  check(http.post(`${url}/see-other`, 'x'), { 'a POST becomes a GET': (r) => r.body === 'hello' });
  check(http.post(`${url}/temporary`, 'x'), { 'a POST stays one': (r) => r.status === 200 });
  check(http.get(`${url}/redirect`, { redirects: 0 }), { 'not followed': (r) => r.status === 302 });
  check(http.get(`${url}/loop`, { redirects: 1 }), { 'not followed for ever': (r) => r.status === 302 });
}
