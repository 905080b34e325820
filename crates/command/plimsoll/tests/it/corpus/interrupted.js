// exit 0
// not in k6: its log differs
// What is not over when its time is, is cut off and not counted.
import { sleep } from 'k6';
export const options = {
  scenarios: { slow: { executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '100ms' } },
  thresholds: { iterations: ['count==0'] },
};
export default function () { try { sleep(30); } finally { sleep(30); } }
