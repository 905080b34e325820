// exit 0
// says 37 more of: failed to connect
// Of what goes wrong in the same way again and again, three lines are enough.
import http from 'k6/http';
export const options = { vus: 2, iterations: 40 };
export default function () { http.get(`http://127.0.0.1:1/${__ITER}`); }
