// exit 0
// requests 1
// checks 14 of 14
import { check } from 'k6';
import http from 'k6/http';
export default function () {
  const response = http.post(`${__ENV.URL}/json?q=1`, 'sent', { headers: { 'X-One': '1' } });
  check(response, {
    status: (r) => r.status === 200,
    status_text: (r) => r.status_text === '200 OK',
    url: (r) => r.url === `${__ENV.URL}/json?q=1`,
    proto: (r) => r.proto === 'HTTP/1.1',
    headers: (r) => r.headers['Content-Type'] === 'application/json',
    'header names are as Go writes them': (r) => r.headers['X-Answer-Id'] === '42',
    error: (r) => r.error === '' && r.error_code === 0,
    remote: (r) => r.remote_ip === '127.0.0.1' && r.remote_port > 0,
    timings: (r) => r.timings.duration >= r.timings.waiting && r.timings.blocked >= 0,
    'all timings': (r) => ['connecting', 'tls_handshaking', 'sending', 'receiving'].every((k) => r.timings[k] >= 0),
    request: (r) => r.request.method === 'POST' && r.request.url === r.url,
    'request body': (r) => r.request.body === 'sent',
    'request headers': (r) => r.request.headers['X-One'][0] === '1',
    'as JSON': (r) => JSON.parse(JSON.stringify(r)).status === 200,
  });
}
