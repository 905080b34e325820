// exit 104
// requests 0
// says nope
export const options = { thresholds: { nope: ['count>5'] } };
export default function () {}
