//! The bodies of requests: texts, bytes, forms, and forms with files.

use super::arguments::{RequestError, refused};
use crate::value::{self, Arg, binary, bytes, instance, is_nothing, text};
use plimsoll_web::form;
use plimsoll_web::multipart::{self, Boundary, Part};
use rquickjs::class::Trace;
use rquickjs::function::Opt;
use rquickjs::{Class, Ctx, JsLifetime, Object, Result, Value};
use std::time::{SystemTime, UNIX_EPOCH};

/// A body, with the content type that follows from its argument.
#[derive(Debug, PartialEq)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) content_type: Option<String>,
}

/// A field of a form.
pub(crate) enum Field {
    Text(String),
    File(File),
}

/// A file in a form: the result of `http.file(…)`. Its content, name and type are properties that a script may change.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(crate) struct FileData {}

/// A file in a form, as it is sent.
pub(crate) struct File {
    data: Vec<u8>,
    filename: String,
    content_type: String,
}

/// `http.file(data, name, type)`
pub(crate) fn file<'js>(
    ctx: Ctx<'js>,
    Arg(data): Arg<'js>,
    name: Opt<Value<'js>>,
    content_type: Opt<Value<'js>>,
) -> Result<Class<'js, FileData>> {
    let unnamed = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string();
    // Other values are refused here, where the script makes them, and not when they are sent.
    let data = if data.is_string() { data } else { value::buffer(&ctx, bytes(&ctx, &data)?)? };
    let file = Class::instance(ctx.clone(), FileData {})?;
    file.set("data", data)?;
    file.set("filename", value::optional_text(&ctx, name.0)?.unwrap_or_else(unnamed))?;
    let content_type = value::optional_text(&ctx, content_type.0)?;
    file.set("content_type", content_type.unwrap_or_else(|| "application/octet-stream".to_owned()))?;
    Ok(file)
}

impl File {
    fn read<'js>(ctx: &Ctx<'js>, file: &Class<'js, FileData>) -> Result<File> {
        Ok(File {
            data: bytes(ctx, &file.get("data")?)?,
            filename: text(ctx, file.get("filename")?)?,
            content_type: text(ctx, file.get("content_type")?)?,
        })
    }
}

/// Reads the body of a request.
pub(crate) fn read<'js>(ctx: &Ctx<'js>, body: Value<'js>) -> std::result::Result<Content, RequestError> {
    if let Some(string) = body.as_string() {
        return Ok(Content { bytes: string.to_string()?.into_bytes(), content_type: None });
    }
    if let Some(bytes) = binary(&body)? {
        return Ok(Content { bytes, content_type: None });
    }
    match body.as_object() {
        Some(object) if !body.is_array() && !body.is_function() && instance::<FileData>(&body).is_none() => {
            Ok(of_fields(fields(ctx, object)?)?)
        }
        _ => Err(refused(format!("unknown request body type {}", body.type_name()))),
    }
}

/// The fields of a form; each element of an array is one.
fn fields<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> Result<Vec<(String, Field)>> {
    let mut fields = Vec::new();
    for property in object.props::<String, Value<'js>>() {
        let (name, value) = property?;
        match value.as_array() {
            Some(array) => {
                for element in array.iter::<Value<'js>>() {
                    fields.push((name.clone(), field(ctx, element?)?));
                }
            }
            None => fields.push((name, field(ctx, value)?)),
        }
    }
    Ok(fields)
}

fn field<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Field> {
    if let Some(file) = instance::<FileData>(&value) {
        return Ok(Field::File(File::read(ctx, &file)?));
    }
    // As Go, the language of k6, formats a missing value.
    Ok(Field::Text(if is_nothing(&value) { "<nil>".to_owned() } else { text(ctx, value)? }))
}

/// The body of a form: multipart if it has a file, else a query sorted by name.
fn of_fields(fields: Vec<(String, Field)>) -> Result<Content> {
    if fields.iter().any(|(_, field)| matches!(field, Field::File(_))) {
        return Ok(of_parts(&fields));
    }
    let texts = fields.into_iter().filter_map(|(name, field)| match field {
        Field::Text(text) => Some((name, text)),
        Field::File(_) => None,
    });
    let content_type = Some(form::CONTENT_TYPE.to_owned());
    Ok(Content { bytes: form::sorted_query(texts.collect()).into_bytes(), content_type })
}

fn of_parts(fields: &[(String, Field)]) -> Content {
    let parts = fields.iter().map(|(name, field)| match field {
        Field::Text(text) => Part { name, file: None, content_type: None, content: text.as_bytes() },
        Field::File(File { data, filename, content_type }) => {
            Part { name, file: Some(filename), content_type: Some(content_type), content: data }
        }
    });
    let parts: Vec<Part<'_>> = parts.collect();
    let mut seed = [0; 8];
    // Any seed is fine: the boundary occurs in no part.
    let _ = getrandom::fill(&mut seed);
    let boundary = Boundary::between(&parts, u64::from_le_bytes(seed));
    let mut bytes = Vec::new();
    multipart::encode(&parts, boundary, &mut bytes);
    Content { bytes, content_type: Some(boundary.content_type()) }
}
