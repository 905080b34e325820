// exit 0
// requests 1
// checks 1 of 1
// What bundlers make for the target `commonjs`: a table of modules, those of k6 required from inside.
(() => {
  "use strict";
  var modules = {
    11: (module) => { module.exports = require("k6/http"); },
    12: (module) => { module.exports = require("k6"); },
  };
  var cache = {};
  function load(id) {
    if (cache[id] !== undefined) return cache[id].exports;
    var module = (cache[id] = { exports: {} });
    modules[id](module, module.exports, load);
    return module.exports;
  }
  load.n = (module) => {
    var getter = module && module.__esModule ? () => module.default : () => module;
    return Object.assign(getter, { a: getter });
  };
  load.d = (exports, getters) => {
    for (var key in getters) Object.defineProperty(exports, key, { enumerable: true, get: getters[key] });
  };
  var found = {};
  load.d(found, { default: () => run, options: () => options });
  var http = load.n(load(11));
  var k6 = load(12);
  const options = { iterations: 1 };
  function run() {
    const reply = http().get(`${__ENV.URL}/bundle`);
    (0, k6.check)(reply, { "it is answered": (r) => r.status === 200 });
  }
  var target = exports;
  for (var name in found) target[name] = found[name];
  if (found.__esModule) Object.defineProperty(target, "__esModule", { value: true });
})();
