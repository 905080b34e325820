// exit 0
// requests 1
// prints iterations 1, setup 7, checks 1
// says failed to write no/such/folder.txt
// What cannot be written costs neither the rest nor the exit code.
import { check } from 'k6';
import http from 'k6/http';
export function setup() { return 7; }
export default function () {
  check(http.get(`${__ENV.URL}/text`), { 'it came': (r) => r.status === 200 });
}
export function handleSummary(data) {
  const checks = data.root_group.checks[0].passes;
  const lost = { 'no/such/folder.txt': 'lost' };
  return { ...lost, stdout: `iterations ${data.metrics.iterations.values.count}, setup ${data.setup_data}, checks ${checks}\n` };
}
