// exit 108
// says at the top
import exec from 'k6/execution';

exec.test.abort('at the top');

export default function () {}
