// exit 0
// checks 1 of 1
// flags --min-iteration-duration 200ms -i 2
import { check } from 'k6';
let before;
export default function () {
  if (__ITER === 1) check(Date.now() - before, { 'the next one waited': (ms) => ms >= 190 });
  before = Date.now();
}
