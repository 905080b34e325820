// exit 0
// checks 4 of 4
// Sockets as browsers have them.
import { check } from 'k6';
import { WebSocket } from 'k6/websockets';
export default function () {
  const socket = new WebSocket(`${__ENV.SOCKETS}/echo`, null, { headers: { 'X-Own': '2' } });
  socket.binaryType = 'arraybuffer';
  const got = [];
  socket.onopen = () => { check(socket.readyState, { 'it is open': (s) => s === 1 }); socket.send('one'); socket.send(new Uint8Array([7]).buffer); };
  socket.addEventListener('message', (event) => {
    got.push(typeof event.data === 'string' ? event.data : new Uint8Array(event.data)[0]);
    if (got.length === 2) socket.close(1000);
  });
  socket.onclose = () => check(got, { text: (all) => all[0] === 'one', bytes: (all) => all[1] === 7, both: (all) => all.length === 2 });
}
