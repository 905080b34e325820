// exit 0
// checks 5 of 5
// How a response shows the URL that it came from, and that which was asked for.
import { check } from 'k6';
import http from 'k6/http';
const { URL } = __ENV;
const shown = (path) => {
  const response = http.get(URL + path);
  return response.url === response.request.url && response.url.replace(URL, '');
};
export default function () {
  check(shown, {
    path: (s) => s('/text x|ü') === '/text%20x%7C%C3%BC',
    encoded: (s) => s('/a%2fb%41') === '/a%2fb%41',
    query: (s) => s('/text?q=a%20b&c=d+e') === '/text?q=a%20b&c=d+e',
    fragment: (s) => s('/text#a b') === '/text#a%20b',
    bare: (s) => s('') === '',
  });
}
