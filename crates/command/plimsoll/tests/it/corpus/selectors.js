// Selectors beyond CSS, and HTML as it is written.
// checks 23 of 23
import { check } from 'k6';
import { parseHTML } from 'k6/html';

const page = parseHTML(`<html lang="en"><body lang="en-GB"><form><input id=a type=checkbox checked><input id=b disabled>
<select id=s><option id=o selected>1<option id=p>2</select><textarea id=t></textarea><button id=u>x</button></form>
<p id=one>hello <b id=bold>WORLD</b></p><p id=two lang=fr>hello world</p><p id=three> </p><a id=link href=x>y</a>
<div id="d" z="1" a='"2"' m>te&amp;xt<br><img src="i" alt=""/>"q"&nbsp;</div></body></html>`);

const found = {
  ':checked': 'a,o',
  ':disabled': 'b',
  ':enabled': 'a,s,o,p,t,u,link',
  ':input': 'a,b,s,t,u',
  'form > :input': 'a,b,s,t,u',
  'p:contains(World)': 'one,two',
  'p:containsOwn("world")': 'two',
  'p:contains(hello) b, a': 'bold,link',
  'p:not(:contains(world))': 'three',
  'p:matches(w.rld)': 'two',
  'p:matchesOwn(world)': 'two',
  'p:haschild(b)': 'one',
  'p:has(b)': 'one',
  'p:lang(fr)': 'two',
  'p:lang(en)': 'one,two,three',
  'p:empty': 'three',
  ':link': 'link',
  'a:hover': '',
  'p + p': 'two,three',
};

export default function () {
  const ids = (selector) => page.find(selector).toArray().map((element) => element.attr('id')).join();
  for (const [selector, expected] of Object.entries(found)) {
    check(ids(selector), { [selector]: (ids) => ids === expected });
  }
  const inside = 'te&amp;xt<br/><img src="i" alt=""/>&#34;q&#34;\u00a0';
  check(page.find('#d'), {
    'html()': (div) => div.html() === inside,
    'innerHTML': (div) => div.get(0).innerHTML() === inside,
    'the order of attributes': () => page.html().includes('<div id="d" z="1" a="&#34;2&#34;" m="">'),
    'attributes()': (div) => Object.keys(div.get(0).attributes()).sort().join() === 'a,id,m,z',
  });
}
