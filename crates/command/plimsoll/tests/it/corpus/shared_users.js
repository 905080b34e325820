// Scenarios that follow one another share their users, with what they have.
// checks 16 of 16
import exec from 'k6/execution';
import { check, sleep } from 'k6';

const scenario = (vus, startTime, more) =>
  ({ executor: 'per-vu-iterations', vus, startTime, maxDuration: '3s', gracefulStop: '0s', ...more });

export const options = {
  scenarios: {
    first: scenario(2, '0s', { env: { OWN: 'yes' } }),
    second: scenario(3, '3100ms'),
    third: scenario(1, '6200ms', { exec: 'last' }),
  },
};

let calls = 0;

export default function () {
  calls += 1;
  check(exec.vu, {
    'a user of at most three': (vu) => __VU <= 3 && vu.idInTest === __VU,
    'what it has done before counts': (vu) => __ITER === calls - 1 && vu.iterationInScenario === 0,
    'its variables': () => (__ENV.OWN === 'yes') === (exec.scenario.name === 'first'),
  });
  sleep(0.1);
}

export function last() {
  check(calls, { 'a user of an earlier scenario': (calls) => calls > 0 && __VU <= 3 });
}
