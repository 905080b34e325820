// exit 107
// says ran for
// says (endless_at_load.js:7
// says the limit is `--user-busy`
// not in k6: it runs for ever
let count = 0;
for (;;) count = Math.max(count, 1);
export default function () {}
