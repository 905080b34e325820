// exit 0
// says one 2 {"a":[1]}
// says a warning
// says an error
export default function () {
  console.log('one', 2, { a: [1] });
  console.warn('a warning');
  console.error('an error');
  console.debug('a detail');
}
