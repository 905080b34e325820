// exit 0
// prints ended early
// A ramp is over when nobody is left who could begin anything.
import { sleep } from 'k6';
export const options = { stages: [{ duration: '500ms', target: 2 }, { duration: '500ms', target: 0 }, { duration: '40s', target: 0 }] };
export default function () { sleep(0.05); }
export function handleSummary(data) {
  return { stdout: data.state.testRunDurationMs < 20000 ? 'ended early' : 'ended late' };
}
