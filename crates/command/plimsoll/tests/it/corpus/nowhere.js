// URLs that lead nowhere: requests that failed, of which nothing is sent.
// exit 99
// requests 2
// checks 2 of 2
import http from 'k6/http';
import { check } from 'k6';

export const options = { iterations: 1, thresholds: { http_req_failed: ['rate<0.01'], http_reqs: ['count==13'] } };

export default function () {
  const url = __ENV.URL;
  const urls = [`${__ENV.FORGOTTEN}/hello`, '', '/rel', 'ftp://127.0.0.1/', 'http://'];
  const codes = urls.map((url) => [http.get(url).status, http.get(url).error_code].join());
  check(codes, { 'they are not sent': (codes) => codes.every((code) => code === '0,1000') });
  const all = http.batch([url, 'nope/x', url]).map((r) => r.status).join();
  check(all, { 'those beside them are': (all) => all === '200,0,200' });
}
