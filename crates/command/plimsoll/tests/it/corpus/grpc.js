// exit 0
// checks 5 of 5
import { check } from 'k6';
import grpc from 'k6/net/grpc';
const client = new grpc.Client();
client.load(['lib'], 'counter.proto');
client.load(['lib/deeper'], '../talk.proto');
export default function () {
  client.connect(__ENV.CALLS, { plaintext: true });
  const counted = client.invoke('counter.incrementCounter/increment', { value: 1 });
  check(counted, { ok: (r) => r.status === grpc.StatusOK, message: (r) => r.message.message === 'Incremented value is 1' });
  const refused = client.invoke('counter.incrementCounter/increment', { value: -1 });
  check(refused, { refused: (r) => r.status === grpc.StatusInvalidArgument && r.error.code === 3 });
  const said = client.invoke('talk.Talk/Say', { text: 'hello' }, { metadata: { 'x-own': 'yes' }, tags: { kind: 'say' } });
  check(said, { said: (r) => r.message.text === 'hello', metadata: (r) => r.headers['x-own'][0] === 'yes' });
  client.close();
}
