// exit 0
// requests 6
// checks 6 of 6
// __ITER counts the iterations of each user: what all users did is the same in the end.
import { check } from 'k6';
import http from 'k6/http';
export const options = { scenarios: { each: { executor: 'per-vu-iterations', vus: 2, iterations: 3 } } };
export default function () {
  http.get(`${__ENV.URL}/user?vu=${__VU}&iter=${__ITER}`);
  check(global, { 'is another name of it': (all) => all === globalThis });
}
