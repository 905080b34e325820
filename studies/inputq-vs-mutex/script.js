// The original study's load as a k6 script: connect, call, log, close, sleep for a second.
// Switches, each an --env of k6:
//   TARGET   host:port, 127.0.0.1:50055 when not given
//   CONNECT  "every iteration" as in the original, or "per user": one connection kept
//   LOG      "off" for no line per call
//   SLEEP    seconds after each iteration; the original says 1, though its table can only have
//            come about with 0
import { sleep } from 'k6';
import { Counter } from 'k6/metrics';
import { Client, StatusOK } from 'k6/net/grpc';

const target = __ENV.TARGET || '127.0.0.1:50055';
const perUser = __ENV.CONNECT === 'per user';
const logging = __ENV.LOG !== 'off';
const pause = Number(__ENV.SLEEP || 1);

export const options = { vus: 10, duration: '30s' };

const failedCalls = new Counter('failed_calls');
const client = new Client();
client.load(['.'], 'counter.proto');
let connected = false;

export default function () {
  if (!connected) {
    client.connect(target, { plaintext: true });
    connected = perUser;
  }
  const response = client.invoke('counter.incrementCounter/increment', { value: 1 });
  if (response.status !== StatusOK) {
    failedCalls.add(1);
  }
  if (logging) {
    console.log(JSON.stringify(response.message));
  }
  if (!perUser) {
    client.close();
  }
  if (pause > 0) {
    sleep(pause);
  }
}
