// exit 0
// requests 0
// checks 2 of 2
import { check } from 'k6';
import http from 'k6/http';
export const options = { thresholds: { http_req_failed: ['rate==1'] } };
export default function () {
  check(http.get('http://127.0.0.1:1/'), {
    'nobody is there': (r) => r.status === 0 && r.error_code === 1212,
    'there is no body': (r) => r.body === null,
  });
}
