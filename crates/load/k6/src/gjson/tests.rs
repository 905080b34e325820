use super::*;
use proptest::prelude::*;

/// The example of GJSON's README.
const FAMILY: &str = r#"{
  "name": {"first": "Tom", "last": "Anderson"},
  "age": 37,
  "children": ["Sara", "Alex", "Jack"],
  "fav.movie": "Deer Hunter",
  "friends": [
    {"first": "Dale", "last": "Murphy", "age": 44, "nets": ["ig", "fb", "tw"]},
    {"first": "Roger", "last": "Craig", "age": 68, "nets": ["fb", "tw"]},
    {"first": "Jane", "last": "Murphy", "age": 47, "nets": ["ig", "tw"]}
  ],
  "flags": [true, false, null, 7, 10.50, "x"],
  "": "empty"
}"#;

fn found(path: &str) -> Option<String> {
    get(FAMILY, path).unwrap_or_else(|fault| panic!("{fault}")).map(Cow::into_owned)
}

#[test]
fn paths_lead_where_gjson_says() {
    let cases = [
        // GJSON's README and SYNTAX.
        ("name.last", Some(r#""Anderson""#)),
        ("name", Some(r#"{"first": "Tom", "last": "Anderson"}"#)),
        ("age", Some("37")),
        ("children", Some(r#"["Sara", "Alex", "Jack"]"#)),
        ("children.#", Some("3")),
        ("children.1", Some(r#""Alex""#)),
        ("child*.2", Some(r#""Jack""#)),
        ("c?ildren.0", Some(r#""Sara""#)),
        (r"fav\.movie", Some(r#""Deer Hunter""#)),
        ("friends.#.first", Some(r#"["Dale","Roger","Jane"]"#)),
        ("friends.1.last", Some(r#""Craig""#)),
        (r#"friends.#(last=="Murphy").first"#, Some(r#""Dale""#)),
        (r#"friends.#(last=="Murphy")#.first"#, Some(r#"["Dale","Jane"]"#)),
        ("friends.#(age>45)#.last", Some(r#"["Craig","Murphy"]"#)),
        (r#"friends.#(first%"D*").last"#, Some(r#""Murphy""#)),
        (r#"friends.#(first!%"D*").last"#, Some(r#""Craig""#)),
        (r#"friends.#(nets.#(=="fb"))#.first"#, Some(r#"["Dale","Roger"]"#)),
        (r#"children.#(!%"*a*")"#, Some(r#""Alex""#)),
        (r#"children.#(%"*a*")#"#, Some(r#"["Sara","Jack"]"#)),
        // What follows from the syntax.
        ("friends.#.nets.0", Some(r#"["ig","fb","ig"]"#)),
        ("friends.#.none", Some("[]")),
        ("friends.#(age==68.0).first", Some(r#""Roger""#)),
        ("friends.#(age >= 47)#.age", Some("[68,47]")),
        ("friends.#(age<44).first", None),
        ("friends.#(age<44)#.first", Some("[]")),
        ("friends.#(nets).first", Some(r#""Dale""#)),
        ("friends.#(none).first", None),
        (r#"friends.#(last=="a)b").first"#, None),
        ("flags.#(==true)", Some("true")),
        ("flags.#(!=true)#", Some(r#"[false,7,10.50,"x"]"#)),
        ("flags.#(>7)", Some("10.50")),
        ("flags.#(==null)", None),
        ("flags.4", Some("10.50")),
        ("flags.9", None),
        ("flags.-1", None),
        ("flags.x", None),
        ("name.first.x", None),
        ("age.0", None),
        ("none", None),
        ("Name.last", None),
        ("name.#", None),
        ("", Some(r#""empty""#)),
    ];
    for (path, expected) in cases {
        assert_eq!(found(path).as_deref(), expected, "{path}");
    }
}

#[test]
fn any_text_that_is_json_can_be_looked_at() {
    let get = |json, path| get(json, path).map(|found| found.map(Cow::into_owned));
    assert_eq!(get("[1, [2, 3]]", "1.0"), Ok(Some("2".to_owned())));
    assert_eq!(get(r#"{"a": 1, "a": 2}"#, "a"), Ok(Some("1".to_owned())), "the first of a name");
    assert_eq!(get(r#"{"\u00e4\"": {"0": 1}}"#, "ä\".0"), Ok(Some("1".to_owned())));
    assert_eq!(get("12", "a"), Ok(None));
    assert!(get("<html>", "a").is_err_and(|fault| matches!(fault, GjsonFault::NoJson(_))));
    assert!(get("{}{}", "a").is_err_and(|fault| matches!(fault, GjsonFault::NoJson(_))));
}

#[test]
fn a_path_may_be_as_long_as_it_likes() {
    let depth = 20_000;
    let json = format!("{}7{}", "[".repeat(depth), "]".repeat(depth));
    let path = |steps: usize| vec!["0"; steps].join(".");
    assert_eq!(get(&json, &path(depth)).map(|found| found.map(Cow::into_owned)), Ok(Some("7".to_owned())));
    assert_eq!(get(&json, &path(depth + 1)), Ok(None));
}

#[test]
fn unsupported_syntax_is_refused_by_name() {
    let cases = [
        ("a.@reverse", "a modifier"),
        ("@this", "a modifier"),
        ("a|b", "a pipe"),
        ("{a,b}", "a multipath"),
        ("a.[b,c]", "a multipath"),
        ("a.!\"x\"", "a literal"),
        ("..#", "JSON lines"),
        ("a.#(b==~true)", "truth values"),
        ("a.#(b==1", "a query that does not end"),
        ("a.#(b==\"x)", "a query that does not end"),
    ];
    let nested = ["#.", "#("].map(|part| part.repeat(40));
    let nested = nested.iter().map(|path| (path.as_str(), "more than 32 of `#`"));
    for (path, what) in cases.into_iter().chain(nested) {
        let fault = get("{}", path).expect_err(path).to_string();
        assert!(fault.contains(what) && fault.contains(path), "{fault}");
    }
}

#[test]
fn queries_that_would_overflow_the_stack_are_refused() {
    let queries = format!("{}a{}", "#(".repeat(100_000), ")".repeat(100_000));
    assert!(get("[]", &queries).is_err_and(|fault| matches!(fault, GjsonFault::Unsupported { .. })));
}

proptest! {
    #[test]
    fn any_path_leads_to_json_or_nowhere(path in r#"[a-c0-2#.()="\\*?%<>!]{0,14}"#) {
        let json = r#"{"a": [{"b": "c", "0": [1, 2]}, {"b": 2}, "c", 1], "b": {"a": {"c": 0}}, "0": null}"#;
        if let Ok(Some(found)) = get(json, &path) {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&found).is_ok(), "{path}: {found}");
        }
    }

    #[test]
    fn a_name_is_found_whatever_it_is(name in any::<String>(), number in any::<i32>()) {
        let json = serde_json::json!({ "other": 0, &*name: number }).to_string();
        let path: String = name.chars().flat_map(|c| ['\\', c]).collect();
        if !name.is_empty() {
            prop_assert_eq!(get(&json, &path).map(|found| found.map(Cow::into_owned)), Ok(Some(number.to_string())));
        }
    }
}
