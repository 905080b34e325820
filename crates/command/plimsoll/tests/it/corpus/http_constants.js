// exit 0
// requests 1
// checks 3 of 3
import { check } from 'k6';
import http, { get, TLS_1_2, OCSP_STATUS_GOOD } from 'k6/http';
import * as everything from 'k6/http';
export default function () {
  get(`${__ENV.URL}/text`);
  check(TLS_1_2, { 'by name': (name) => name === 'tls1.2' && name === http.TLS_1_2 });
  check(OCSP_STATUS_GOOD, { 'of OCSP': (name) => name === http.OCSP_STATUS_GOOD });
  check(everything, { 'all at once': (all) => all.TLS_1_0 === http.TLS_1_0 && all.OCSP_REASON_AA_COMPROMISE === 'aa_compromise' });
}
