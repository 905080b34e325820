// exit 0
// requests 4
// checks 2 of 2
import { check } from 'k6';
import http from 'k6/http';
export default function () {
  const page = http.get(`${__ENV.URL}/page`);
  const sent = page.submitForm({ formSelector: 'form', fields: { user: 'bob' } });
  check(sent, { 'it was sent': (r) => r.status === 200 });
  const clicked = page.clickLink({ selector: 'a[href^="/text"]' });
  check(clicked, { 'it was followed': (r) => r.body === 'hello' });
  page.submitForm();
}
