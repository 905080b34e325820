// exit 0
// checks 4 of 4
import { check } from 'k6';
const hex = (buffer) => Array.from(new Uint8Array(buffer), (b) => b.toString(16).padStart(2, '0')).join('');
export default async function () {
  const bytes = new Uint8Array([97, 98, 99]);
  const digest = hex(await crypto.subtle.digest('SHA-256', bytes));
  check(digest, { digest: (d) => d.startsWith('ba7816bf') });
  check(crypto.getRandomValues(new Uint8Array(16)), { getRandomValues: (v) => v.length === 16 && v.some((b) => b > 0) });
  check(crypto.randomUUID(), { randomUUID: (v) => /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(v) });
  const key = await crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, true, ['sign', 'verify']);
  const signature = await crypto.subtle.sign('HMAC', key, bytes);
  const holds = await crypto.subtle.verify('HMAC', key, signature, bytes);
  check(holds, { verify: (v) => v === true });
}
