// exit 0
// requests 1
// says nonesuch
// says did you mean `userAgent`?
import http from 'k6/http';
export const options = { nonesuch: 5, userAgen: 'x' };
export default function () { http.get(`${__ENV.URL}/text`); }
