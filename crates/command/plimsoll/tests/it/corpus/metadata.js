// exit 0
// checks 6 of 6
import { check } from 'k6';
import exec from 'k6/execution';
export default function () {
  const { metadata } = exec.vu.metrics;
  metadata.order = 7;
  metadata['trace'] = 'a';
  let refused = '';
  try { metadata.list = {}; } catch (error) { refused = error.name; }
  check(metadata, {
    'values are texts': (m) => m.order === '7' && m.trace === 'a',
    'there is no other': (m) => m.none === undefined && !('none' in m),
    'names': (m) => Object.keys(m).sort().join() === 'order,trace',
    'an object is refused': () => refused === 'TypeError',
    'no tag': () => exec.vu.metrics.tags.order === undefined,
  });
  delete metadata.order;
  check(exec.vu.metrics.metadata, { 'gone': (m) => m.order === undefined && m.trace === 'a' });
}
