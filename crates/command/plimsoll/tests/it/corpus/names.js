// exit 0
// requests 4
// Names of requests make one metric of many URLs.
import http from 'k6/http';
export const options = {
  thresholds: {
    'http_reqs{name:item}': ['count==1'],
    'http_reqs{team:x,name:item}': ['count==1'],
    'http_reqs{method:POST}': ['count==1'],
    'http_reqs{status:404}': ['count==1'],
  },
};
export default function () {
  http.get(`${__ENV.URL}/item/0`, { tags: { name: 'item', team: 'x' } });
  for (const id of [1, 2]) http.get(http.url`${__ENV.URL}/item/${id}`);
  http.post(`${__ENV.URL}/status/404`, 'x', { tags: { kind: 'odd' } });
}
