// exit 0
// checks 3 of 3
import { check } from 'k6';
import { total } from './lib/basket.js';
const url = import.meta.resolve('./lib/basket.js');
const again = require(url);
const users = open(import.meta.resolve('./lib/users.csv'));
export default function () {
  check(url, { 'a URL': (u) => u.startsWith('file:///') && u.endsWith('/lib/basket.js') });
  check(again, { 'the same module': (m) => m.total === total });
  check(users, { 'a file': (text) => text.length > 0 });
}
