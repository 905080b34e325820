// exit 0
// checks 1 of 1
// not in k6: its stack is so large that it takes minutes
import { check } from 'k6';
const deep = (n) => deep(n + 1) + 1;
export default function () {
  let message = '';
  try { deep(0); } catch (error) { message = 'caught'; }
  check(message, { 'too deep is an exception': (m) => m === 'caught' });
}
