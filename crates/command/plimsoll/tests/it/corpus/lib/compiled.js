"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.half = void 0;
const half = (number) => number / 2;
exports.half = half;
function default_1() { return 'default of compiled'; }
exports.default = default_1;
