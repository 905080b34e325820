// exit 0
// checks 1 of 1
import { check } from 'k6';
import { Client, StatusOK } from 'k6/net/grpc';
const client = new Client();
export default function () {
  client.connect(__ENV.CALLS, { plaintext: true, reflect: true });
  check(client.invoke('counter.incrementCounter/increment', { value: 2 }), { 'it was found': (r) => r.status === StatusOK });
  client.close();
}
