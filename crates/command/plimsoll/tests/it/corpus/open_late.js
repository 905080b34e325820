// exit 0
// checks 1 of 1
import { check } from 'k6';
export default function () {
  let message = '';
  try { open('./lib/deeper/data.json'); } catch (error) { message = String(error); }
  check(message, { 'open() works only while the script is loaded': (m) => m.length > 0 });
}
