// exit 0
// requests 1
import http from 'k6/http';
const bytes = open('./lib/deeper/data.json', 'b');
export default function () {
  http.post(`${__ENV.URL}/bytes?n=${bytes.byteLength}`, bytes);
}
