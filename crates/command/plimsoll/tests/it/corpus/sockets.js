// exit 0
// checks 6 of 6
// A socket that blocks its user.
import { check } from 'k6';
import ws from 'k6/ws';
export const options = { thresholds: { ws_sessions: ['count==1'], ws_msgs_sent: ['count==2'], ws_msgs_received: ['count==2'], ws_ping: ['max>=0'] } };
export default function () {
  const got = [];
  const response = ws.connect(`${__ENV.SOCKETS}/echo`, { headers: { 'X-Own': '1' }, tags: { kind: 'echo' } }, (socket) => {
    socket.on('open', () => { got.push('open'); socket.send('hello'); socket.sendBinary(new Uint8Array([1, 2]).buffer); });
    // Its opening, two messages and a pong.
    const has = (what) => { got.push(what); if (got.length === 4) socket.close(); };
    socket.on('message', (text) => { has(text); socket.ping(); });
    socket.on('binaryMessage', (bytes) => has(bytes.byteLength));
    socket.on('pong', () => has('pong'));
    socket.on('close', () => got.push('close'));
    socket.setTimeout(() => socket.close(), 20000);
  });
  check(response, { 'it was switched': (r) => r.status === 101 });
  check(got, {
    opened: (all) => all[0] === 'open', text: (all) => all.includes('hello'), bytes: (all) => all.includes(2),
    pong: (all) => all.includes('pong'), closed: (all) => all[all.length - 1] === 'close',
  });
}
