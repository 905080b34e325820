// exit 0
// Arrivals last as long as they are to, also after the last one.
export const options = {
  scenarios: { few: { executor: 'constant-arrival-rate', rate: 2, duration: '2s', preAllocatedVUs: 2 } },
  thresholds: { iterations: ['rate<2.6'] },
};
export default function () {}
