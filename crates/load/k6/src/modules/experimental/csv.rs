//! The module `k6/experimental/csv`: records of a file, all at once as an array that users share, or one by one.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

use super::fs::File;
use crate::modules::data;
use crate::native::Native;
use crate::operations::K6;
use crate::user::User;
use crate::value::{Arg, non_null, optional_text, settled, thrown};
use ::csv::{Reader, ReaderBuilder, StringRecord};
use plimsoll_javascript::{EventLoop, NativeModule};
use rquickjs::class::Trace;
use rquickjs::function::Opt;
use rquickjs::{Class, Coerced, Ctx, FromJs, IntoJs, JsLifetime, Object, Promise, Result, Value};
use serde_json::json;
use std::cell::RefCell;
use std::io::Cursor;
use std::sync::Arc;

/// See the module.
pub(crate) struct Csv;

impl NativeModule for Csv {
    const NAME: &'static str = "k6/experimental/csv";
    const EXPORTS: &'static [&'static str] = &["default", "parse", "Parser"];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let module = Object::new(ctx.clone())?;
        module.native("parse", parse)?;
        Class::<Parser>::define(&module)?;
        Ok(module)
    }
}

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    delimiter: u8,
    skip_first_line: bool,
    from_line: Option<i64>,
    to_line: Option<i64>,
    as_objects: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { delimiter: b',', skip_first_line: false, from_line: None, to_line: None, as_objects: false }
    }
}

impl Options {
    fn read<'js>(ctx: &Ctx<'js>, options: Option<Value<'js>>) -> Result<Options> {
        let Some(object) = non_null(options).and_then(Value::into_object) else { return Ok(Options::default()) };
        let truth = |name| Ok::<_, rquickjs::Error>(object.get::<_, Coerced<bool>>(name)?.0);
        let line = |name| -> Result<Option<i64>> {
            let line = non_null(Some(object.get(name)?));
            line.map(|line| Ok(Coerced::<f64>::from_js(ctx, line)?.0 as i64)).transpose()
        };
        let delimiter = match optional_text(ctx, Some(object.get("delimiter")?))?.as_deref().map(str::as_bytes) {
            None => b',',
            Some([delimiter]) => *delimiter,
            Some(_) => return Err(thrown(ctx, "delimiter must be a single character")),
        };
        let (skip_first_line, as_objects) = (truth("skipFirstLine")?, truth("asObjects")?);
        let options =
            Options { delimiter, skip_first_line, from_line: line("fromLine")?, to_line: line("toLine")?, as_objects };
        options.fault().map_or(Ok(options), |why| Err(thrown(ctx, why)))
    }

    /// Why they do not go together.
    fn fault(&self) -> Option<&'static str> {
        let Options { from_line, to_line, .. } = *self;
        if from_line.zip(to_line).is_some_and(|(from, to)| from >= to) {
            Some("expected the option `fromLine` to be less than `toLine`")
        } else if self.as_objects && self.skip_first_line {
            Some("expected one of the options `asObjects` and `skipFirstLine`: the first line has the names")
        } else if self.as_objects && from_line.is_some_and(|from| from > 0) {
            Some("expected one of the options `asObjects` and `fromLine`: the first line has the names")
        } else if from_line.is_some_and(|from| from < 0) || to_line.is_some_and(|to| to < 0) {
            Some("expected 0 or more as `fromLine` and `toLine`")
        } else {
            None
        }
    }
}

/// The records of a file, in order.
struct Records {
    reader: Reader<Cursor<Arc<[u8]>>>,
    options: Options,
    /// Records that were read or skipped.
    line: i64,
    /// The names of the columns, with [`Options::as_objects`].
    names: StringRecord,
}

impl Records {
    /// Those that are left in a file.
    fn of(file: &File, options: Options) -> std::result::Result<Records, String> {
        let (content, place) = file.take_rest();
        let mut rest = Cursor::new(content);
        rest.set_position(place as u64);
        let reader = ReaderBuilder::new().has_headers(false).delimiter(options.delimiter).from_reader(rest);
        let mut records = Records { reader, options, line: 0, names: StringRecord::new() };
        if options.as_objects {
            records.names = records.next_record()?.ok_or("expected a first line with names, found none")?;
        }
        let from = options.from_line.unwrap_or_default();
        let skipped = if from > 0 { from } else { i64::from(options.skip_first_line) };
        while records.line < skipped {
            if records.next_record()?.is_none() {
                return Err(format!("expected more than {skipped} lines to skip, found {}", records.line));
            }
        }
        Ok(records)
    }

    fn next_record(&mut self) -> std::result::Result<Option<StringRecord>, String> {
        let mut record = StringRecord::new();
        let is_there = self.reader.read_record(&mut record).map_err(|error| format!("failed to read CSV: {error}"))?;
        self.line += i64::from(is_there);
        Ok(is_there.then_some(record))
    }

    /// The next record as JSON: an array of texts, or an object of them; none at the end.
    fn next_value(&mut self) -> std::result::Result<Option<serde_json::Value>, String> {
        if self.options.to_line.is_some_and(|to| to > 0 && self.line > to) {
            return Ok(None);
        }
        let Some(record) = self.next_record()? else { return Ok(None) };
        Ok(Some(match self.options.as_objects {
            true => self.names.iter().zip(&record).map(|(name, value)| (name.to_owned(), json!(value))).collect(),
            false => record.iter().collect(),
        }))
    }
}

fn file_of<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Class<'js, File>> {
    File::of(value).ok_or_else(|| thrown(ctx, "first argument expected to be a fs.File instance"))
}

fn must_be_loading(ctx: &Ctx<'_>, what: &str) -> Result<()> {
    if EventLoop::<K6>::of(ctx)?.is_loading() {
        return Ok(());
    }
    Err(thrown(ctx, format!("{what} must be called in the init context: outside of functions")))
}

/// `parse(file, options)`: a promise of a [`data::Data`] array, which is read once for all users.
fn parse<'js>(ctx: Ctx<'js>, file: Arg<'js>, options: Opt<Value<'js>>) -> Result<Promise<'js>> {
    let file = file_of(&ctx, &file.0)?;
    let options = Options::read(&ctx, options.0)?;
    settled(&ctx, |ctx| {
        must_be_loading(ctx, "csv.parse")?;
        let shared = User::of(ctx)?.run().shared_arrays.clone();
        let name = format!("csv.parse {} {options:?}", file.borrow().path_of().display());
        let elements = match shared.get(&name) {
            Some(elements) => elements,
            None => {
                let mut records = Records::of(&file.borrow(), options).map_err(|why| thrown(ctx, why))?;
                let mut next =
                    || records.next_value().map(|value| value.map(|value| value.to_string().into_boxed_str()));
                let all: std::result::Result<_, String> = std::iter::from_fn(|| next().transpose()).collect();
                shared.keep(name, all.map_err(|why| thrown(ctx, why))?)
            }
        };
        data::proxy(ctx, elements)
    })
}

/// Reads the records of a file one by one.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
struct Parser {
    #[qjs(skip_trace)]
    records: RefCell<Records>,
}

#[rquickjs::methods]
impl Parser {
    #[qjs(constructor)]
    fn new<'js>(ctx: Ctx<'js>, file: Arg<'js>, options: Opt<Value<'js>>) -> Result<Self> {
        must_be_loading(&ctx, "csv Parser constructor")?;
        if non_null(Some(file.0.clone())).is_none() {
            return Err(thrown(&ctx, "csv Parser constructor takes at least one non-nil source argument"));
        }
        let (file, options) = (file_of(&ctx, &file.0)?, Options::read(&ctx, options.0)?);
        let records = Records::of(&file.borrow(), options).map_err(|why| thrown(&ctx, why))?;
        Ok(Parser { records: RefCell::new(records) })
    }

    /// A promise of the next record: `{ done, value }`.
    fn next<'js>(&self, ctx: Ctx<'js>) -> Result<Promise<'js>> {
        settled(&ctx, |ctx| {
            let value = self.records.borrow_mut().next_value().map_err(|why| thrown(ctx, why))?;
            let result = Object::new(ctx.clone())?;
            result.set("done", value.is_none())?;
            result.set("value", ctx.json_parse(value.unwrap_or_else(|| json!([])).to_string())?)?;
            result.into_js(ctx)
        })
    }
}
