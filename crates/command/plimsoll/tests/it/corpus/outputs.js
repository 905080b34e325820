// exit 0
// requests 1
// flags --tag team=x --tag place=here,there -o json=samples.json -o csv=samples.csv
import http from 'k6/http';
export default function () { http.get(`${__ENV.URL}/text`); }
