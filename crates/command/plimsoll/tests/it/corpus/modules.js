// exit 0
// requests 1
// Imports, and open() relative to the module that calls it.
import http from 'k6/http';
import whole, { add, name } from './lib/add.js';
import * as all from './lib/add.js';
export default function () {
  http.get(`${__ENV.URL}/${name}/${add(1, 2)}/${all.add(2, 2)}/${whole.length}`);
}
