// requests 3
// checks 3 of 3
import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const url = `${__ENV.URL}/text`;
  const header = (headers, name) => http.get(url, { headers }).request.headers[name];
  check(null, {
    'Host of the script': () => header({ Host: 'other.test' }, 'Host')[0] === 'other.test',
    'Host in lower case': () => header({ host: 'lower.test' }, 'Host')[0] === 'lower.test',
    'no other Host': () => header({}, 'Host') === undefined,
  });
}
