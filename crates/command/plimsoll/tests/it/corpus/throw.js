// exit 0
// requests 0
// checks 1 of 1
import { check } from 'k6';
import http from 'k6/http';
export const options = { throw: true };
export default function () {
  let message = '';
  try { http.get('http://127.0.0.1:1/'); } catch (error) { message = String(error); }
  check(message, { 'it threw': (m) => m.includes('refused') });
}
