// exit 0
// prints counted
// A rate is over all of the run: `setup` and `teardown` count.
import { sleep } from 'k6';
export const options = { iterations: 10 };
export function setup() { sleep(1); }
export default function () {}
export function teardown() { sleep(0.5); }
export function handleSummary(data) {
  return { stdout: data.metrics.iterations.values.rate < 7 && data.state.testRunDurationMs > 1400 ? 'counted' : 'not counted' };
}
