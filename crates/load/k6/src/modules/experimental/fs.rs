//! The module `k6/experimental/fs`: files that are read in pieces. All users share the content of a file.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

use crate::native::Native;
use crate::operations::K6;
use crate::schema::script_folder;
use crate::value::{Arg, instance, is_nothing, settled, text, thrown_named};
use plimsoll_javascript::{EventLoop, FileError, NativeModule, Program};
use rquickjs::class::Trace;
use rquickjs::{Class, Ctx, IntoJs, JsLifetime, Object, Promise, Result, TypedArray, Value};
use std::cell::Cell;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// See the module.
pub(crate) struct Fs;

impl NativeModule for Fs {
    const NAME: &'static str = "k6/experimental/fs";
    const EXPORTS: &'static [&'static str] = &["default", "open", "SeekMode"];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let module = Object::new(ctx.clone())?;
        module.native("open", open)?;
        let modes = Object::new(ctx.clone())?;
        for (mode, name) in ["Start", "Current", "End"].into_iter().enumerate() {
            modes.set(name, mode)?;
        }
        module.set("SeekMode", modes)?;
        Ok(module)
    }
}

/// An open file.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(super) struct File {
    #[qjs(skip_trace)]
    path: PathBuf,
    #[qjs(skip_trace)]
    content: Arc<[u8]>,
    /// Where the next read begins; not beyond the end.
    #[qjs(skip_trace)]
    place: Cell<usize>,
}

/// `open(path)`: a promise of the file. Paths are relative to the script that is run.
fn open<'js>(ctx: Ctx<'js>, path: Arg<'js>) -> Result<Promise<'js>> {
    settled(&ctx, |ctx| {
        if !EventLoop::<K6>::of(ctx)?.is_loading() {
            let why = "open() failed; reason: opening a file is allowed only in the Init context";
            return Err(thrown_named(ctx, "ForbiddenError", why));
        }
        if is_nothing(&path.0) {
            let why = "open() failed; reason: path cannot be null or undefined";
            return Err(thrown_named(ctx, "TypeError", why));
        }
        let path = text(ctx, path.0)?;
        if path.is_empty() {
            return Err(thrown_named(ctx, "TypeError", "open() failed; reason: path cannot be empty"));
        }
        let program = Program::of(ctx)?;
        let path = script_folder(&program).join(path.strip_prefix("file://").unwrap_or(&path));
        let content = program.files().read(&path).map_err(|why| unreadable(ctx, &path, &why))?;
        Ok(Class::instance(ctx.clone(), File { path, content, place: Cell::default() })?.into_value())
    })
}

fn unreadable(ctx: &Ctx<'_>, path: &Path, why: &FileError) -> rquickjs::Error {
    let name = match why {
        FileError::Outside { .. } => "ForbiddenError",
        FileError::Unreadable { source, .. } if source.kind() == ErrorKind::NotFound => "NotFoundError",
        FileError::Unreadable { .. } if path.is_dir() => "InvalidResourceError",
        FileError::Unreadable { .. }
        | FileError::NoCopy { .. }
        | FileError::CopyNotTaken { .. }
        | FileError::CopyChanged { .. } => "Error",
    };
    thrown_named(ctx, name, &why.to_string())
}

impl File {
    /// The file of an argument; none for other values.
    pub(super) fn of<'js>(value: &Value<'js>) -> Option<Class<'js, File>> {
        instance(value)
    }

    pub(super) fn path_of(&self) -> &Path {
        &self.path
    }

    /// What is not read yet; afterwards all of it is.
    pub(super) fn take_rest(&self) -> (Arc<[u8]>, usize) {
        (Arc::clone(&self.content), self.place.replace(self.content.len()))
    }

    fn sought<'js>(&self, ctx: &Ctx<'js>, offset: &Value<'js>, whence: &Value<'js>) -> Result<usize> {
        let offset = whole_number(ctx, "offset", offset)?;
        let wrong = |why: &str| thrown_named(ctx, "TypeError", why);
        let length = self.content.len() as i64;
        let start = match whole_number(ctx, "whence", whence)? {
            0 if offset < 0 => return Err(wrong("offset cannot be negative when using SeekModeStart")),
            0 => 0,
            1 => self.place.get() as i64,
            2 if offset > 0 => return Err(wrong("offset cannot be positive when using SeekModeEnd")),
            // As in k6: the last byte.
            2 => length - 1,
            _ => return Err(wrong("seek() failed; reason: the whence argument must be a SeekMode")),
        };
        match start.saturating_add(offset) {
            place if place < 0 => Err(wrong("seeking before start of file")),
            place if place > length => Err(wrong("seeking beyond end of file")),
            place => Ok(place as usize),
        }
    }
}

fn whole_number<'js>(ctx: &Ctx<'js>, name: &str, value: &Value<'js>) -> Result<i64> {
    let wrong =
        |why: &str| thrown_named(ctx, "TypeError", &format!("seek() failed; reason: the {name} argument {why}"));
    if is_nothing(value) {
        return Err(wrong("cannot be null or undefined"));
    }
    let number = value.as_number().filter(|number| number.fract() == 0.0);
    number.map(|number| number as i64).ok_or_else(|| wrong("must be a number"))
}

#[rquickjs::methods]
impl File {
    #[qjs(get, enumerable)]
    fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// Name and size.
    fn stat<'js>(&self, ctx: Ctx<'js>) -> Result<Promise<'js>> {
        settled(&ctx, |ctx| {
            let info = Object::new(ctx.clone())?;
            info.set("name", self.path.file_name().unwrap_or_default().to_string_lossy().into_owned())?;
            info.set("size", self.content.len())?;
            Ok(info.into_value())
        })
    }

    /// Fills an array of bytes as far as the file has some: a promise of how many, or of null at its end.
    fn read<'js>(&self, ctx: Ctx<'js>, into: Arg<'js>) -> Result<Promise<'js>> {
        settled(&ctx, |ctx| {
            let wrong =
                |why: &str| thrown_named(ctx, "TypeError", &format!("read() failed; reason: into argument {why}"));
            if is_nothing(&into.0) {
                return Err(wrong("cannot be null or undefined"));
            }
            let Ok(into) = TypedArray::<u8>::from_value(into.0) else { return Err(wrong("must be a Uint8Array")) };
            let rest = &self.content[self.place.get()..];
            if rest.is_empty() {
                return Ok(Value::new_null(ctx.clone()));
            }
            let part = &rest[..rest.len().min(into.len())];
            let bytes = TypedArray::<u8>::new_copy(ctx.clone(), part)?;
            into.get::<_, rquickjs::Function<'js>>("set")?
                .call::<_, ()>((rquickjs::function::This(into.clone()), bytes))?;
            self.place.set(self.place.get() + part.len());
            part.len().into_js(ctx)
        })
    }

    /// Moves to another place: a promise of it, in bytes from the beginning.
    fn seek<'js>(&self, ctx: Ctx<'js>, offset: Arg<'js>, whence: Arg<'js>) -> Result<Promise<'js>> {
        settled(&ctx, |ctx| {
            let place = self.sought(ctx, &offset.0, &whence.0)?;
            self.place.set(place);
            place.into_js(ctx)
        })
    }
}
