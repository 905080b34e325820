// exit 0
// checks 2 of 2
// Sockets over TLS, to a server for whom nobody vouches.
import { check } from 'k6';
import ws from 'k6/ws';
import { WebSocket } from 'k6/experimental/websockets';
export default function () {
  const url = `${__ENV.SECURE_SOCKETS}/echo`;
  const response = ws.connect(url, () => {});
  check(response, { 'it is refused': (r) => r.status === 0 && r.error !== '' });
  const socket = new WebSocket(url);
  socket.onerror = (event) => check(event, { 'it is an error': (it) => it.error !== '' });
}
