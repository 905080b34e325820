// exit 0
// checks 2 of 2
// flags -u 2 -d 5s
// says running 1
// says 2/2 VUs, 
import { check, sleep } from 'k6';
export default function () {
  if (__ITER === 0) check(__VU, { 'users count from 1': (id) => id === 1 || id === 2 });
  sleep(0.1);
}
