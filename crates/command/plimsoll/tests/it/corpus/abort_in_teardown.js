// exit 108
// says in teardown
import exec from 'k6/execution';

export default function () {}

export function teardown() {
  exec.test.abort('in teardown');
}
