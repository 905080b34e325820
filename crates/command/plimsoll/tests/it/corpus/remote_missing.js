// exit 107
// says remote_missing.js:7:19: `https://jslib.example/other.js` is not fetched
// says save it as `vendor/jslib.example/other.js`, then run `plimsoll script vendor remote_missing.js`
// not in k6: it fetches such modules
// A remote module without a copy.
import http from 'k6/http';
import other from 'https://jslib.example/other.js';
export default function () { http.get(other); }
