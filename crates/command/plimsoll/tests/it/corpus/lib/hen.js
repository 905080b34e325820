exports.early = 1;
exports.egg = require('./egg.js');
exports.late = 2;
