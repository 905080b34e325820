// exit 99
// not in k6: how many iterations there are by then, time says
import { sleep } from 'k6';
import http from 'k6/http';
export const options = { duration: '60s', thresholds: { http_req_failed: [{ threshold: 'rate<0.1', abortOnFail: true }] } };
export default function () {
  http.get(`${__ENV.URL}/status/500`);
  sleep(0.1);
}
