// exit 0
// requests 4
// checks 2 of 2
import { check } from 'k6';
import http from 'k6/http';
const later = (ms, value) => new Promise((resolve) => setTimeout(() => resolve(value), ms));
export default async function () {
  const both = await Promise.all(['a', 'b'].map((path) => http.asyncRequest('GET', `${__ENV.URL}/${path}`)));
  check(both, { 'both came': (all) => all.every((response) => response.status === 200) });
  check(await later(10, 5), { 'a timer came': (v) => v === 5 });
  http.asyncRequest('POST', `${__ENV.URL}/late`, 'x').then((response) => http.get(`${__ENV.URL}/after?s=${response.status}`));
}
