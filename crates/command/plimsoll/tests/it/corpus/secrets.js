// flags --secret-source mock=token=hunter2,other=word
// checks 4 of 4
// says ***SECRET_REDACTED***
import secrets from 'k6/secrets';
import { check } from 'k6';

export default async function () {
  const token = await secrets.get('token');
  check(token, { 'a secret': (token) => token === 'hunter2' });
  check(await secrets.source('mock').get('other'), { 'of a source': (other) => other === 'word' });
  console.log(`the token is ${token}`);
  const fault = (promise) => promise.then(() => '', (error) => `${error}`);
  check(await fault(secrets.get('none')), { 'no secret': (why) => why.includes('no value') });
  check(await fault(secrets.source('nobody').get('a')), { 'no source': (why) => why.includes('nobody') });
}
