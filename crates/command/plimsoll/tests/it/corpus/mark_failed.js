// exit 110
// requests 2
import exec from 'k6/execution';
import http from 'k6/http';
export const options = { iterations: 2 };
export default function () {
  exec.test.fail('not good');
  http.get(`${__ENV.URL}/text`);
}
