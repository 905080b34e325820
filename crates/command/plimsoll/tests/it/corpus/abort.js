// exit 108
// requests 2
// says enough
// Neither catch nor finally keeps a run from being aborted; teardown runs.
import exec from 'k6/execution';
import http from 'k6/http';
export const options = { iterations: 10 };
export default function () {
  http.get(`${__ENV.URL}/text`);
  try { exec.test.abort('enough'); } catch (error) { http.get(`${__ENV.URL}/never`); }
  http.get(`${__ENV.URL}/never`);
}
export function teardown() { http.get(`${__ENV.URL}/teardown`); }
