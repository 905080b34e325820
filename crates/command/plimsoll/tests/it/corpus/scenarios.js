// exit 0
// requests 9
// Scenarios with functions, variables and tags of their own, one after the other and at once.
import http from 'k6/http';
export const options = {
  scenarios: {
    shared: { executor: 'shared-iterations', vus: 2, iterations: 4, exec: 'one', tags: { kind: 'a' } },
    each: { executor: 'per-vu-iterations', vus: 2, iterations: 2, exec: 'two', env: { PLACE: 'there' }, startTime: '300ms' },
    last: { executor: 'per-vu-iterations', exec: 'two' },
  },
  thresholds: { 'http_reqs{kind:a}': ['count==4'], 'http_reqs{scenario:each}': ['count==4'], 'iterations{scenario:last}': ['count==1'] },
};
export function one() { http.get(`${__ENV.URL}/one`); }
export function two() { http.get(`${__ENV.URL}/two/${__ENV.PLACE}`); }
