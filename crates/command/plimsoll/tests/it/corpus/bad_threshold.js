// exit 104
// requests 0
// says p(95<5
export const options = { thresholds: { http_req_duration: ['p(95<5'] } };
export default function () {}
