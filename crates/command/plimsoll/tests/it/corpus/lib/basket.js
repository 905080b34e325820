'use strict';
const { round } = require('./deeper/round.js');
globalThis.baskets = (globalThis.baskets || 0) + 1;
exports.total = (prices) => round(prices.reduce((sum, price) => sum + price, 0));
exports.empty = [];
