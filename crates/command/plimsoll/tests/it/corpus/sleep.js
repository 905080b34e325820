// exit 0
// checks 1 of 1
import { check, sleep } from 'k6';
export const options = { iterations: 1 };
export default function () {
  const before = Date.now();
  sleep(0.05);
  check(Date.now() - before, { 'it slept': (ms) => ms >= 49 });
}
