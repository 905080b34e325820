// One GET per iteration, as fast as replies come.
import http from "k6/http";

export default function () {
  http.get(`http://${__ENV.TARGET}/`);
}
