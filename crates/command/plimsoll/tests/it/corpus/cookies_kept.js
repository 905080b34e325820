// exit 0
// requests 3
import http from 'k6/http';
export const options = { iterations: 2, noCookiesReset: true };
export default function () {
  if (__ITER === 0) http.get(`${__ENV.URL}/cookie`);
  http.get(`${__ENV.URL}/text`);
}
