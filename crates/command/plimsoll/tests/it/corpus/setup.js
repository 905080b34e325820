// exit 0
// requests 4
// checks 3 of 3
// What setup returns, every iteration and teardown get.
import { check } from 'k6';
import http from 'k6/http';
export const options = { vus: 2, iterations: 2, thresholds: { 'http_reqs{group:::setup}': ['count==1'] } };
export function setup() {
  return { token: http.get(`${__ENV.URL}/json`).json('name'), deep: { list: [1, { a: null }] } };
}
export default function (data) {
  http.post(`${__ENV.URL}/things`, data.token);
  check(data, { 'all of it came': (d) => d.deep.list[1].a === null });
}
export function teardown(data) {
  http.del(`${__ENV.URL}/things/${data.token}`);
  check(data, { 'teardown too': (d) => d.token === 'ann' });
}
