//! What scripts select in pages. Where nothing else is said, it is what k6 v1.8.1 gives for the same.

use crate::testing::{TestUser, check_held};

const PAGE: &str = r#"<!DOCTYPE html><html><head><title>This is the title</title></head><body>
<h1 id="top" data-test="dataval" data-num-a="123" data-num-b="1.5" data-not-num-a="1.50" data-not-num-b="1.1e02">Lorem ipsum</h1>
<p id="a" class="one two" lang="en" data-test-b="true" data-opts='{"id":101}' data-test-empty="">First <b>bold</b></p>
<p id="b">Second</p>pretext<div id="div"><span>1</span><!-- note --><span>2</span><svg></svg></div>aftertext
<form id="form1"><input name="text" value="value"><input type="checkbox" name="on" checked><input type="radio" name="off">
<input type="text" name="disabled" disabled="disabled"><input type="submit" name="go">
<select name="one"><option value="no">x</option><option value="yes" selected>y</option></select>
<select name="several" multiple><option>1</option><option selected>2</option><option selected>3</option></select>
<textarea name="area">a &amp; b</textarea><button name="b" value="v">x</button></form>
<footer>This is the footer.</footer></body></html>"#;

/// The value of an expression about `doc`, the page, and `ids` (the ids in a selection).
fn evaluated(expression: &str) -> String {
    let text = format!(
        "import {{ parseHTML }} from 'k6/html';
        const doc = parseHTML({page});
        const ids = (selection) => selection.toArray().map((one) => one.attr('id') || one.text());
        export default () => {expression};",
        page = serde_json::Value::from(PAGE),
    );
    TestUser::of(&text).returned()
}

fn check(cases: &[(&str, &str)]) {
    for (expression, expected) in cases {
        assert_eq!(evaluated(expression), *expected, "{expression}");
    }
}

#[test]
fn selections_find_what_selectors_say() {
    check(&[
        ("[doc.size(), doc.find('p').size(), doc.find('zz').size()]", "[1,2,0]"),
        ("doc.find('h1').text()", "\"Lorem ipsum\""),
        ("ids(doc.find('p').add('h1'))", r#"["a","b","top"]"#),
        ("ids(doc.find('p').add(doc.find('#b')))", r#"["a","b"]"#),
        ("ids(doc.find('body').find(doc.find('#a')))", r#"["a"]"#),
        ("ids(doc.find('body').find(doc.find('#a').get(0)))", r#"["a"]"#),
        ("doc.find('p').is('.one') && !doc.find('p').is('.three')", "true"),
        ("ids(doc.find('p').filter('.one'))", r#"["a"]"#),
        ("ids(doc.find('p').filter((i, one) => one.attr('id') === 'b' && i === 1))", r#"["b"]"#),
        ("ids(doc.find('p').not('.one'))", r#"["b"]"#),
        ("ids(doc.find('p').not(doc.find('#b')))", r#"["a"]"#),
        ("ids(doc.find('p').has('b'))", r#"["a"]"#),
        ("ids(doc.find('b').closest('p,body'))", r#"["a"]"#),
        (
            r#"[ids(doc.find("p:contains('First bold')")), ids(doc.find('p:contains("o"):contains(Second)'))]"#,
            r#"[["a"],["b"]]"#,
        ),
        (r#"[doc.find("p:contains('none')").size(), doc.find("div :contains('2')").size()]"#, "[0,1]"),
    ]);
}

#[test]
fn selections_go_on_from_where_they_are() {
    check(&[
        ("ids(doc.find('#div').children('span'))", r#"["1","2"]"#),
        ("doc.find('#div').contents().size()", "4"),
        ("ids(doc.find('#a').siblings('p,h1'))", r#"["top","b"]"#),
        ("ids(doc.find('b').parent())", r#"["a"]"#),
        ("doc.find('b').parents().size()", "3"),
        ("ids(doc.find('b').parentsUntil('body'))", r#"["a"]"#),
        ("doc.find('html').parent().size()", "0"),
        ("ids(doc.find('p').next())", r#"["b","div"]"#),
        ("ids(doc.find('#a').nextAll('p,div'))", r#"["b","div"]"#),
        ("ids(doc.find('#top').nextUntil('#div'))", r#"["a","b"]"#),
        ("ids(doc.find('#top').nextUntil('#div', '.one'))", r#"["a"]"#),
        ("ids(doc.find('#div').prev())", r#"["b"]"#),
        ("ids(doc.find('#div').prevAll())", r#"["b","a","top"]"#),
        ("ids(doc.find('#div').prevUntil(doc.find('#top')))", r#"["b","a"]"#),
        ("[0, -1, 5].map((at) => ids(doc.find('p').eq(at)))", r#"[["a"],["b"],[]]"#),
        ("[ids(doc.find('p').first()), ids(doc.find('p').last())]", r#"[["a"],["b"]]"#),
        (
            "[ids(doc.find('p').slice(1)), ids(doc.find('p').slice(0, -1)), ids(doc.find('p').slice(2, 1))]",
            r#"[["b"],["a"],[]]"#,
        ),
        (
            "[doc.find('#b').index(), doc.find('#b').index('p'), doc.find('p').index(doc.find('#b')), doc.find('zz').index()]",
            "[2,1,1,-1]",
        ),
    ]);
}

#[test]
fn selections_tell_what_is_in_them() {
    check(&[
        ("doc.find('p').text()", "\"First boldSecond\""),
        ("[doc.find('#a').html(), doc.find('zz').html()]", r#"["First <b>bold</b>",""]"#),
        (
            "[doc.find('h1').attr('id'), doc.find('h1').attr('x', 5), typeof doc.find('h1').attr('x')]",
            r#"["top",5,"undefined"]"#,
        ),
        ("doc.find('p').map((i, one) => [i, one.text()])", r#"[[0,"First bold"],[1,"Second"]]"#),
        (
            "{ const seen = []; doc.find('p').each((i, one) => { seen.push(i, one.id()); }); return seen; }",
            r#"[0,"a",1,"b"]"#,
        ),
        ("doc.find('h1').data()", r#"{"test":"dataval","numA":123,"numB":1.5,"notNumA":"1.50","notNumB":"1.1e02"}"#),
        (
            "[doc.find('#a').data('testB'), doc.find('#a').data('opts').id, typeof doc.find('#a').data('test-empty')]",
            r#"[true,101,"undefined"]"#,
        ),
        (
            "[doc.find('p').get().length, typeof doc.find('p').get(2), doc.find('p').get(-1).id()]",
            r#"[2,"undefined","b"]"#,
        ),
    ]);
}

#[test]
fn pseudo_classes_are_those_of_k6() {
    let page = r#"<html lang="en"><body lang="en-GB"><form><input id=a type=checkbox checked><input id=b disabled>
        <fieldset id=f disabled><input id=i></fieldset><select id=s><option id=o selected>1<option id=p>2</select></form>
        <p id=one>hello <b id=bold>WORLD</b></p><p id=two lang=fr>hello world</p><p id=three> <!-- c --> </p><a id=link href=x>y</a>"#;
    let ids = "const ids = (selector) => page.find(selector).toArray().map((one) => one.attr('id')).join();";
    for (selector, expected) in [
        (":checked", "a,o"),
        (":disabled", "b,f,i"),
        (":enabled", "a,s,o,p,link"),
        (":input", "a,b,i,s"),
        ("form > :input:not(:checked)", "b,s"),
        ("p:contains(World)", "one,two"),
        ("p:containsOwn('world')", "two"),
        ("p:contains(hello) b, a", "bold,link"),
        ("p:not(:contains(world))", "three"),
        ("p:matches(^hello w.rld$)", "two"),
        ("p:matches((?i)world$)", "one,two"),
        ("p:matchesOwn(^hello $)", "one"),
        ("p:haschild(b)", "one"),
        ("p:has(b)", "one"),
        ("p:lang(fr)", "two"),
        ("p:lang(en)", "one,two,three"),
        ("p:empty", "three"),
        (":link", "link"),
        ("a:hover", ""),
    ] {
        let text = format!(
            "import {{ parseHTML }} from 'k6/html'; const page = parseHTML({page}); {ids} export default () => ids({selector});",
            page = serde_json::Value::from(page),
            selector = serde_json::Value::from(selector),
        );
        assert_eq!(TestUser::of(&text).returned(), format!("\"{expected}\""), "{selector}");
    }
}

#[test]
fn html_is_written_as_in_k6() {
    for (page, expected) in [
        (
            r#"<div id=d z="1" a='"2"' m>te&amp;xt<br><img src=a>"q" 'r'&nbsp;</div>"#,
            "<div id=\"d\" z=\"1\" a=\"&#34;2&#34;\" m=\"\">te&amp;xt<br/><img src=\"a\"/>&#34;q&#34; &#39;r&#39;\u{a0}</div>",
        ),
        (
            "<script>a<b && c</script><style>p>q</style><textarea>\n\nx&lt;</textarea>",
            "<script>a<b && c</script><style>p>q</style><textarea>\n\nx&lt;</textarea>",
        ),
        ("<p><!-- a-->b--><!--> c &-->", "<p><!-- a-->b--&gt;<!----> c &amp;--&gt;</p>"),
        ("<svg viewBox='0 0'><a xlink:href=x></a></svg>", r#"<svg viewBox="0 0"><a xlink:href="x"></a></svg>"#),
        ("<p>x<plaintext>y</p>", "<p>x</p><plaintext>y</p>"),
        ("<iframe><p></iframe>", "<iframe><p></iframe>"),
    ] {
        let text = format!(
            "import {{ parseHTML }} from 'k6/html'; export default () => parseHTML('<body>' + {}).find('body').html();",
            serde_json::Value::from(page)
        );
        let html: String = serde_json::from_str(&TestUser::of(&text).returned()).expect("a text");
        assert_eq!(html, expected, "{page}");
    }
    let inside = "import { parseHTML } from 'k6/html'; export default () => parseHTML('<!doctype html><iframe><p></iframe>').find('iframe').html();";
    assert_eq!(TestUser::of(inside).returned(), "\"&lt;p&gt;\"");
    let whole = "import { parseHTML } from 'k6/html'; export default () => parseHTML('<!doctype html><p>x').html();";
    assert_eq!(TestUser::of(whole).returned(), "\"<!DOCTYPE html><html><head></head><body><p>x</p></body></html>\"");
}

#[test]
fn forms_tell_what_they_would_send() {
    check(&[
        (
            "['input', 'textarea', 'button', 'option', '[name=one]', '[name=several]', '[name=on]', 'p', 'zz'].map((one) => doc.find(one).val() ?? null)",
            r#"["value","a & b","v","no","yes",["2","3"],"on",null,null]"#,
        ),
        (
            "doc.find('form').serializeObject()",
            r#"{"text":"value","on":"on","one":"yes","several":["2","3"],"area":"a & b"}"#,
        ),
        ("doc.find('input').serializeArray()", r#"[{"name":"text","value":"value"},{"name":"on","value":"on"}]"#),
        ("doc.find('form').serialize()", "\"area=a+%26+b&on=on&one=yes&several=2&several=3&text=value\""),
    ]);
}

#[test]
fn elements_are_as_in_browsers() {
    let one = |expression: &str| format!("{{ const el = (at) => doc.find(at).get(0); return {expression}; }}");
    let cases = [
        (
            "[el('h1').nodeName(), el('h1').nodeType(), el('h1').firstChild().nodeType(), el('h1').firstChild().nodeValue()]",
            r##"["h1",1,3,"Lorem ipsum"]"##,
        ),
        (
            "[el('#a').innerHTML(), el('#a').textContent(), el('#a').className(), el('#a').classList(), el('#a').lang()]",
            r#"["First <b>bold</b>","First bold","one two",["one","two"],"en"]"#,
        ),
        (
            "[el('h1').getAttribute('id'), el('h1').hasAttribute('x'), el('footer').hasAttributes(), el('h1').attributes().id.value, el('h1').getAttributeNode('id').value]",
            r#"["top",false,false,"top","top"]"#,
        ),
        (
            "[el('body').ownerDocument().nodeName(), el('body').parentElement().nodeName(), el('html').parentNode().nodeName(), typeof el('html').parentElement()]",
            r##"["#document","html","#document","undefined"]"##,
        ),
        (
            "[el('#div').childNodes().length, el('#div').children().length, el('#div').childElementCount(), el('#div').hasChildNodes(), el('svg').hasChildNodes()]",
            "[4,3,3,true,false]",
        ),
        (
            "[el('#div').firstElementChild().textContent(), el('#div').lastElementChild().nodeName(), el('#div').lastChild().nodeName()]",
            r#"["1","svg","svg"]"#,
        ),
        (
            "[el('#div').previousSibling().textContent(), el('#div').nextSibling().textContent().trim(), el('#div').previousElementSibling().id(), el('#div').nextElementSibling().id()]",
            r#"["pretext","aftertext","b","form1"]"#,
        ),
        (
            "[el('#a').isSameNode(el('#a')), el('#a').isSameNode(el('#b')), el('span').isEqualNode(el('span')), el('span').isEqualNode(5)]",
            "[true,false,true,false]",
        ),
        (
            "[el('html').contains(el('body')), el('body').contains(el('body')), el('#div').matches('div'), el('#div').matches('p')]",
            "[true,false,true,false]",
        ),
        (
            "[el('body').querySelector('#b').id(), el('body').querySelectorAll('span').length, el('body').getElementsByClassName('two')[0].id(), el('body').getElementsByTagName('p').length]",
            r#"["b",2,"a",2]"#,
        ),
        (
            "[el('svg').namespaceURI(), el('svg').isDefaultNamespace(), el('p').isDefaultNamespace()]",
            r#"["http://www.w3.org/2000/svg",false,true]"#,
        ),
        (
            "[String(el('p')), String(el('p').firstChild()), el('#div').childNodes()[1].nodeValue(), el('[name=one]').value()]",
            r##"["[object html.Node]","[object #text]"," note ","yes"]"##,
        ),
    ];
    for (expression, expected) in cases {
        assert_eq!(evaluated(&one(expression)), expected, "{expression}");
    }
}

/// k6 takes such a selector for one that nothing matches.
#[test]
fn selectors_that_are_none_are_exceptions() {
    for selector in ["p[", "p:eq(0)", "p:not(:eq(0))", "> p", ""] {
        let text = format!(
            "import {{ parseHTML }} from 'k6/html'; export default () => parseHTML('<p>').find({});",
            serde_json::Value::from(selector)
        );
        let thrown = TestUser::of(&text).thrown();
        assert!(thrown.contains(&format!("found `{selector}`")), "{thrown}");
    }
}

#[test]
fn anything_is_a_page() {
    for text in ["''", "5", "'<p'", "'<table><tr><td>x'", "null"] {
        let text =
            format!("import html from 'k6/html'; export default () => html.parseHTML({text}).find('body').size();");
        assert_eq!(TestUser::of(&text).returned(), "1");
    }
}

#[test]
fn pages_count_for_as_long_as_the_script_holds_them() {
    let user = |body: &str| {
        let text = format!(
            "import {{ parseHTML }} from 'k6/html'; import {{ Blob }} from 'k6/experimental/websockets';
            const kept = []; export default () => {{ {body} }}"
        );
        TestUser::within(&text, 1 << 20)
    };
    let harmless = [
        "for (let n = 0; n < 100; n++) parseHTML('<p>x'.repeat(1000))",
        "kept.push(parseHTML('x'.repeat(500000)))",
        "for (let n = 0; n < 100; n++) new Blob(['x'.repeat(100000)]).slice(0, 50000)",
    ];
    let greedy = [
        "for (;;) kept.push(parseHTML('<p>x'.repeat(1000)))",
        "parseHTML('<p>' + [...Array(500).keys()].map((n) => `<b a=${n}>`).join('') + '</p><p>x'.repeat(1000))",
        "parseHTML('<p><b ' + [...Array(1000).keys()].map((n) => `a${n}`).join(' ') + '>' + '</p><p>x'.repeat(1000))",
        "for (;;) kept.push(new Blob(['x'.repeat(100000)]))",
        "const blob = new Blob(['x'.repeat(100000)]); for (;;) kept.push(blob.slice())",
    ];
    check_held(user, &harmless, &greedy);
}
