// exit 0
// requests 2
// checks 5 of 5
// Enums and parameter properties, which are more than types.
import http from 'k6/http';
import { check } from 'k6';
import { Method, Plan } from './lib/plan.ts';
export const options: { iterations: number } = { iterations: 1 };
const enum Answer { Fine = 1 << 3, Also, }
enum Path { Home = 'home', Cart = `${'cart'}` }
export default function (): void {
  new Plan(Method.Get, Path.Home).run(http);
  new Plan(Method.Post, Path.Cart, 'body').run(http);
  check(null, {
    'numbers go on': () => Method.Get === 0 && Method.Post === 1 && Method.Last === 6,
    'numbers have their names': () => Method[1] === 'Post' && Object.keys(Method).length === 8,
    'texts have none': () => Object.keys(Path).join() === 'Home,Cart',
    'constants are there': () => Answer.Fine === 8 && Answer.Also === 9,
    'properties are those of the object': () => JSON.stringify(new Plan(Method.Get, 'x')) === '{"name":"plan","method":0,"path":"x","body":""}',
  });
}
