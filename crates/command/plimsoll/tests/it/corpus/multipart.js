// exit 0
// requests 1
// not in k6: it sends the parts in an order that changes from run to run
import http from 'k6/http';
const file = open('./lib/deeper/data.json', 'b');
export default function () {
  http.post(`${__ENV.URL}/upload`, { note: 'a note', doc: http.file(file, 'doc.json', 'application/json') });
}
