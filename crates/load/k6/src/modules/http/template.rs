//! URLs that are named by their template: ``http.url`https://host/user/${id}` ``.

use crate::value::text;
use rquickjs::class::Trace;
use rquickjs::function::Rest;
use rquickjs::{Array, Class, Ctx, JsLifetime, Result, Value};

/// A URL with its name.
#[derive(Trace, JsLifetime)]
#[rquickjs::class(rename = "HTTPURL")]
pub(crate) struct HttpUrl {
    #[qjs(skip_trace)]
    pub(crate) name: String,
    #[qjs(skip_trace)]
    pub(crate) url: String,
}

#[rquickjs::methods]
impl HttpUrl {
    #[qjs(get)]
    fn name(&self) -> String {
        self.name.clone()
    }

    #[qjs(get)]
    fn url(&self) -> String {
        self.url.clone()
    }

    #[qjs(rename = "toString")]
    fn text(&self) -> String {
        self.url.clone()
    }
}

/// The tag of template literals. Each value is `${}` in the name.
pub(crate) fn url<'js>(ctx: Ctx<'js>, parts: Array<'js>, values: Rest<Value<'js>>) -> Result<Class<'js, HttpUrl>> {
    let (mut name, mut url) = (String::new(), String::new());
    let mut values = values.0.into_iter();
    for part in parts.iter::<String>() {
        let part = part?;
        name.push_str(&part);
        url.push_str(&part);
        if let Some(value) = values.next() {
            name.push_str("${}");
            url.push_str(&text(&ctx, value)?);
        }
    }
    Class::instance(ctx, HttpUrl { name, url })
}
