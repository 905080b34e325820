// exit 0
// requests 1
// flags --no-thresholds
import http from 'k6/http';
export const options = { thresholds: { http_reqs: ['count>5'] } };
export default function () { http.get(`${__ENV.URL}/text`); }
