// exit 0
// requests 1
// flags -e PLACE=here -e EMPTY= -e ALONE
import http from 'k6/http';
const place = __ENV.PLACE;
export default function () {
  http.get(`${__ENV.URL}/${place}?empty=[${__ENV.EMPTY}${__ENV.ALONE}]&none=${__ENV.NONE_SUCH}`);
}
