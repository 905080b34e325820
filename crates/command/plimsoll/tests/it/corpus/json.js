// exit 0
// checks 10 of 10
import { check } from 'k6';
import http from 'k6/http';
export default function () {
  const response = http.get(`${__ENV.URL}/json`);
  check(response, {
    whole: (r) => r.json().ok === true,
    name: (r) => r.json('name') === 'ann',
    length: (r) => r.json('items.#') === 2,
    place: (r) => r.json('items.1.id') === 2,
    all: (r) => r.json('items.#.price').join() === '2.5,4',
    query: (r) => r.json('items.#(price>3).id') === 2,
    queries: (r) => r.json('items.#(price>1)#.id').join() === '1,2',
    nothing: (r) => r.json('none') === undefined,
    wildcard: (r) => r.json('na*') === 'ann',
  });
  let message = '';
  try { http.get(`${__ENV.URL}/text`).json(); } catch (error) { message = String(error); }
  check(message, { 'what is no JSON throws': (m) => m.length > 0 });
}
