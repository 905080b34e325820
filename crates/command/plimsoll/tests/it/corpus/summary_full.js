// exit 0
// checks 1 of 1
// flags --summary-mode full
// prints GROUP: front
import { check, group } from 'k6';
export default function () { group('front', () => check(1, { one: true })); }
