// A threshold on a part of a metric shows the metric too.
import { Counter, Rate, Trend } from 'k6/metrics';

new Counter('many');
new Trend('late');
const good = new Rate('good');

export const options = {
  thresholds: {
    'many{a:b}': ['count>=0'],
    'late{a:b}': ['p(95)<5'],
    'good{a:b}': ['rate>0.5'],
    'http_req_duration{name:x}': ['p(95)<500'],
    'checks{a:b}': ['rate>0.5'],
  },
};

export default function () {
  good.add(true);
}
