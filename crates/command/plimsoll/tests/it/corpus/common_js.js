// exit 0
// requests 1
// checks 4 of 4
// A script of CommonJS, which requires others.
const http = require('k6/http');
const { check } = require('k6');
const basket = require('./lib/basket.js');
const { add } = require('./lib/add.js');
exports.options = { iterations: 1 };
exports.default = function () {
  http.get(`${__ENV.URL}/${basket.total([1, 2])}`);
  check(null, {
    'of an ECMAScript module there is its namespace': () => add(1, 2) === 3,
    'it is default by that name': () => require_default === 'default of add',
    'it is the body of a function': () => self === module.exports && typeof __filename === 'undefined',
    'its code is strict': () => (function () { return this === undefined; })(),
  });
};
const self = this;
const require_default = require('./lib/add.js').default;
