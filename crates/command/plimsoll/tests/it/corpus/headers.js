// exit 0
// requests 3
import http from 'k6/http';
export const options = { userAgent: 'corpus/1' };
export default function () {
  const url = `${__ENV.URL}/text`;
  http.get(url, { headers: { 'X-One': 'a b', 'x-two': 2, Accept: 'text/plain' } });
  http.get(url, { headers: { 'User-Agent': 'mine' } });
  http.post(url, 'x', { headers: { 'Content-Type': 'text/csv', Host: 'other.example' } });
}
