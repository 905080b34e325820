// exit 108
// says in a user
import exec from 'k6/execution';

if (__VU > 0) exec.test.abort('in a user');

export default function () {}
