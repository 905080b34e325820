//! Finds a value in JSON by a simple path such as `$.a['b'][0]`, on the bytes and without a tree. Values
//! beside the path are skipped, not parsed.

/// A step of a simple path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// A member of an object.
    Name(Box<str>),
    /// An item of an array, from 0.
    Index(usize),
}

/// The error of a body whose inspected part is no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotJson;

/// Parses a JSONPath that names one value at most; `None` for any other.
pub(super) fn parse_simple(path: &str) -> Option<Vec<Segment>> {
    let mut rest = path.trim().strip_prefix('$')?;
    let mut segments = Vec::new();
    while !rest.is_empty() {
        let (segment, behind) = if let Some(name) = rest.strip_prefix('.') { dotted(name)? } else { bracketed(rest)? };
        segments.push(segment);
        rest = behind;
    }
    Some(segments)
}

/// A name behind a dot (RFC 9535, section 2.5.1.1).
fn dotted(text: &str) -> Option<(Segment, &str)> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || !c.is_ascii();
    let (name, behind) = text.split_at(text.find(|c| !is_name(c)).unwrap_or(text.len()));
    let begins_well = name.starts_with(|c: char| !c.is_ascii_digit());
    begins_well.then(|| (Segment::Name(name.into()), behind))
}

/// A name in quotes, without escapes, or an index.
fn bracketed(text: &str) -> Option<(Segment, &str)> {
    let (inside, behind) = text.strip_prefix('[')?.split_once(']')?;
    if inside == "0" || (inside.bytes().all(|byte| byte.is_ascii_digit()) && !inside.starts_with('0')) {
        return Some((Segment::Index(inside.parse().ok()?), behind));
    }
    let quoted = |quote: char| inside.strip_prefix(quote)?.strip_suffix(quote);
    let name = quoted('\'').or_else(|| quoted('"'))?;
    (!name.contains(['\'', '"', '\\'])).then(|| (Segment::Name(name.into()), behind))
}

/// The bytes of the value under the path.
pub(super) fn find<'a>(body: &'a [u8], path: &[Segment]) -> Result<Option<&'a [u8]>, NotJson> {
    let mut reader = Reader { body, at: 0 };
    reader.skip_space();
    for segment in path {
        let there = match segment {
            Segment::Name(name) => reader.enter_member(name)?,
            Segment::Index(index) => reader.enter_item(*index)?,
        };
        if !there {
            return Ok(None);
        }
    }
    let start = reader.at;
    reader.skip_value()?;
    Ok(Some(&body[start..reader.at]))
}

struct Reader<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Result<u8, NotJson> {
        self.body.get(self.at).copied().ok_or(NotJson)
    }

    fn skip_space(&mut self) {
        while self.body.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Takes this byte if it comes next, after any whitespace.
    fn take_if(&mut self, byte: u8) -> bool {
        self.skip_space();
        let comes = self.body.get(self.at) == Some(&byte);
        self.at += usize::from(comes);
        comes
    }

    fn expect(&mut self, byte: u8) -> Result<(), NotJson> {
        if self.take_if(byte) { Ok(()) } else { Err(NotJson) }
    }

    /// Moves to the value of a member. Returns false if this is no object, or has no such member.
    fn enter_member(&mut self, wanted: &str) -> Result<bool, NotJson> {
        if self.peek()? != b'{' {
            return self.skip_value().map(|()| false);
        }
        self.at += 1;
        if self.take_if(b'}') {
            return Ok(false);
        }
        loop {
            self.skip_space();
            let name = self.string()?;
            self.expect(b':')?;
            self.skip_space();
            if is_name(name, wanted) {
                return Ok(true);
            }
            self.skip_value()?;
            if !self.take_if(b',') {
                return self.expect(b'}').map(|()| false);
            }
        }
    }

    /// Moves to an item. Returns false if this is no array, or is too short.
    fn enter_item(&mut self, index: usize) -> Result<bool, NotJson> {
        if self.peek()? != b'[' {
            return self.skip_value().map(|()| false);
        }
        self.at += 1;
        if self.take_if(b']') {
            return Ok(false);
        }
        for _ in 0..index {
            self.skip_space();
            self.skip_value()?;
            if !self.take_if(b',') {
                return self.expect(b']').map(|()| false);
            }
        }
        self.skip_space();
        Ok(true)
    }

    fn skip_value(&mut self) -> Result<(), NotJson> {
        match self.peek()? {
            b'"' => self.string().map(|_| ()),
            b'{' | b'[' => self.skip_nested(),
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
                self.at += self.body[self.at..].iter().take_while(|byte| is_part(byte)).count();
                Ok(())
            }
            _ => Err(NotJson),
        }
    }

    /// Skips an object or array by counting brackets.
    fn skip_nested(&mut self) -> Result<(), NotJson> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Takes a string, and returns the bytes between its quotes.
    fn string(&mut self) -> Result<&'a [u8], NotJson> {
        if self.peek()? != b'"' {
            return Err(NotJson);
        }
        let start = self.at + 1;
        let mut end = start;
        loop {
            match self.body.get(end).ok_or(NotJson)? {
                b'"' => break,
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        self.at = end + 1;
        Ok(&self.body[start..end])
    }
}

/// True if a name in the body is this one. Names with escapes are rare.
fn is_name(found: &[u8], wanted: &str) -> bool {
    if !found.contains(&b'\\') {
        return found == wanted.as_bytes();
    }
    let quoted = [b"\"", found, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).is_ok_and(|name| name == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn name(name: &str) -> Segment {
        Segment::Name(name.into())
    }

    #[test]
    fn paths_of_one_place_are_simple() {
        for (path, expected) in [
            ("$", Some(vec![])),
            ("$.a", Some(vec![name("a")])),
            ("$.access_token[0]", Some(vec![name("access_token"), Segment::Index(0)])),
            ("$['a b'][\"c\"][10].ü9", Some(vec![name("a b"), name("c"), Segment::Index(10), name("ü9")])),
            ("a", None),
            ("$..a", None),
            ("$.*", None),
            ("$[*]", None),
            ("$[-1]", None),
            ("$[01]", None),
            ("$[]", None),
            ("$.9", None),
            ("$.a-b", None),
            ("$['a\\'b']", None),
            ("$[?@.a]", None),
            ("$[0:1]", None),
            ("$['a','b']", None),
        ] {
            assert_eq!(parse_simple(path), expected, "{path}");
        }
    }

    #[test]
    fn a_value_is_found_as_it_stands() {
        let body = br#" { "skip" : [1, {"id": "no"}, "]}"], "a\"b": 1, "i\u0064": [ "x", -1.5e3 ,{"k":null} ] } "#;
        for (path, expected) in [
            ("$.skip[1].id", Some("\"no\"")),
            ("$.id[0]", Some("\"x\"")),
            ("$.id[1]", Some("-1.5e3")),
            ("$.id[2].k", Some("null")),
            ("$.id[3]", None),
            ("$.id.x", None),
            ("$.none", None),
            ("$.skip[0][0]", None),
            ("$.skip", Some("[1, {\"id\": \"no\"}, \"]}\"]")),
        ] {
            let segments = parse_simple(path).expect("simple");
            let found = find(body, &segments).expect("JSON");
            assert_eq!(found.map(|found| std::str::from_utf8(found).expect("UTF-8")), expected, "{path}");
        }
    }

    #[test]
    fn what_is_no_json_is_told() {
        for body in ["", " ", "<html>", "{\"a\"", "{\"a\":", "{\"a\": 1", "{\"a\": [1, \"x]}", "{a: 1}", "plain"] {
            let path = [name("b")];
            assert_eq!(find(body.as_bytes(), &path), Err(NotJson), "{body:?}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a\"\\\\\\]}{,:é\n]{0,5}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 40, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[ab\"\\\\]{1,2}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// Every place of a value, with the path to it.
    fn places<'a>(value: &'a Value, path: &[Segment], all: &mut Vec<(Vec<Segment>, &'a Value)>) {
        all.push((path.to_vec(), value));
        let with = |segment| [path, &[segment]].concat();
        match value {
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, item)| places(item, &with(Segment::Index(at)), all));
            }
            Value::Object(members) => {
                members.iter().for_each(|(key, member)| places(member, &with(name(key)), all));
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn every_place_is_found_as_a_parser_finds_it(value in values(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.expect("JSON");
            let mut all = Vec::new();
            places(&value, &[], &mut all);
            for (path, expected) in all {
                let found = find(text.as_bytes(), &path).expect("JSON").expect("it is there");
                let found: Value = serde_json::from_slice(found).expect("JSON");
                prop_assert_eq!(&found, expected);
            }
        }

        #[test]
        fn no_bytes_break_it(body in prop::collection::vec(prop::sample::select(b"{}[]\":,\\a1 ".to_vec()), 0..30)) {
            for path in [vec![name("a")], vec![Segment::Index(1)], vec![name("a"), Segment::Index(0)], vec![]] {
                let _ = find(&body, &path);
            }
        }
    }
}
