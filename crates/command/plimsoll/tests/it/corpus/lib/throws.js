'use strict';
exports.never = 1;
throw new Error('thrown in a module');
