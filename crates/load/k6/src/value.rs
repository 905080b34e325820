//! Conversion of values between scripts and Rust.

use rquickjs::class::JsClass;
use rquickjs::function::{Constructor, FromParam, ParamRequirement, ParamsAccessor};
use rquickjs::{ArrayBuffer, Class, Coerced, Ctx, Exception, FromJs, Function, Object, Promise, Result, Value};

pub(crate) use plimsoll_javascript::binary;

/// `String(value)`.
pub(crate) fn text<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<String> {
    Ok(Coerced::<String>::from_js(ctx, value)?.0)
}

/// True for `undefined` and `null`.
pub(crate) fn is_nothing(value: &Value<'_>) -> bool {
    value.is_undefined() || value.is_null()
}

/// A value, unless it is `undefined` or `null`.
pub(crate) fn non_null<'js>(value: Option<Value<'js>>) -> Option<Value<'js>> {
    value.filter(|value| !is_nothing(value))
}

/// An argument of a native function. It is `undefined` if it is left out, as for functions that are written in
/// JavaScript; without this the bindings throw.
pub(crate) struct Arg<'js>(pub(crate) Value<'js>);

impl<'js> FromParam<'js> for Arg<'js> {
    fn param_requirement() -> ParamRequirement {
        ParamRequirement::optional()
    }

    fn from_param<'a>(params: &mut ParamsAccessor<'a, 'js>) -> Result<Self> {
        Ok(Arg(if params.is_empty() { Value::new_undefined(params.ctx().clone()) } else { params.arg() }))
    }
}

/// An argument that is a text. Values of other types are converted; it is empty if it is left out, as for functions in
/// Go, which k6 is written in.
pub(crate) struct TextArg(pub(crate) String);

impl<'js> FromParam<'js> for TextArg {
    fn param_requirement() -> ParamRequirement {
        ParamRequirement::optional()
    }

    fn from_param<'a>(params: &mut ParamsAccessor<'a, 'js>) -> Result<Self> {
        if params.is_empty() {
            return Ok(TextArg(String::new()));
        }
        let (value, ctx) = (params.arg(), params.ctx().clone());
        text(&ctx, value).map(TextArg)
    }
}

/// The text of an argument that may be left out.
pub(crate) fn optional_text<'js>(ctx: &Ctx<'js>, value: Option<Value<'js>>) -> Result<Option<String>> {
    non_null(value).map(|value| text(ctx, value)).transpose()
}

/// The value as an object of a class in Rust. For other values the engine sets an exception, which is cleared.
pub(crate) fn instance<'js, C: JsClass<'js>>(value: &Value<'js>) -> Option<Class<'js, C>> {
    let object = value.as_object()?;
    let found = Class::from_object(object);
    if found.is_none() {
        object.ctx().catch();
    }
    found
}

/// The bytes of a text in UTF-8, of a buffer, or of a view.
pub(crate) fn bytes<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Vec<u8>> {
    if let Some(string) = value.as_string() {
        return Ok(string.to_string()?.into_bytes());
    }
    binary(value)?.ok_or_else(|| wrong(ctx, "a string, an ArrayBuffer or a typed array", value))
}

/// An exception about a value of an unexpected type.
pub(crate) fn wrong(ctx: &Ctx<'_>, expected: &str, found: &Value<'_>) -> rquickjs::Error {
    Exception::throw_type(ctx, &format!("expected {expected}, found {}", found.type_name()))
}

/// An exception with a message.
pub(crate) fn thrown(ctx: &Ctx<'_>, message: impl std::fmt::Display) -> rquickjs::Error {
    Exception::throw_message(ctx, &message.to_string())
}

/// An exception with a message, whose `name` scripts tell apart.
pub(crate) fn thrown_named(ctx: &Ctx<'_>, name: &str, message: &str) -> rquickjs::Error {
    let named = || {
        let error = Exception::from_message(ctx.clone(), message)?.into_object();
        error.set("name", name)?;
        Ok(error)
    };
    named().map_or_else(|error| error, |error: Object<'_>| ctx.throw(error.into_value()))
}

/// A buffer of these bytes.
pub(crate) fn buffer<'js>(ctx: &Ctx<'js>, bytes: Vec<u8>) -> Result<Value<'js>> {
    Ok(ArrayBuffer::new(ctx.clone(), bytes)?.into_value())
}

/// `new Name(…)` of a global constructor.
pub(crate) fn construct<'js, A>(ctx: &Ctx<'js>, name: &str, arguments: A) -> Result<Object<'js>>
where
    A: rquickjs::function::IntoArgs<'js>,
{
    ctx.globals().get::<_, Constructor<'js>>(name)?.construct(arguments)
}

/// A promise that is settled at once: with the value of `make`, or its exception.
pub(crate) fn settled<'js>(ctx: &Ctx<'js>, make: impl FnOnce(&Ctx<'js>) -> Result<Value<'js>>) -> Result<Promise<'js>> {
    let (promise, resolve, reject) = ctx.promise()?;
    settle(ctx, &resolve, &reject, make(ctx))?;
    Ok(promise)
}

/// Resolves a promise with a value, or rejects it with an exception.
pub(crate) fn settle<'js>(
    ctx: &Ctx<'js>,
    resolve: &Function<'js>,
    reject: &Function<'js>,
    made: Result<Value<'js>>,
) -> Result<()> {
    match made {
        Ok(value) => resolve.call((value,)),
        Err(rquickjs::Error::Exception) => reject.call((ctx.catch(),)),
        Err(other) => reject.call((Exception::from_message(ctx.clone(), &other.to_string())?.into_object(),)),
    }
}
