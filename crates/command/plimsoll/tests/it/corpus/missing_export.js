// exit 107
// says subtract
// not in k6: it finds such a name when it is called
import { subtract } from './lib/add.js';
export default function () { subtract(1, 2); }
