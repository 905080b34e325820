//! Expected statuses: `http.expectedStatuses`, `http.setResponseCallback`.

use super::client::Client;
use crate::operations::Statuses;
use crate::value::{Arg, instance, is_nothing};
use rquickjs::class::Trace;
use rquickjs::function::Rest;
use rquickjs::{Class, Ctx, Exception, JsLifetime, Result, Value};
use std::ops::RangeInclusive;
use std::rc::Rc;

/// The result of `http.expectedStatuses(…)`.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(crate) struct ExpectedStatuses {
    #[qjs(skip_trace)]
    pub(crate) statuses: Rc<Statuses>,
}

/// `http.expectedStatuses(200, { min: 300, max: 399 })`
pub(crate) fn expected_statuses<'js>(
    ctx: Ctx<'js>,
    arguments: Rest<Value<'js>>,
) -> Result<Class<'js, ExpectedStatuses>> {
    if arguments.0.is_empty() {
        return Err(Exception::throw_message(&ctx, "expectedStatuses: expected statuses, found no arguments"));
    }
    let ranges: Vec<_> =
        arguments.0.iter().enumerate().map(|(at, value)| range(&ctx, at, value)).collect::<Result<_>>()?;
    Class::instance(ctx, ExpectedStatuses { statuses: Rc::new(Statuses(ranges)) })
}

fn range<'js>(ctx: &Ctx<'js>, at: usize, value: &Value<'js>) -> Result<RangeInclusive<u16>> {
    let status = |value: &Value<'_>| {
        let number = value.as_number().filter(|number| number.fract() == 0.0 && (0.0..=65_535.0).contains(number));
        number.map(|number| number as u16)
    };
    let range = match value.as_object() {
        Some(object) => status(&object.get("min")?).zip(status(&object.get("max")?)).map(|(min, max)| min..=max),
        None => status(value).map(|status| status..=status),
    };
    range.ok_or_else(|| {
        let number = at + 1;
        let what = format!(
            "argument number {number} to expectedStatuses was neither an integer nor an object like {{min:100, max:329}}"
        );
        Exception::throw_message(ctx, &what)
    })
}

/// `http.setResponseCallback(…)`; `null` for no expectation.
pub(crate) fn set_response_callback<'js>(ctx: Ctx<'js>, Arg(callback): Arg<'js>) -> Result<()> {
    let expected = match instance::<ExpectedStatuses>(&callback) {
        Some(statuses) => Some(Rc::clone(&statuses.borrow().statuses)),
        None if is_nothing(&callback) => None,
        None => {
            let what = "setResponseCallback: expected http.expectedStatuses(…) or null";
            return Err(Exception::throw_message(&ctx, what));
        }
    };
    Client::of(&ctx)?.expected.replace(expected);
    Ok(())
}
