// exit 0
// says TypeError: not a function (no_function.js:7:
// says http.gett('http://127.0.0.1:1/', { tags: { name: 'a' } });
// says 12 more of: TypeError
import http from 'k6/http';
export const options = { iterations: 15 };
export default function () { http.gett('http://127.0.0.1:1/', { tags: { name: 'a' } }); }
