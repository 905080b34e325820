// exit 0
// requests 1
// checks 8 of 8
// An ECMAScript module that imports modules of CommonJS in all ways.
import http from 'k6/http';
import { check } from 'k6';
import basket, { total, missing } from './lib/basket.js';
import * as all from './lib/basket.js';
import wrapped, { double } from './lib/wrapped.js';
import compiled, { half } from './lib/compiled.js';
export { empty } from './lib/basket.js';
const required = require('./lib/basket.js');
export const options = { iterations: 1 };
export default function () {
  http.get(`${__ENV.URL}/${total([1, 2])}`);
  check(null, {
    'the default export is all of module.exports': () => basket.total === total,
    'so is what is required': () => required === basket,
    'as a whole it has the same names': () => all.total === total && Object.keys(all).sort().join() === 'empty,total',
    'a name that it does not have is undefined': () => missing === undefined && all.default === undefined,
    'it runs once': () => globalThis.baskets === 1,
    'a wrapper for several systems finds CommonJS': () => double(2) === 4 && wrapped.double === double,
    'what was compiled says which export is the default one': () => compiled() === 'default of compiled',
    'and has names': () => half(2) === 1,
  });
}
