// exit 104
// requests 0
// says never
export const options = { scenarios: { a: { executor: 'never' } } };
export default function () {}
