// exit 0
// requests 4
// Each user keeps its connection.
import http from 'k6/http';
export const options = { scenarios: { each: { executor: 'per-vu-iterations', vus: 2, iterations: 2 } } };
export default function () { http.get(`${__ENV.URL}/text`); }
