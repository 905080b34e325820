// exit 107
// says common_js_missing.js:4:22: cannot read `lib/none.js`
// Told before anything runs.
const none = require('./lib/none.js');
exports.default = () => none;
