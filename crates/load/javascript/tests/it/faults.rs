//! What is wrong in scripts, found before they run.

use crate::common::{User, folder, listed, load, natives, program};
use plimsoll_javascript::{End, Entry, Exception, Fault, Files, Parked, Program};

/// The faults of a script that is one module.
fn faults(text: &str) -> Vec<Fault> {
    let home = folder(&[]);
    let files = Files::within([home.path()]).expect("the folder is there");
    let entry = Entry::Text { name: "load.js", text };
    match Program::load(entry, files, natives()) {
        Ok(_) => panic!("it has no faults"),
        Err(faults) => faults,
    }
}

#[test]
fn errors_of_syntax_have_their_true_place() {
    let cases = [
        ("export default function () {\n  const x = ;\n}", "load.js:2:13: unexpected token"),
        ("export default function () {\n  if (true) {\n    f();\n", "load.js:4:1: expected `}` but found `EOF`"),
        ("const ok = 1;\n\n    const text = 'never ends;\n", "load.js:3:18: unterminated string"),
        (
            "let a = 1;\nlet b = 2, a = 3;",
            "load.js:2:12: identifier `a` has already been declared; it can not be redeclared here",
        ),
        (
            "function f() {\n  await 1;\n}",
            "load.js:2:3: `await` is only allowed within async functions and at the top levels of modules",
        ),
        ("/* ö */ f(1, 2 3);", "load.js:1:16: expected `,` or `)` but found `decimal`"),
        ("export const re = /(/;", "load.js:1:20: "),
    ];
    for (text, expected) in cases {
        let found = listed(&faults(text));
        assert!(found.starts_with(expected), "{text}\n{found}");
    }
}

/// Syntax newer than the engine: its own column is not to be trusted.
#[test]
fn faults_that_only_the_engine_finds_have_their_line() {
    let found = faults("let a = 1;\nclass A { accessor b = 1; }");
    let place = found[0].place.as_ref().expect("it has a place");
    assert_eq!((place.line, place.text.as_str()), (2, "class A { accessor b = 1; }"));
}

#[test]
fn a_fault_shows_its_line() {
    let found = faults("export default function () {\n\tconst x = ;\n}");
    let place = found[0].place.as_ref().expect("it has a place");
    assert_eq!(place.text, "\tconst x = ;");
    assert_eq!(found[0].render(), "load.js:2:12: unexpected token\n2 | \tconst x = ;\n  | \t          ^\n");
}

#[test]
fn missing_imports_are_named() {
    let cases = [
        ("import { aks } from 'wire';", "load.js:1:10: `wire` exports no `aks`; did you mean `ask`?"),
        ("import w from 'wrie';", "load.js:1:15: there is no module `wrie`; did you mean `wire`?"),
        ("import lodash from 'lodash';", "load.js:1:20: there is no module `lodash`"),
        ("import b from 'wire/browser';", "load.js:1:15: `wire/browser` is not supported: there is no browser here"),
        (
            "import x from 'https://jslib.k6.io/x.js';",
            "load.js:1:15: `https://jslib.k6.io/x.js` is not fetched: modules are files; save it",
        ),
        (
            "import d from './data.json';",
            "load.js:1:15: `./data.json` is no module; read it with `JSON.parse(open('./data.json'))`",
        ),
        ("export { nothing } from 'wire';", "load.js:1:10: `wire` exports no `nothing`"),
        (
            "const m = await import('./x.js');",
            "load.js:1:17: `import()` is not supported; write `import … from` at the top",
        ),
    ];
    for (text, expected) in cases {
        let found = listed(&faults(text));
        assert!(found.starts_with(expected), "{text}\n{found}");
    }
}

#[test]
fn the_faults_of_all_modules_are_told_at_once() {
    let home = folder(&[
        (
            "load.js",
            "import { a } from './lib/a.js';\nimport b from './lib/b.ts';\nimport { c } from './c.js';\nimport { d } from './d.js';\n",
        ),
        ("lib/a.js", "export const b = 1;\nimport '../gone.js';\nimport '../c';\n"),
        ("lib/b.ts", "namespace E { export const a = 1; }\nexport default class { @a b() {} }\n"),
        ("c.js", "export const c = ;\n"),
        ("d.js", "export * from './c.js';\n"),
    ]);
    let found = load(home.path(), "load.js", ".").err().expect("it has faults");
    let root = format!("{}/", home.path().display());
    let expected = "\
c.js:1:18: unexpected token
lib/a.js:2:8: cannot read `gone.js`: No such file or directory (os error 2)
lib/a.js:3:8: cannot read `c`: No such file or directory (os error 2); did you mean `../c.js`?
lib/b.ts:1:1: a namespace is not supported; write a module of its own
lib/b.ts:2:24: a decorator is not supported; call the function yourself
load.js:1:10: `./lib/a.js` exports no `a`";
    assert_eq!(listed(&found).replace(&root, ""), expected);
}

#[test]
fn a_script_may_be_long_but_not_deep() {
    let deep = format!("export default 1;\nconst a = {}{};", "[".repeat(100_000), "]".repeat(100_000));
    let home = folder(&[("load.js", deep.as_str())]);
    let found = listed(&load(home.path(), "load.js", ".").err().expect("it is too deep"));
    assert!(
        found.ends_with("load.js:2:1011: expected at most 1000 brackets inside one another, found more"),
        "{found}"
    );
    // What nests without brackets is read whatever its depth.
    for (again, end) in [("if (a) b(); else ", "b();"), ("!", "a;"), ("a=>", "1;"), ("a+", "1;"), ("typeof ", "a;")] {
        let text = format!("export default 1; let a, b = () => 1;\n{}{end}", again.repeat(10_000));
        let home = folder(&[("load.js", text.as_str()), ("types.ts", text.as_str())]);
        for name in ["load.js", "types.ts"] {
            let loaded = load(home.path(), name, ".");
            assert!(loaded.is_ok(), "{again}: {}", listed(&loaded.err().expect("it has faults")));
        }
    }
}

#[test]
fn scripts_read_nothing_outside_of_their_folders() {
    let home = folder(&[
        ("in/load.js", "import x from '../out/x.js';"),
        ("in/open.js", "export const text = open('../out/secret.txt');"),
        ("in/root.js", "open('/etc/passwd');"),
        ("out/x.js", "export default 1;"),
        ("out/secret.txt", "secret"),
    ]);
    let found = listed(&load(home.path(), "in/load.js", "in").err().expect("it is refused"));
    assert!(found.contains("in/load.js:1:15: `") && found.contains("out/x.js` lies outside the folders"), "{found}");
    assert!(load(home.path(), "in/load.js", ".").is_ok(), "it is allowed");
    for script in ["in/open.js", "in/root.js"] {
        let program = load(home.path(), script, "in").expect("it has no faults");
        let Parked::Ended(End::NotLoaded(thrown)) = User::of(&program).load() else { panic!("it is refused") };
        assert!(thrown.message.contains("lies outside the folders that this script may read"), "{thrown}");
        assert_eq!(thrown.place.map(|place| place.line), Some(1));
    }
}

#[test]
fn an_exception_while_a_script_is_loaded_has_its_place() {
    let program = program("const fine = 1;\nexport default () => fine;\nthrow new TypeError('at load');");
    let Parked::Ended(End::NotLoaded(thrown)) = User::of(&program).load() else { panic!("it throws") };
    assert_eq!(thrown.to_string(), "TypeError: at load (load.js:3:11)");
    assert_eq!(thrown.place.expect("it has a place").text, "throw new TypeError('at load');");
}

#[test]
fn a_script_that_waits_for_ever_is_not_loaded() {
    let program = program("await new Promise(() => {});");
    let Parked::Ended(End::NotLoaded(thrown)) = User::of(&program).load() else { panic!("it waits") };
    assert!(thrown.message.contains("waits for a promise that nothing settles"), "{thrown}");
}

#[test]
fn a_file_that_is_no_text_is_no_script() {
    let home = folder(&[]);
    std::fs::write(home.path().join("load.js"), [0xff, 0xfe]).expect("a file");
    let found = listed(&load(home.path(), "load.js", ".").err().expect("it is refused"));
    assert!(found.ends_with("load.js` is no text in UTF-8"), "{found}");
    let found = listed(&load(home.path(), "none.js", ".").err().expect("it is refused"));
    assert!(found.contains("none.js`: No such file"), "{found}");
}

/// The engine itself tells the place of a call before, or of the function.
#[test]
fn a_missing_name_has_the_place_of_its_use() {
    let cases = [
        ("const a = {};\nfine();\n\nconst c = a.b.c;", "cannot read property 'c' of undefined (load.js:6:15)"),
        (
            "fine();\nreturn [1].map((x) => {\n  return x.deep.er;\n});",
            "cannot read property 'er' of undefined (load.js:5:17)",
        ),
        ("const a = {};\nfine();\n\na.b.c = 1;", "cannot set property 'c' of undefined (load.js:6:5)"),
        ("fine();\n\nconst a = nope + 1;", "nope is not defined (load.js:5:11)"),
    ];
    for (body, expected) in cases {
        let thrown = thrown(body);
        assert!(thrown.to_string().ends_with(expected), "{body}: {thrown}");
        let place = thrown.place.expect("it has one").to_string();
        assert!(thrown.stack.lines().next().is_some_and(|first| first.contains(&place)), "{}", thrown.stack);
    }
}

#[test]
fn place_and_stack_of_what_was_thrown_agree_on_the_first_line_too() {
    let Parked::Over(Err(thrown)) = User::loaded("export default () => { throw new Error('ä'); };").iterate() else {
        panic!("it throws")
    };
    let place = thrown.place.expect("it has one").to_string();
    assert!(thrown.stack.contains(&format!("({place})")), "{place}: {}", thrown.stack);
}

#[test]
fn where_that_is_not_sure_the_place_is_that_of_the_engine() {
    for body in [
        "const a = { b: { c: 1 } };\nconst x = a.b.c;\nfine();\nconst y = a.d.c;",
        "const a = {}, k = 'c';\nfine();\nconst x = a.b[k];\nconst y = a.c;",
    ] {
        let thrown = thrown(body);
        let call = body.lines().position(|line| line.starts_with("fine")).expect("a call");
        assert!(thrown.message.contains("'c' of undefined"), "{thrown}");
        assert_eq!(thrown.place.expect("it has one").line, call + 3, "{body}");
    }
}

/// What is thrown in a function of these lines.
fn thrown(body: &str) -> Exception {
    let text = format!("const fine = () => 1;\nexport default () => {{\n{body}\n}};");
    match User::loaded(&text).iterate() {
        Parked::Over(Err(exception)) => exception,
        other => panic!("{other:?}"),
    }
}
