// exit 107
// requests 0
// says no token
import http from 'k6/http';
export function setup() { throw new Error('no token'); }
export default function () { http.get(`${__ENV.URL}/never`); }
