// exit 0
// requests 1
import http from 'k6/http';
const file = open('./lib/deeper/data.json', 'b');
export default function () {
  http.post(`${__ENV.URL}/upload`, { note: 'a note', doc: http.file(file, 'doc.json', 'application/json') });
}
