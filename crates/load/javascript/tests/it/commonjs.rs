//! Modules of CommonJS: `require`, `module.exports`, and imports between them and ECMAScript modules.

use crate::common::{User, folder, listed, load};
use plimsoll_javascript::{Call, End, Parked, Program, ResultFormat};
use std::path::Path;
use std::sync::Arc;

fn program(home: &Path, entry: &str) -> Arc<Program> {
    load(home, entry, ".").unwrap_or_else(|faults| panic!("{}", listed(&faults)))
}

/// What the default function of `load.js` returns, in a folder of `files`.
fn returned(files: &[(&str, &str)]) -> String {
    let home = folder(files);
    let mut user = User::of(&program(home.path(), "load.js"));
    assert_eq!(user.load(), Parked::Over(Ok(None)), "{files:?}");
    user.returned()
}

/// Why `load.js` cannot be loaded, without the path of its folder.
fn not_loaded(files: &[(&str, &str)]) -> String {
    let home = folder(files);
    let Parked::Ended(End::NotLoaded(thrown)) = User::of(&program(home.path(), "load.js")).load() else {
        panic!("it throws")
    };
    thrown.render().replace(&format!("{}/", home.path().display()), "")
}

#[test]
fn a_script_may_be_a_module_of_common_js() {
    for text in [
        "exports.default = () => 'ran'; exports.options = { vus: 2 };",
        "module.exports = { default: () => 'ran', options: { vus: 2 } };",
        "Object.defineProperty(exports, '__esModule', { value: true }); exports.options = { vus: 2 }; exports.default = () => 'ran';",
    ] {
        let home = folder(&[("load.js", text)]);
        let program = program(home.path(), "load.js");
        let mut user = User::of(&program);
        assert_eq!(user.load(), Parked::Over(Ok(None)));
        assert_eq!(program.exports(), ["default", "options"]);
        assert_eq!(user.returned(), r#""ran""#);
        assert_eq!(user.vm.read("options"), Parked::Over(Ok(Some(r#"{"vus":2}"#.to_owned()))));
    }
}

#[test]
fn what_common_js_exports_can_be_imported_in_every_way() {
    let library = "exports.a = 1; exports.b = 2;";
    let compiled =
        "Object.defineProperty(exports, '__esModule', { value: true }); exports.default = 'own'; exports.a = 1;";
    let function = "module.exports = function () { return 'called'; }; module.exports.a = 1;";
    let cases = [
        ("import { a, b as c } from './lib.js'; export default () => [a, c];", library, "[1,2]"),
        ("import all from './lib.js'; export default () => all;", library, r#"{"a":1,"b":2}"#),
        ("import * as all from './lib.js'; export default () => all;", library, r#"{"a":1,"b":2}"#),
        ("import*as all from'./lib.js';export default()=>[all.a];", library, "[1]"),
        ("import first, * as all from './lib.js'; export default () => [first === all];", library, "[true]"),
        (
            "import { a } from './lib.js'; import * as all from './lib.js'; export default () => [a, all.b];",
            library,
            "[1,2]",
        ),
        (
            "import { a } from './lib.js'; import b from './other/../lib.js'; export default () => [a, b.b];",
            library,
            "[1,2]",
        ),
        ("import { none } from './lib.js'; export default () => [typeof none];", library, r#"["undefined"]"#),
        ("import own, { a } from './lib.js'; export default () => [own, a];", compiled, r#"["own",1]"#),
        ("import call, { a } from './lib.js'; export default () => [call(), a];", function, r#"["called",1]"#),
        ("import './lib.js'; export default () => [globalThis.ran];", "globalThis.ran = 1;", "[1]"),
        ("import text from './lib.js'; export default () => [text];", "module.exports = 'text';", r#"["text"]"#),
    ];
    for (text, lib, expected) in cases {
        assert_eq!(returned(&[("load.js", text), ("lib.js", lib)]), expected, "{text}");
    }
}

#[test]
fn a_name_of_a_module_and_the_whole_of_it_are_told_apart() {
    let text = "import * as a from './lib.js';\nimport { b, a as c } from './lib.js';\nexport default () => [a, b, c];";
    let home = folder(&[("load.js", text), ("lib.js", "exports.a = 1; exports.b = 2;")]);
    let found = listed(&load(home.path(), "load.js", ".").err().expect("it is refused"));
    assert!(found.contains("load.js:2:13: `a` is a name of `./lib.js` here, and elsewhere all of it"), "{found}");
}

#[test]
fn what_common_js_exports_can_be_handed_on() {
    let library = ("lib.js", "exports.a = 1; exports.b = 2;");
    for (text, between, expected) in [
        ("import { a } from './mid.js'; export default () => [a];", "export { a } from './lib.js';", "[1]"),
        (
            "import { all } from './mid.js'; export default () => all;",
            "export * as all from './lib.js';",
            r#"{"a":1,"b":2}"#,
        ),
        (
            "import { a, own } from './mid.js'; export default () => [a, own];",
            "export * from './lib.js'; export const own = 3;",
            "[1,3]",
        ),
    ] {
        assert_eq!(returned(&[("load.js", text), ("mid.js", between), library]), expected, "{between}");
    }
    let open = "export * from './lib.js';\nexport const own = 3;";
    for text in [("load.js", open), ("load.js", "import * as all from './mid.js'; export default () => all;")] {
        let home = folder(&[text, ("mid.js", open), library]);
        let found = listed(&load(home.path(), "load.js", ".").err().expect("its exports are not known"));
        assert!(found.contains(".js:1:1: expected the names of what is exported"), "{found}");
    }
}

#[test]
fn what_is_required_is_what_is_exported() {
    let cases = [
        ("const lib = require('./lib.js'); exports.default = () => lib;", "exports.a = 1;", r#"{"a":1}"#),
        ("const { a } = require('./lib.js'); exports.default = () => [a];", "module.exports = { a: 1 };", "[1]"),
        (
            "const lib = require('./lib.js'); exports.default = () => [lib.default, lib.a];",
            "export default 'own'; export const a = 1;",
            r#"["own",1]"#,
        ),
        // As in k6, `require` is for ECMAScript modules too.
        ("const lib = require('./lib.js'); export default () => lib;", "exports.a = 1;", r#"{"a":1}"#),
        (
            "const lib = require('./lib.js'); exports.default = () => [lib.n(), lib.n(), lib.count];",
            "export let count = 0; export const n = () => ++count;",
            "[1,2,2]",
        ),
        (
            "exports.default = () => ['./lib.js'].map(() => all[0].a); const all = ['./lib.js'].map(require);",
            "exports.a = 1;",
            "[1]",
        ),
        (
            "const name = './li' + 'b.js'; const { a } = require(name); exports.default = () => [a];",
            "exports.a = 1;",
            "[1]",
        ),
        (
            "const name = './li' + 'b.js'; const { a } = require(name); exports.default = () => [a];",
            "import { b } from './b.js'; export const a = b;",
            "[1]",
        ),
    ];
    for (text, lib, expected) in cases {
        let files = [
            ("load.js", text),
            ("lib.js", lib),
            ("b.js", "import { sleep } from 'wire'; export const b = sleep ? 1 : 0;"),
        ];
        assert_eq!(returned(&files), expected, "{text}");
    }
}

#[test]
fn modules_in_rust_are_the_same_however_they_are_loaded() {
    let files = [
        (
            "load.js",
            "import wire, { ask } from 'wire'; import { required } from './lib.js'; export default () => [required === wire, required.ask === ask];",
        ),
        ("lib.js", "exports.required = require('wire');"),
    ];
    assert_eq!(returned(&files), "[true,true]");
}

#[test]
fn wrappers_of_several_systems_of_modules_find_common_js() {
    let wrappers = [
        "(function (root, factory) {
           if (typeof define === 'function' && define.amd) { define(['wire'], factory); }
           else if (typeof module === 'object' && module.exports) { module.exports = factory(require('wire')); }
           else { root.lib = factory(root.wire); }
         })(typeof self !== 'undefined' ? self : this, function (wire) { return { a: typeof wire.ask }; });",
        "!function(e,t){\"object\"==typeof exports&&\"undefined\"!=typeof module?t(exports,require(\"wire\")):\"function\"==typeof define&&define.amd?define([\"exports\",\"wire\"],t):t(e.lib={},e.wire)}(this,function(e,w){\"use strict\";e.a=typeof w.ask,Object.defineProperty(e,\"__esModule\",{value:!0})});",
        "(function(f){if(typeof exports===\"object\"&&typeof module!==\"undefined\"){module.exports=f()}else{window.lib=f()}})(function(){return (function e(t,n,r){function s(o,u){if(!n[o]){if(!t[o]){var a=typeof require==\"function\"&&require;if(!u&&a)return a(o,!0);throw new Error(\"Cannot find module '\"+o+\"'\")}var l=n[o]={exports:{}};t[o][0].call(l.exports,function(e){var n=t[o][1][e];return s(n?n:e)},l,l.exports,e,t,n,r)}return n[o].exports}return s})({1:[function(require,module,exports){module.exports={a:typeof require('wire').ask};},{}]},{},[])(1)});",
        // What webpack makes for the target `commonjs`.
        "(()=>{\"use strict\";var e={7:e=>{e.exports=require(\"wire\")}},t={};function r(o){var n=t[o];if(void 0!==n)return n.exports;var i=t[o]={exports:{}};return e[o](i,i.exports,r),i.exports}r.d=(e,t)=>{for(var o in t)Object.defineProperty(e,o,{enumerable:!0,get:t[o]})};var o={};r.d(o,{a:()=>i});var n=r(7);const i=typeof n.ask;var p=exports;for(var f in o)p[f]=o[f];Object.defineProperty(p,\"__esModule\",{value:!0})})();",
        // An older one.
        "!function(e,t){for(var r in t)e[r]=t[r]}(this,function(e){return {a:typeof e.ask}}(require(\"wire\")));",
    ];
    for wrapper in wrappers {
        for text in [
            "import { a } from './lib.js'; export default () => a;",
            "const { a } = require('./lib.js'); exports.default = () => a;",
        ] {
            assert_eq!(returned(&[("load.js", text), ("lib.js", wrapper)]), r#""function""#, "{wrapper}");
        }
    }
}

#[test]
fn a_module_runs_once_and_in_its_turn() {
    let note = |name: &str, rest: &str| format!("(globalThis.order ??= []).push('{name}'); {rest}");
    let (b, d, e) = (
        note("b", "exports.c = require('./c.js'); require('./d.js');"),
        note("d", "export {};"),
        note("e", "export {};"),
    );
    let (a, c) = (note("a", "export {};"), note("c", "exports.value = 1;"));
    let files = [
        (
            "load.js",
            "import './a.js'; import './b.js'; import { value } from './c.js'; import './e.js'; import './d.js'; const b = require('./b.js'); export default () => [...order, value, b.c.value];",
        ),
        ("a.js", &a),
        ("b.js", &b),
        ("c.js", &c),
        ("d.js", &d),
        ("e.js", &e),
    ];
    assert_eq!(returned(&files), r#"["a","b","c","d","e",1,1]"#);
}

#[test]
fn in_a_circle_modules_see_what_is_exported_so_far() {
    // Of CommonJS alone.
    let files = [
        ("load.js", "const a = require('./a.js'); exports.default = () => [a.early, a.late, a.seen];"),
        ("a.js", "exports.early = 1; exports.seen = require('./b.js').seen; exports.late = 2;"),
        ("b.js", "const a = require('./a.js'); exports.seen = [a.early, typeof a.late];"),
    ];
    assert_eq!(returned(&files), r#"[1,2,[1,"undefined"]]"#);
    // Functions of an ECMAScript module are there before it runs.
    let files = [
        (
            "load.js",
            "import { call } from './b.js'; export function f() { return value; } const value = 1; export default () => call();",
        ),
        ("b.js", "const load = require('./load.js'); exports.call = () => [load.f()];"),
    ];
    assert_eq!(returned(&files), "[1]");
    let files = [
        ("load.js", "import { a } from './a.js'; export default () => a;"),
        ("a.js", "import { b } from './b.js'; export const a = 1; export { b };"),
        ("b.js", "exports.b = require('./a.js').a;"),
    ];
    assert!(not_loaded(&files).starts_with("ReferenceError: "), "{}", not_loaded(&files));
    // What is not linked yet cannot wait for what is being evaluated.
    let files = [
        ("load.js", "import './b.js'; export default 1;"),
        ("b.js", "const name = './c.js';\nrequire(name);"),
        ("c.js", "import one from './load.js'; export default one;"),
    ];
    let said = not_loaded(&files);
    assert!(
        said.starts_with(
            "Error: cannot require `c.js`: it imports `load.js`, which waits for what requires it (b.js:2:"
        ),
        "{said}"
    );
}

#[test]
fn an_ecma_script_module_that_waits_is_required_as_far_as_it_is() {
    let files = [
        ("load.js", "const late = require('./late.js'); exports.default = () => [late.now, late.then];"),
        ("late.js", "export const now = 1; export let then = 0; await null; then = 2;"),
    ];
    assert_eq!(returned(&files), "[1,2]");
}

#[test]
fn what_may_never_run_need_not_be_there() {
    let cases = [
        (
            "let a; try { a = require('fs'); } catch (error) { a = error.message; } exports.default = () => a;",
            "\"there is no module `fs`\"",
        ),
        ("const a = typeof window === 'undefined' ? 1 : require('./none.js'); exports.default = () => a;", "1"),
        (
            "let a; try { a = require('./faulty.js'); } catch (error) { a = error.message; } exports.default = () => [a.includes('faulty.js:1:7: ')];",
            "[true]",
        ),
        (
            "let a; try { a = require('wire/browser'); } catch (error) { a = error.message; } exports.default = () => [a];",
            "[\"`wire/browser` is not supported: there is no browser here\"]",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(returned(&[("load.js", text), ("faulty.js", "const = 1;")]), expected, "{text}");
    }
}

#[test]
fn what_surely_runs_is_checked_before() {
    let home = folder(&[
        ("load.js", "import './lib/a.js';\nconst fs = require('fs');\nexport default () => fs;"),
        ("lib/a.js", "exports.b = require('./b.js');\nexports.c = require('./c');"),
        ("lib/b.js", "module.exports = {\n  a: ,\n};"),
        ("lib/c.js", ""),
    ]);
    let faults = load(home.path(), "load.js", ".").err().expect("it has faults");
    let rendered: String = faults.iter().map(plimsoll_javascript::Fault::render).collect();
    let expected = "\
lib/a.js:2:21: cannot read `lib/c`: No such file or directory (os error 2); did you mean `./c.js`?
2 | exports.c = require('./c');
  |                     ^
imported at load.js:1:8
lib/b.js:2:6: unexpected token
2 |   a: ,
  |      ^
imported at lib/a.js:1:21
imported at load.js:1:8
load.js:2:20: there is no module `fs`
2 | const fs = require('fs');
  |                    ^
";
    assert_eq!(rendered.replace(&format!("{}/", home.path().display()), ""), expected);
}

#[test]
fn an_exception_while_a_module_is_loaded_shows_who_loads_it() {
    let files = [
        ("load.js", "import lib from './lib/a.js';\nexport default () => lib;"),
        ("lib/a.js", "'use strict'; var b = require('./b.js');"),
        ("lib/b.js", "var x = {};\nthrow new Error('at load');"),
    ];
    let said = not_loaded(&files);
    assert!(said.starts_with("Error: at load (lib/b.js:2:11)\n2 | throw new Error('at load');\n"), "{said}");
    let (b, a, load) =
        (said.find("(lib/b.js:2:11)"), said.find("(lib/a.js:1:23)"), said.find("imported at load.js:1:17"));
    assert!(b < a && a < load && b.is_some(), "{said}");
}

#[test]
fn what_a_module_has_thrown_is_thrown_again() {
    let files = [
        (
            "load.js",
            "const all = []; for (const i of [1, 2]) { try { require('./a.js'); } catch (error) { all.push(error); } } exports.default = () => [all[0] === all[1], all.length, globalThis.runs];",
        ),
        ("a.js", "globalThis.runs = (globalThis.runs ?? 0) + 1; throw new Error('no');"),
    ];
    assert_eq!(returned(&files), "[true,2,1]");
}

#[test]
fn code_of_common_js_is_strict_and_the_body_of_a_function() {
    let cases = [
        ("exports.default = () => [same]; const same = this === exports && exports === module.exports;", "[true]"),
        ("exports.default = () => 1; if (true) return; exports.default = null;", "1"),
        (
            "exports.default = () => { try { undeclared = 1; } catch (error) { return error.name; } };",
            r#""ReferenceError""#,
        ),
        ("#!/usr/bin/env node\nexports.default = () => 1;", "1"),
        ("exports.default = () => 1; // the end", "1"),
        ("var module = { exports: 1 }; var exports; this.default = () => module.exports;", "1"),
        (
            "exports.default = () => [typeof __filename, typeof process, typeof module.id, typeof require.main];",
            r#"["undefined","undefined","undefined","undefined"]"#,
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(returned(&[("load.js", text)]), expected, "{text}");
    }
}

#[test]
fn places_in_common_js_are_those_of_the_file() {
    for (text, expected) in [
        ("exports.default = () => { throw new Error('ä'); };", "Error: ä (load.js:1:37)"),
        ("#!/bin/k6\nexports.default = () => { throw new Error('x'); };", "Error: x (load.js:2:37)"),
        (
            "const a = {}; exports.default = () => a.b.c;",
            "TypeError: cannot read property 'c' of undefined (load.js:1:43)",
        ),
        ("if (1) { exports.default = () => nope + 1; return; }", "ReferenceError: nope is not defined (load.js:1:34)"),
    ] {
        let home = folder(&[("load.js", text)]);
        let mut user = User::of(&program(home.path(), "load.js"));
        assert_eq!(user.load(), Parked::Over(Ok(None)));
        assert_eq!(user.thrown().replace(&format!("{}/", home.path().display()), ""), expected, "{text}");
    }
}

#[test]
fn only_an_object_can_be_exported() {
    for value in ["null", "undefined"] {
        let said = not_loaded(&[("load.js", "require('./a.js');"), ("a.js", &format!("module.exports = {value};"))]);
        assert!(said.contains("a.js` exports nothing: expected an object in `module.exports`"), "{said}");
    }
}

#[test]
fn a_file_of_both_kinds_is_explained() {
    for text in ["import './a.js';\nmodule.exports = 1;", "export default 1;\nexports.a = 1;"] {
        let said = not_loaded(&[("load.js", text), ("a.js", "")]);
        assert!(said.contains("is an ECMAScript module, use `export`") && said.contains("(load.js:2:1)"), "{said}");
    }
}

#[test]
fn typescript_may_be_common_js() {
    let files = [
        ("load.js", "const { twice } = require('./a.ts'); exports.default = () => twice(2);"),
        (
            "a.ts",
            "import type { T } from './t.ts';\nconst f = (x: number): number => 2 * x;\nexports.twice = f as unknown;",
        ),
    ];
    assert_eq!(returned(&files), "4");
}

#[test]
fn files_that_are_required_belong_to_the_script() {
    let home = folder(&[
        ("load.js", "const name = './a.js'; exports.default = require(name).f;"),
        ("a.js", "exports.f = () => require('./b.js');"),
        ("b.js", "exports.b = 1;"),
    ]);
    let program = program(home.path(), "load.js");
    let mut user = User::of(&program);
    assert_eq!(user.load(), Parked::Over(Ok(None)));
    assert_eq!(program.files().all_read().len(), 2);
    assert!(user.thrown().starts_with("Error: require() works only while the script is loaded"), "{}", user.thrown());
}

/// The bundle has the hashes of what the first user has read.
#[test]
fn a_later_user_requires_nothing_new() {
    let home = folder(&[
        (
            "load.js",
            "const first = globalThis.__FIRST; const name = first ? './a.js' : './b.js'; exports.default = () => name; require(name);",
        ),
        ("a.js", ""),
        ("b.js", ""),
    ]);
    let program = program(home.path(), "load.js");
    assert_eq!(User::of(&program).load(), Parked::Over(Ok(None)));
    assert_eq!(User::of(&program).load(), Parked::Over(Ok(None)));
    let globals = vec![("__FIRST".into(), plimsoll_javascript::Argument::Number(1.0))];
    let Parked::Ended(End::NotLoaded(thrown)) = User::with_globals(&program, globals).load() else {
        panic!("it is new")
    };
    assert!(thrown.message.contains("`./a.js` was not required when the script was loaded first"), "{thrown}");
}

#[test]
fn a_function_of_common_js_is_called_by_its_name() {
    let home = folder(&[("load.js", "exports.buy = (what) => [what];")]);
    let mut user = User::of(&program(home.path(), "load.js"));
    assert_eq!(user.load(), Parked::Over(Ok(None)));
    let call = Call { function: "buy".into(), arguments: vec![], globals: vec![], result: ResultFormat::Json };
    assert_eq!(user.vm.call(call), Parked::Over(Ok(Some("[null]".to_owned()))));
}
