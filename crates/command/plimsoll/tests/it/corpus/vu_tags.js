// exit 0
// requests 3
import exec from 'k6/execution';
import http from 'k6/http';
export const options = { tags: { team: 'x' }, thresholds: { 'http_reqs{team:x}': ['count==2'], 'http_reqs{place:here}': ['count==1'] } };
export default function () {
  http.get(`${__ENV.URL}/text`);
  exec.vu.tags.place = 'here';
  http.get(`${__ENV.URL}/text`);
  delete exec.vu.tags.place;
  http.get(`${__ENV.URL}/text`, { tags: { team: 'y' } });
}
