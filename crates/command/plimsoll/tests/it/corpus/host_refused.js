// exit 104
// checks 1 of 1
// says if that is yours to load, say `--allow 192.0.2.1`
// not in k6: it sends anywhere
import { check } from 'k6';
import http from 'k6/http';
export default function () {
  check(http.get('http://192.0.2.1/'), { 'it was not sent': (r) => r.status === 0 && r.error.includes('--allow') });
}
