//! Scripts of several modules, TypeScript, and files.

use crate::common::{User, folder, load};
use plimsoll_javascript::Parked;

/// A user of the script `entry` in a folder of `files`, loaded.
fn user(files: &[(&str, &str)], entry: &str) -> (tempfile::TempDir, User) {
    let home = folder(files);
    let program = match load(home.path(), entry, ".") {
        Ok(program) => program,
        Err(faults) => panic!("{}", crate::common::listed(&faults)),
    };
    let mut user = User::of(&program);
    assert_eq!(user.load(), Parked::Over(Ok(None)));
    (home, user)
}

#[test]
fn modules_import_one_another() {
    let files = [
        (
            "load.js",
            "import a, { b as c } from './lib/a.js'; import * as all from './lib/../lib/b.js'; export default () => [a, c, all.b, all.fromA()];",
        ),
        ("lib/a.js", "export { b } from './b.js'; export default 'a'; export const own = 'own';"),
        ("lib/b.js", "import { own } from './a.js'; export const b = 'b'; export function fromA() { return own; }"),
    ];
    let (_home, mut user) = user(&files, "load.js");
    assert_eq!(user.returned(), r#"["a","b","b","own"]"#);
}

#[test]
fn everything_is_handed_on_and_found_again() {
    let files = [
        ("load.js", "import { deep, ask } from './one.js'; export default () => [deep, typeof ask];"),
        ("one.js", "export * from './two.js'; export * from 'wire';"),
        ("two.js", "export * from './one.js'; export const deep = 1;"),
    ];
    let (_home, mut user) = user(&files, "load.js");
    assert_eq!(user.returned(), r#"[1,"function"]"#);
}

#[test]
fn of_a_module_in_rust_there_is_what_is_imported_anywhere() {
    let files = [
        (
            "load.js",
            "import { ask } from 'wire'; import { whole } from './whole.js'; import { sleep } from './one.js';
             export default () => [ask === whole.ask, sleep === whole.sleep, whole.default.listen === whole.listen];",
        ),
        ("whole.js", "import * as whole from 'wire'; export { whole };"),
        ("one.js", "export { sleep } from 'wire';"),
    ];
    let (_home, mut user) = user(&files, "load.js");
    assert_eq!(user.returned(), "[true,true,true]");
}

#[test]
fn an_exception_is_told_where_it_was_thrown() {
    let files = [
        ("load.js", "import { f } from './lib/f.js';\nexport default () => f();"),
        ("lib/f.js", "\n\nexport const f = () => { throw new Error('deep'); };"),
    ];
    let (home, mut user) = user(&files, "load.js");
    let expected = format!("Error: deep ({}/lib/f.js:3:36)", home.path().display());
    assert_eq!(user.thrown(), expected);
}

#[test]
fn a_circle_of_imports_is_named_where_something_is_not_there_yet() {
    let home = folder(&[
        ("load.js", "import { a } from './a.js'; export default () => a;"),
        ("a.js", "import { b } from './lib/b.js'; export const a = b + 1;"),
        ("lib/b.js", "import { c } from '../c.js'; export const b = c;"),
        ("c.js", "import { a } from './a.js';\nexport const c = a;"),
    ]);
    let Ok(program) = load(home.path(), "load.js", ".") else { panic!("every module can be read") };
    let said = format!("{:?}", User::of(&program).load());
    let at = home.path().display();
    let circle =
        format!("in a circle run before what they import exists: {at}/c.js → {at}/a.js → {at}/lib/b.js → {at}/c.js");
    assert!(said.contains("a is not initialized") && said.contains(&circle), "{said}");
}

#[test]
fn typescript_runs_without_its_types_and_keeps_its_places() {
    let script = "import { Options } from 'k6/options';
import wire, { type Answer, ask } from 'wire';
import type { Other } from './types';
import { helper, Shape } from './helper.ts';
export const options: Options = { vus: 1 };
interface Reply<T> { body?: T }
class Counter<T extends object> extends Map<string, T> implements Iterable<T> {
  private static readonly first: number = 1;
  declare ghost: string;
  [key: string]: unknown;
  constructor(public_: T, protected_?: T) { super(); }
  get one(): number { return Counter.first; }
}
const arrow = async <T,>(
  x: T,
): Promise<{
  x: T;
}> => ({ x });
export default async function (this: void, data?: Reply<string>): Promise<unknown> {
  const got = (await arrow<string>('größe' as string)) satisfies { x: string };
  let later!: number; later = <number>got.x.length!;
  const shape: Shape = helper({ n: later } as const);
  if (later === 0) throw new Error(`never` as any);
  return [got.x, new Counter<object>({}).one, shape, typeof wire.sleep, typeof ask];
}
export function fails(): never { throw new Error('ü' as 'ü'); }
";
    let helper = "export type Shape = { n: number };\nexport function helper(s: Shape): Shape;\nexport function helper(s: any): any { return s; }\n";
    let (home, mut user) = user(&[("load.ts", script), ("helper.ts", helper)], "load.ts");
    assert_eq!(user.returned(), r#"["größe",1,{"n":5},"function","function"]"#);
    let call = plimsoll_javascript::Call {
        function: "fails".into(),
        arguments: vec![],
        globals: vec![],
        result: plimsoll_javascript::ResultFormat::Nothing,
    };
    let Parked::Over(Err(thrown)) = user.vm.call(call) else { panic!("it throws") };
    assert_eq!(thrown.to_string(), format!("Error: ü ({}/load.ts:26:44)", home.path().display()));
}

#[test]
fn files_are_opened_beside_the_module_that_asks_and_only_while_it_is_loaded() {
    let files = [
        (
            "load.js",
            "import { rows } from './lib/rows.js'; const mine = open('./mine.txt'); export default () => [rows, mine]; export const late = () => open('mine.txt');",
        ),
        ("mine.txt", "mine"),
        ("lib/rows.js", "export const rows = [open('rows.csv'), new Uint8Array(open('./rows.csv', 'b')).length];"),
        ("lib/rows.csv", "ä,b"),
    ];
    let (_home, mut user) = user(&files, "load.js");
    assert_eq!(user.returned(), r#"[["ä,b",4],"mine"]"#);
    let call = plimsoll_javascript::Call {
        function: "late".into(),
        arguments: vec![],
        globals: vec![],
        result: plimsoll_javascript::ResultFormat::Nothing,
    };
    let Parked::Over(Err(thrown)) = user.vm.call(call) else { panic!("it throws") };
    assert!(thrown.message.starts_with("Error: open() works only while the script is loaded"), "{thrown}");
}

#[test]
fn a_program_knows_its_exports_and_what_was_read() {
    let files = [
        ("load.js", "export * from './more.js'; export default 1; export const options = {};"),
        ("more.js", "export function setup() {}"),
    ];
    let home = folder(&files);
    let program = load(home.path(), "load.js", ".").expect("it has no faults");
    assert_eq!(program.exports(), ["default", "options", "setup"]);
    assert_eq!(program.files().all_read().len(), 2);
}
