// exit 0
// requests 3
// says it is broken
// An exception ends its iteration, is told, and counts as an iteration.
import http from 'k6/http';
export const options = { iterations: 3, thresholds: { iterations: ['count==3'] } };
export default function () {
  http.get(`${__ENV.URL}/text`);
  throw new TypeError('it is broken');
}
