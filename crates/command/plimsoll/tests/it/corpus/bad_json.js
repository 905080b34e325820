// exit 0
// requests 2
// says cannot parse json
// A body that is no JSON is an exception of the iteration.
import http from 'k6/http';
export const options = { iterations: 2 };
export default function () { console.log(http.get(`${__ENV.URL}/text`).json()); }
