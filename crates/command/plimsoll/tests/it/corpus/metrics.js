// exit 0
// checks 6 of 6
import { check } from 'k6';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const counter = new Counter('my_counter'), gauge = new Gauge('my_gauge'), rate = new Rate('my_rate');
const trend = new Trend('my_trend'), time = new Trend('my_time', true);
export const options = {
  iterations: 2,
  thresholds: {
    my_counter: ['count==7'],
    'my_counter{kind:odd}': ['count==2'],
    my_gauge: ['value==4'],
    my_rate: ['rate==0.5'],
    my_trend: ['avg==2', 'p(50)==2', 'max==3'],
    my_time: ['med==1500'],
  },
};
export default function () {
  check(counter.add(2.5), { 'it was added': (v) => v === true });
  counter.add(1, { kind: 'odd' });
  gauge.add(9);
  gauge.add(4);
  rate.add(true);
  rate.add(0);
  [1, 2, 3].forEach((v) => trend.add(v));
  time.add(1500);
  check(trend, { 'it has a name': (t) => t.name === 'my_trend' });
  check(counter.add('x'), { 'what is no number is none': (v) => v === false });
}
