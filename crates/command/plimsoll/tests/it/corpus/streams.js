// Streams that a script reads and fills.
// checks 5 of 5
import { ReadableStream } from 'k6/experimental/streams';
import { check } from 'k6';

const read = async (stream) => {
  const chunks = [];
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return chunks;
    chunks.push(value);
  }
};

export default async function () {
  let number = 0;
  const numbers = new ReadableStream({
    start(controller) { controller.enqueue('first'); },
    pull(controller) {
      number += 1;
      if (number < 3) controller.enqueue(number); else controller.close();
    },
  });
  check(await read(numbers), { 'chunks in order': (chunks) => chunks.join() === 'first,1,2' });

  const late = new ReadableStream({
    start(controller) { setTimeout(() => { controller.enqueue('late'); controller.close(); }, 20); },
  });
  check(late, { 'not locked': (late) => late.locked === false });
  check(await read(late), { 'what comes later': ([chunk]) => chunk === 'late', 'locked': () => late.locked === true });

  let why = '';
  await read(new ReadableStream({ pull(controller) { controller.error('broken'); } })).catch((error) => { why = error; });
  check(why, { 'errors': (why) => why === 'broken' });
}
