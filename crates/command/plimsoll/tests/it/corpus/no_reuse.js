// exit 0
// requests 2
import http from 'k6/http';
export const options = { iterations: 1, noConnectionReuse: true };
export default function () {
  http.get(`${__ENV.URL}/text`);
  http.get(`${__ENV.URL}/text`);
}
