// exit 0
// checks 32 of 32
// What elements of one kind have besides what all elements have.
import { check } from 'k6';
import http from 'k6/http';
import { parseHTML } from 'k6/html';
const page = parseHTML(`
<a id="l" rel="next nofollow" href="http://ann:pw@here.test:8080/x/y?q=1#top">go</a><a id="d" href="https://here.test:443/">x</a>
<form id="f" method="post" enctype="text/plain" action="/send"><label id="la">in <input id="i" type="number" maxlength="7" checked tabindex="x" list="dl"></label>
<button id="b" formmethod="POST">press</button><button id="b2" value="v" disabled>x</button>
<select id="s" name="s"><optgroup disabled><option>1</option></optgroup><option id="o" selected value="2">two</option></select></form>
<input id="out" form="f" type="strange"><label for="out">out</label><datalist id="dl"><option>x</option></datalist>
<table id="t"><caption>c</caption><thead><tr><th scope="row" colspan="2">h</th></tr></thead><tbody><tr id="r"><td>1</td><td id="td">2</td></tr></tbody></table>
<progress id="p" max="4" value="1"></progress><ol id="ol" start="3"><li id="li" value="5">x</li></ol><img id="im" width="30" ismap crossorigin="none">
<video id="v" src="m.mp4" loop></video><textarea id="ta" rows="4" wrap="hard"></textarea><meta id="m" name="n" content="c">`);
const element = (id) => page.find('#' + id).get(0);
export default function () {
  const linked = http.get(`${__ENV.URL}/page`).html();
  check(element, {
    rel: (e) => e('l').rel() === 'next nofollow' && e('l').relList().join() === 'next,nofollow',
    href: (e) => e('l').href() === 'http://ann:pw@here.test:8080/x/y?q=1#top',
    host: (e) => e('l').host() === 'here.test:8080' && e('l').hostname() === 'here.test' && e('l').port() === '8080',
    'host without port': (e) => e('d').host() === 'here.test',
    who: (e) => e('l').username() === 'ann' && e('l').password() === 'pw',
    'parts of a URL': (e) => e('l').pathname() === '/x/y' && e('l').search() === '?q=1' && e('l').hash() === '#top',
    origin: (e) => e('l').origin() === 'http://here.test:8080' && e('l').protocol() === 'http',
    'href of a page that has a URL': () => linked.find('a').get(0).href() === `${__ENV.URL}/text?from=link`,
    'URL of a page': () => linked.url === `${__ENV.URL}/page` && page.url === '',
    'what it has not': (e) => e('l').checked === undefined,
    form: (e) => e('f').method() === 'post' && e('f').enctype() === 'text/plain' && e('f').length() === 4,
    'elements of it': (e) => e('f').elements().map((one) => one.id()).join() === 'i,b,b2,s',
    'form of an input': (e) => e('i').form().id() === 'f' && e('out').form().id() === 'f',
    input: (e) => e('i').type() === 'number' && e('i').maxLength() === 7 && e('i').checked() && e('i').tabIndex() === 0,
    'type that is none': (e) => e('out').type() === 'text',
    list: (e) => e('i').list().options().length === 1,
    labels: (e) => e('i').labels().map((one) => one.id()).join() === 'la' && e('out').labels().length === 1,
    button: (e) => e('b').value() === 'press' && e('b2').value() === 'v' && e('b2').disabled() && e('b').type() === 'submit',
    'form of a button': (e) => e('b').formMethod() === 'post' && e('b').formEnctype() === 'text/plain',
    select: (e) => e('s').value() === '2' && e('s').selectedIndex() === 1 && e('s').length() === 2 && e('s').type() === 'select',
    options: (e) => e('s').options()[0].disabled() && !e('o').disabled() && e('o').index() === 1 && e('o').label() === 'two',
    'form of an option': (e) => e('o').form().id() === 'f' && e('o').text() === 'two',
    table: (e) => e('t').caption().textContent() === 'c' && e('t').rows().length === 2 && e('t').tBodies().length === 1,
    row: (e) => e('r').rowIndex() === 1 && e('r').sectionRowIndex() === 0 && e('r').cells().length === 2,
    cell: (e) => e('td').cellIndex() === 1 && e('td').colSpan() === 1 && e('t').tHead().rows()[0].cells()[0].scope() === 'row',
    progress: (e) => e('p').value() === 0.25 && e('p').max() === 4 && e('p').position() === 0.25,
    lists: (e) => e('ol').start() === 3 && e('ol').type() === '1' && e('li').value() === 5,
    image: (e) => e('im').width() === 30 && e('im').height() === 0 && e('im').isMap() && e('im').crossOrigin() === undefined,
    media: (e) => e('v').loop() && !e('v').muted() && e('v').preload() === 'auto' && e('v').src() === 'm.mp4',
    textarea: (e) => e('ta').rows() === 4 && e('ta').wrap() === 'hard' && e('ta').type() === 'textarea',
    meta: (e) => e('m').name() === 'n' && e('m').content() === 'c' && e('m').httpEquiv() === 'content-type',
    end: () => page.find('form').find('button').first().end().end().is('form') && page.end().size() === 0,
  });
}
