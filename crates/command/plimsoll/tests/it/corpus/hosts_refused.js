// not in k6: it loads any host
// flags --allow shop.test
// exit 104
// requests 0
// says the host `192.0.2.7` is not this machine's loopback
import http from 'k6/http';

// That a name may be loaded does not make an address one that may.
export const options = { hosts: { 'shop.test': '192.0.2.7' } };

export default function () {
  http.get('http://shop.test/');
}
