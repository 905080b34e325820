// TLS to a server that speaks plain HTTP.
// checks 2 of 2
import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const reply = http.get(__ENV.URL.replace('http:', 'https:'));
  check(reply, {
    'its number': (reply) => reply.error_code === 1301,
    'its text': (reply) => reply.error === 'tls: first record does not look like a TLS handshake',
  });
}
