import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const reply = http.get(`${__ENV.TARGET}/`);
  check(reply, { 'is fine': (r) => r.status === 200 });
}
