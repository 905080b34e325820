import { check, group } from 'k6';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const counter = new Counter('my_counter'), gauge = new Gauge('my_gauge'), rate = new Rate('my_rate');
const trend = new Trend('my_trend'), time = new Trend('my_time', true), timeGauge = new Gauge('gauge_time', true);
const timeCounter = new Counter('counter_time', true);
export const options = {
  iterations: 3,
  summaryTrendStats: ['avg', 'count', 'p(99.99)', 'med', 'p(90)'],
  thresholds: {
    my_time: ['p(99)<5000000', 'avg>1'],
    my_trend: ['med<2'],
    'my_trend{a:b}': ['avg<1'],
    'my_counter{a:b}': ['count<10'],
    'my_counter{a:zz,b:c}': ['count<10'],
    gauge_time: ['value<3'],
    counter_time: ['count>1'],
    my_rate: ['rate<0.00001'],
    checks: ['rate>0.5'],
  },
};
export default function () {
  counter.add(0.5, { a: 'b' });
  counter.add(1.25);
  gauge.add(10000000.5);
  rate.add(__ITER == 0);
  [0.5, 3, 4000].forEach((value) => trend.add(value, { a: 'b' }));
  [0.5, 1500.5, 61216, 3661824].forEach((value) => time.add(value));
  timeGauge.add(1500.5);
  timeCounter.add(90000);
  check(null, { 'in none — ü': () => true });
  group('outer', () => {
    check(null, { second: () => __ITER == 0, first: () => true });
    group('inner', () => { check(null, { second: () => true }); });
  });
  check(null, { 'never here': () => false });
}
