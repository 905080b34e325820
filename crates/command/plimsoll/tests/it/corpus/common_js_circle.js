// exit 0
// checks 2 of 2
// Modules that require one another see what was exported so far.
const { check } = require('k6');
const hen = require('./lib/hen.js');
exports.default = () => check(hen, {
  'the first one is whole at the end': (hen) => hen.early === 1 && hen.late === 2,
  'the second one saw half of it': (hen) => hen.egg.saw === '1 undefined',
});
