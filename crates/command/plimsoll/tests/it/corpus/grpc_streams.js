// exit 0
// checks 3 of 3
import { check } from 'k6';
import { Client, Stream } from 'k6/net/grpc';
const client = new Client();
client.load(['lib'], 'talk.proto');
export const options = { thresholds: { grpc_streams: ['count==2'], grpc_streams_msgs_sent: ['count==3'], grpc_streams_msgs_received: ['count==5'] } };
export default function () {
  if (__ITER === 0) client.connect(__ENV.CALLS, { plaintext: true });
  // Each stream may end first; a connection that is closed cancels the other.
  let ended = 0;
  const oneEnded = () => { ended += 1; if (ended === 2) client.close(); };
  const chat = new Stream(client, 'talk.Talk/Chat'), words = [];
  chat.on('data', (word) => words.push(word.text));
  chat.on('end', () => { check(words, { 'both came back': (all) => all.join() === 'a,b' }); oneEnded(); });
  chat.write({ text: 'a' });
  chat.write({ text: 'b' });
  chat.end();
  const repeat = new Stream(client, 'talk.Talk/Repeat');
  let count = 0;
  repeat.on('data', () => { count += 1; });
  repeat.on('end', () => { check(count, { 'three times': (n) => n === 3 }); oneEnded(); });
  // The method takes one message, so the server gets its end with it.
  repeat.write({ text: 'again', times: 3 });
  check(client, { 'it does not wait': () => words.length === 0 });
}
