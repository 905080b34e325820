// exit 107
// says my-metric
import { Counter } from 'k6/metrics';
const odd = new Counter('my-metric');
export default function () { odd.add(1); }
