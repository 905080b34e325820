// exit 107
// says memory (memory.js:
// says the limit is `--user-memory`
// not in k6: it takes what there is
export default function () { const all = []; for (;;) all.push(new Array(10000).fill('x')); }
