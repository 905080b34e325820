// exit 0
// checks 10 of 10
// prints counted
// A rate is over all of the run, `setup` and `teardown` count; who runs these is no user of a scenario.
import { check, sleep } from 'k6';
import exec from 'k6/execution';
export const options = { iterations: 10 };
export function setup() { sleep(1); }
export default function () { check(exec.instance, { 'one user': (i) => i.vusInitialized === 1 }); }
export function teardown() { sleep(0.5); }
export function handleSummary(data) {
  return { stdout: data.metrics.iterations.values.rate < 7 && data.state.testRunDurationMs > 1400 ? 'counted' : 'not counted' };
}
