// Files that are read in pieces.
// checks 9 of 9
import { open, SeekMode } from 'k6/experimental/fs';
import { check } from 'k6';

const file = await open('./lib/users.csv');
const fault = async (call) => {
  try { await call(); return ''; } catch (error) { return `${error.name}`; }
};
const missing = await fault(() => open('./lib/none.csv'));
const folder = await fault(() => open('./lib'));
const unnamed = [await fault(() => open('')), await fault(() => open())];

const text = (bytes) => String.fromCharCode(...bytes);

export default async function () {
  const bytes = new Uint8Array(8);
  const { name, size } = await file.stat();
  const first = await file.read(bytes);
  const begin = text(bytes);
  const place = await file.seek(-4, SeekMode.End);
  const count = await file.read(bytes);
  check(null, {
    'name and size': () => name === 'users.csv' && size > 60,
    'the beginning': () => first === 8 && begin === 'name,age',
    'the end': () => place === size - 5 && count === 5 && text(bytes.slice(0, 5)) === 'nes"\n',
  });
  check(await file.read(bytes), { 'nothing is left': (count) => count === null });
  check(await file.seek(0, SeekMode.Start), { 'at the beginning': (place) => place === 0 });
  check(await fault(() => file.seek(-1, SeekMode.Start)), { 'not before it': (name) => name === 'TypeError' });
  check(await fault(() => file.read('x')), { 'only into bytes': (name) => name === 'TypeError' });
  check(await fault(() => open('./lib/users.csv')), { 'only while it loads': (name) => name === 'ForbiddenError' });
  check(null, {
    'what cannot be opened': () => missing === 'NotFoundError' && folder === 'InvalidResourceError' && unnamed.join() === 'TypeError,TypeError',
  });
}
