// exit 0
// checks 2 of 2
import { check, randomSeed } from 'k6';
export const options = { iterations: 1 };
export default function () {
  const draw = () => [1, 2, 3].map(() => Math.random());
  randomSeed(7);
  const first = draw();
  randomSeed(7);
  check(draw(), { 'the same again': (again) => JSON.stringify(again) === JSON.stringify(first) });
  check(first, { 'from 0 to 1': (all) => all.every((x) => x >= 0 && x < 1) });
}
