import http from 'k6/http';
import exec from 'k6/execution';
import { check, group, sleep } from 'k6';

// The target comes from the command line: -e URL=http://127.0.0.1:8080
const URL = __ENV.URL || 'http://127.0.0.1:8080';

export const options = {
  scenarios: {
    browse: {
      executor: 'ramping-vus',
      stages: [
        { duration: '10s', target: 10 },
        { duration: '30s', target: 10 },
        { duration: '5s', target: 0 },
      ],
    },
  },
  thresholds: {
    http_req_failed: ['rate<0.01'],
    http_req_duration: ['p(95)<500', 'p(99)<1000'],
  },
};

// Once, before all users. What it returns is the argument of the other functions.
export function setup() {
  const response = http.get(`${URL}/`);
  if (response.status !== 200) {
    exec.test.abort(`${URL} answers with ${response.status}: is it the right one?`);
  }
  return { started: Date.now() };
}

// What each user does, over and over.
export default function () {
  group('home', () => {
    const response = http.get(`${URL}/`);
    check(response, {
      'status is 200': (response) => response.status === 200,
      'it has a body': (response) => response.body.length > 0,
    });
  });
  sleep(1);
}

// Once, after all users.
export function teardown(data) {
  console.log(`it took ${Math.round((Date.now() - data.started) / 1000)} s`);
}
