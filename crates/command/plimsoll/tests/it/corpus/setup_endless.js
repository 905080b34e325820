// exit 100
// requests 0
import http from 'k6/http';
export const options = { setupTimeout: '2s' };
export function setup() { for (;;); }
export default function () { http.get(`${__ENV.URL}/never`); }
