// An async function is no test of a check: it throws before anything is counted of it.
// checks 2 of 2
import { check, group } from 'k6';

const throws = (call) => {
  try { call(); return false; } catch (error) { return true; }
};

export default function () {
  const threw = throws(() => check(1, { first: () => true, second: async () => true, third: () => true }));
  check(threw, { 'check and group throw': (threw) => threw && throws(() => group('inner', async () => {})) });
}
