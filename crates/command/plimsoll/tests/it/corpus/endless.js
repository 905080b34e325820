// exit 107
// says ran for
// says (endless.js:7
// says the limit is `--user-busy`
// not in k6: it runs for ever
export const options = { scenarios: { a: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: '60s' } } };
export default function () { for (;;) { try { throw 1; } catch (e) { /* and again */ } } }
