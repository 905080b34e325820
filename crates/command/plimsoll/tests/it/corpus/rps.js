// exit 0
// requests 11
// checks 1 of 1
// flags --rps 20
import { check } from 'k6';
import http from 'k6/http';
export default function () {
  const before = Date.now();
  for (let i = 0; i < 11; i += 1) http.get(`${__ENV.URL}/text`);
  check(Date.now() - before, { 'they were paced': (ms) => ms >= 400 });
}
