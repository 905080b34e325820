// exit 0
// checks 6 of 9
// Truthy values and functions, in and out of groups; a check that fails is no failure of the run.
import { check } from 'k6';
export const options = { iterations: 1 };
export default function () {
  const all = check({ a: 1 }, { 'a is 1': (v) => v.a === 1, 'a is 2': (v) => v.a === 2 });
  check(all, { 'one failed': (v) => v === false });
  check(null, { text: 'x', zero: 0, empty: '', object: {} }, { team: 'x' });
  check(check(1, { 'all hold': true }), { 'gives true': (v) => v });
}
