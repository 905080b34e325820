// exit 0
// requests 1
// not in k6: it fetches such modules
// A remote module of which there is a copy.
import http from 'k6/http';
import { greet } from 'https://jslib.example/greet/1.0.0/index.js';
export default function () { http.get(`${__ENV.URL}/${greet()}`); }
