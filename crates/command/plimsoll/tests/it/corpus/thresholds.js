// exit 99
// requests 2
// says http_reqs
import http from 'k6/http';
export const options = { iterations: 2, thresholds: { http_reqs: ['count>5'], iterations: ['count==2'] } };
export default function () { http.get(`${__ENV.URL}/text`); }
