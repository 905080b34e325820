// exit 100
// requests 0
import { sleep } from 'k6';
import http from 'k6/http';
export const options = { setupTimeout: '200ms' };
export function setup() { sleep(30); }
export default function () { http.get(`${__ENV.URL}/never`); }
