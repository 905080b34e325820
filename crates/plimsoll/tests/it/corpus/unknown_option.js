// exit 0
// requests 1
// says nonesuch
import http from 'k6/http';
export const options = { nonesuch: 5 };
export default function () { http.get(`${__ENV.URL}/text`); }
