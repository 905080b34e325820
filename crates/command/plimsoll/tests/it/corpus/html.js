// exit 0
// checks 9 of 9
import { check } from 'k6';
import http from 'k6/http';
import { parseHTML } from 'k6/html';
export default function () {
  const response = http.get(`${__ENV.URL}/page`);
  const doc = response.html();
  check(doc, {
    title: (d) => d.find('title').text() === 'A page',
    links: (d) => d.find('a').size() === 2,
    attr: (d) => d.find('a').first().attr('href') === '/text?from=link',
    'of a selector': () => response.html('h1').text() === 'Hello',
    map: (d) => d.find('li').map((i, e) => `${i}${e.text()}`).join() === '0one,1two',
    each: (d) => { const all = []; d.find('li').each((i, e) => all.push(e.textContent())); return all.join() === 'one,two'; },
    serialize: (d) => d.find('form').serialize() === 'token=t1&user=ann',
    parents: (d) => d.find('li').parent().is('ul'),
    parsed: () => parseHTML('<p id="x">in</p>').find('#x').html() === 'in',
  });
}
