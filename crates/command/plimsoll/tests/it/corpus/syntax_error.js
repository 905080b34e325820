// exit 107
// says syntax_error.js:6:14
// says let b = a +;
export default function () {
  let a = 1;
  let b = a +;
}
