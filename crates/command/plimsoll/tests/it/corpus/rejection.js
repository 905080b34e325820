// exit 0
// requests 2
// says nobody caught this
// A rejection that nobody handles is an exception of the iteration.
import http from 'k6/http';
export const options = { iterations: 2 };
export default function () {
  http.get(`${__ENV.URL}/text`);
  Promise.reject(new Error('nobody caught this'));
}
