// exit 0
// requests 4
// checks 5 of 5
import { check } from 'k6';
import { SharedArray } from 'k6/data';
import http from 'k6/http';
const users = new SharedArray('users', () => [{ name: 'ann', n: 1 }, { name: 'bob', n: 2 }]);
export const options = { scenarios: { each: { executor: 'per-vu-iterations', vus: 2, iterations: 1 } } };
export default function () {
  for (const user of users) http.get(`${__ENV.URL}/user/${user.name}`);
  if (__VU > 1) return;
  check(users, {
    length: (all) => all.length === 2,
    index: (all) => all[1].name === 'bob' && all[2] === undefined,
    map: (all) => all.map((u) => u.n).join() === '1,2',
    filter: (all) => all.filter((u) => u.n > 1).length === 1,
    frozen: (all) => { try { all[0] = 1; } catch (e) { /* it may say so */ } return all[0].name === 'ann'; },
  });
}
