// exit 0
// checks 1 of 1
// What a run takes begins with `setup`.
import { check, sleep } from 'k6';
import exec from 'k6/execution';
export function setup() { sleep(0.3); }
export default function () {
  const took = exec.instance.currentTestRunDuration;
  check(took, { 'setup is a part of it': () => took >= 300 && took < 60000 });
}
