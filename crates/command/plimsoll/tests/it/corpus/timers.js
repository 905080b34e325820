// exit 0
// requests 4
import http from 'k6/http';
import { clearInterval, clearTimeout, setInterval, setTimeout } from 'k6/timers';
export default function () {
  let ticks = 0;
  const every = setInterval(() => {
    ticks += 1;
    http.get(`${__ENV.URL}/tick/${ticks}`);
    if (ticks === 3) clearInterval(every);
  }, 5);
  clearTimeout(setTimeout(() => http.get(`${__ENV.URL}/never`), 1));
  setTimeout((a, b) => http.get(`${__ENV.URL}/${a}/${b}`), 50, 'with', 'arguments');
}
