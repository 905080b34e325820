// exit 0
// requests 3
import http from 'k6/http';
export default function () {
  http.post(`${__ENV.URL}/form`, { a: '1', b: 'two words', c: 'ü&=' });
  http.put(`${__ENV.URL}/form`, { only: 5 }, { headers: { 'X-One': '1' } });
  http.post(`${__ENV.URL}/empty`);
}
