const { name } = require('./name.js');
exports.greet = () => `hello-${name}`;
