// exit 107
// says thrown in a module
// says lib/throws.js:3:
// says common_js_throws.js:6:
// The stack shows who required it.
const broken = require('./lib/throws.js');
exports.default = () => broken;
