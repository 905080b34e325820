// exit 0
// requests 1
import http from 'k6/http';
export default function () {
  http.get(__ENV.URL.replace('//', '//ann:p%40ss@') + '/text', { auth: 'basic' });
}
