// exit 0
// checks 3 of 3
// What is required on a condition need not be there.
const { check } = require('k6');
const found = [];
for (const name of ['fs', './lib/none.js', './lib/basket.js']) {
  try { require(name); found.push(name); } catch (error) { found.push(typeof error.message); }
}
exports.default = function () {
  let late = '';
  try { require('./lib/basket.js'); } catch (error) { late = String(error); }
  check(found, {
    'what is not there can be caught': ([fs, none]) => fs === 'string' && none === 'string',
    'a name may be computed': ([, , basket]) => basket === './lib/basket.js',
    'require() works only while the script is loaded': () => late.length > 0,
  });
};
