// exit 0
// requests 2
// says not today
// fail() ends the iteration, and the user goes on.
import { fail } from 'k6';
import http from 'k6/http';
export const options = { iterations: 2 };
export default function () {
  http.get(`${__ENV.URL}/text`);
  fail('not today');
  http.get(`${__ENV.URL}/never`);
}
