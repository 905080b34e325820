// exit 0
// not in k6: how many iterations there are, time says
import { sleep } from 'k6';
export const options = {
  scenarios: { ramp: { executor: 'ramping-vus', startVUs: 1, stages: [{ duration: '2s', target: 3 }, { duration: '2s', target: 0 }], gracefulRampDown: '0s' } },
  thresholds: { iterations: ['count>5'] },
};
export default function () { sleep(0.05); }
