import http from 'k6/http';
import { check, sleep } from 'k6';

export const options = {
  vus: 10,
  duration: '30s',
};

// What each user does, over and over. The target comes from the command line: -e URL=http://127.0.0.1:8080
export default function () {
  const response = http.get(__ENV.URL || 'http://127.0.0.1:8080/');
  check(response, { 'status is 200': (response) => response.status === 200 });
  sleep(1);
}
