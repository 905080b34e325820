// CSV: all records for all users, and one after the other.
// checks 9 of 9
import { open } from 'k6/experimental/fs';
import csv from 'k6/experimental/csv';
import { check } from 'k6';

const path = './lib/users.csv';
const all = await csv.parse(await open(path), {});
const some = await csv.parse(await open(path), { skipFirstLine: true, toLine: 2 });
const objects = await csv.parse(await open(path), { asObjects: true });
const parser = new csv.Parser(await open(path), { fromLine: 2 });
const throws = (call) => {
  try { call(); return false; } catch (error) { return true; }
};
const file = await open(path);
const refused = [{ fromLine: 3, toLine: 2 }, { asObjects: true, skipFirstLine: true }, { delimiter: '::' }]
  .every((options) => throws(() => new csv.Parser(file, options)));

export default async function () {
  check(all, {
    'all records': (all) => all.length === 4 && all[1].join('|') === 'ann|31|says "hello", twice',
    'line breaks': (all) => all[3][2] === 'two\nlines',
    'they cannot be changed': (all) => throws(() => all.push([])) || all.length === 4,
  });
  check(some, { 'some records': (some) => some.map(([name]) => name).join() === 'ann,bob' });
  check(objects, { 'objects': ([{ name, age, note }]) => name === 'ann' && age === '31' && note.startsWith('says') });
  const { done, value } = await parser.next();
  check(value, { 'one after the other': () => !done && value.join() === 'bob,28,' });
  await parser.next();
  check(await parser.next(), { 'the end': ({ done, value }) => done && value.length === 0 });
  check(refused, { 'options that do not go together': (refused) => refused });
  check(throws(() => new csv.Parser(file)), { 'only while it loads': (throws) => throws });
}
