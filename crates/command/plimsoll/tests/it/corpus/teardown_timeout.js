// exit 101
// requests 1
import { sleep } from 'k6';
import http from 'k6/http';
export const options = { teardownTimeout: '200ms' };
export default function () { http.get(`${__ENV.URL}/text`); }
export function teardown() { sleep(30); }
