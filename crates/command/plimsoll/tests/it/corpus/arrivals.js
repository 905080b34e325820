// exit 0
// not in k6: how many iterations there are, time says
// Of iterations that come while nobody is free, nobody takes care.
import { sleep } from 'k6';
export const options = {
  scenarios: {
    even: { executor: 'constant-arrival-rate', rate: 20, duration: '1s', preAllocatedVUs: 50, exec: 'short' },
    ramp: { executor: 'ramping-arrival-rate', startRate: 0, stages: [{ duration: '1s', target: 40 }], preAllocatedVUs: 50, exec: 'short' },
    few: { executor: 'constant-arrival-rate', rate: 20, duration: '1s', preAllocatedVUs: 1, exec: 'long' },
  },
  thresholds: {
    'iterations{scenario:even}': ['count>=18', 'count<=21'],
    'iterations{scenario:ramp}': ['count>=17', 'count<=21'],
    dropped_iterations: ['count>10'],
  },
};
export function short() { sleep(0.01); }
export function long() { sleep(0.5); }
