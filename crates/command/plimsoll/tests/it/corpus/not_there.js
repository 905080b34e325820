// exit 0
// says not_there.js:11:
// An exception is told where something was not there, and not where the last call was.
import { check } from 'k6';
export const options = { iterations: 1 };
export default function () {
  const order = { lines: undefined };
  check(order, { 'it is one': (it) => typeof it === 'object' });

  const first =
    order.lines.first;
  return first;
}
