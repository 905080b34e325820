// exit 104
// says option `scenarios.a.duration`: expected a duration such as `10s`, found none
// says option `scenarios.a.duraton`: `constant-vus` has no such option; did you mean `duration`?
export const options = { scenarios: { a: { executor: 'constant-vus', vus: 1, duraton: '1s' } } };
export default function () {}
