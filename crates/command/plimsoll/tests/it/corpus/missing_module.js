// exit 107
// says ./lib/none.js
import { x } from './lib/none.js';
export default function () { x(); }
