// exit 0
// checks 2 of 2
// Sockets over TLS, to a server whom nobody has to vouch for.
import { check } from 'k6';
import ws from 'k6/ws';
import { WebSocket } from 'k6/websockets';
export const options = { insecureSkipTLSVerify: true };
export default function () {
  const url = `${__ENV.SECURE_SOCKETS}/echo`, got = [];
  const response = ws.connect(url, { unheardOf: 1 }, (socket) => {
    socket.on('open', () => socket.send('hello'));
    socket.on('message', (text) => { got.push(text); socket.close(); });
  });
  check(response, { 'it blocks': (r) => r.status === 101 && got[0] === 'hello' });
  const socket = new WebSocket(url);
  socket.onopen = () => socket.send('later');
  socket.onmessage = (event) => { check(event.data, { 'it does not': (text) => text === 'later' }); socket.close(); };
}
