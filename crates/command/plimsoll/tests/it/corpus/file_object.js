// What http.file gives is an object with three properties, which may be changed.
// requests 1
// checks 5 of 5
import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const text = http.file('abc', 'a.txt', 'text/plain');
  const bytes = http.file(new Uint8Array([97, 98]).buffer, 'b.bin');
  check(text, {
    'as JSON': () => JSON.stringify(text) === '{"data":"abc","filename":"a.txt","content_type":"text/plain"}',
    'its properties': () => Object.keys(text).join() === 'data,filename,content_type',
    'text stays text': () => text.data === 'abc',
    'bytes stay bytes': () => bytes.data.byteLength === 2 && bytes.content_type === 'application/octet-stream',
    'it has a name of its own': () => http.file('abc').filename !== '',
  });
  text.filename = 'renamed.txt';
  text.data = 'changed';
  http.post(`${__ENV.URL}/text`, { text });
}
