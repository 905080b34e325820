// exit 0
// requests 6
// checks 1 of 1
// Which statuses are failures is for the script to say.
import { check } from 'k6';
import http from 'k6/http';
export const options = { thresholds: { http_req_failed: ['rate==0.4'], 'http_req_duration{expected_response:true}': ['avg>=0'] } };
export default function () {
  const url = __ENV.URL;
  http.get(`${url}/text`);
  http.get(`${url}/status/404`);
  http.get(`${url}/status/404`, { responseCallback: http.expectedStatuses(404) });
  http.get(`${url}/status/500`, { responseCallback: null });
  http.setResponseCallback(http.expectedStatuses({ min: 500, max: 599 }, 404));
  http.get(`${url}/status/500`);
  check(http.get(`${url}/text`), { 'the error code is of the status': (r) => r.error_code === 0 });
}
