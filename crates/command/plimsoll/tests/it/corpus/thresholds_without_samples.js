// A rate without samples breaks no threshold, other metrics without samples are 0.
// exit 99
// prints ✓ 'rate>0.9' rate=0.00%
// prints ✗ 'count>0' count=0
// prints checks_total.......: 0
import { Counter, Rate, Trend } from 'k6/metrics';

new Rate('good');
new Trend('late');
new Counter('many');

export const options = {
  thresholds: {
    good: ['rate>0.9'],
    late: ['p(95)<5'],
    many: ['count>0'],
    checks: ['rate==1'],
    http_req_failed: ['rate<0.1'],
  },
};

export default function () {}
