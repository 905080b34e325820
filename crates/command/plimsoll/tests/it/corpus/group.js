// exit 0
// checks 3 of 3
// Groups give what their function gives, nest, and are left when it throws.
import { check, group } from 'k6';
import exec from 'k6/execution';
export const options = { iterations: 2, thresholds: { 'checks{group:::outer::inner}': ['rate==1'], group_duration: ['avg>=0'] } };
export default function () {
  if (__ITER > 0) return;
  const given = group('outer', () => {
    try {
      group('inner', () => {
        check(exec.vu.tags.group, { 'inside of both': (tag) => tag === '::outer::inner' });
        throw new Error('left');
      });
    } catch (error) {
      check(exec.vu.tags.group, { 'back in the outer one': (tag) => tag === '::outer' });
    }
    return 7;
  });
  check(given, { 'the value comes back': (v) => v === 7 });
}
