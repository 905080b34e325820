// exit 0
// checks 1 of 1
// flags --summary-mode full
// prints ✓ prepared
import { check } from 'k6';
export function setup() { check(1, { prepared: (one) => one === 1 }); }
export default function () {}
