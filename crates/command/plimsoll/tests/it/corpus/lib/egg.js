const hen = require('./hen.js');
exports.saw = `${hen.early} ${hen.late}`;
