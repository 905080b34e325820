// exit 0
// requests 1
// checks 2 of 2
import { check } from 'k6';
import http from 'k6/http';
export default function () {
  check(http.get(`${__ENV.URL}/slow`, { timeout: '1s' }), {
    'it has no status': (r) => r.status === 0,
    'it says why': (r) => r.error_code === 1050 && r.error === 'request timeout',
  });
}
