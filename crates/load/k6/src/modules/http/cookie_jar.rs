//! `CookieJar`: cookies as scripts see and set them.

use super::client::Client;
use crate::fetch::request::unix_time;
use crate::user::User;
use crate::value::{TextArg, instance, non_null, text, thrown};
use plimsoll_web::{Jar, Place, SetCookie, Url};
use rquickjs::class::Trace;
use rquickjs::function::Opt;
use rquickjs::{Array, Class, Coerced, Ctx, FromJs, JsLifetime, Object, Result, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// The jar of a user, or one that the script made.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(crate) struct CookieJar {
    #[qjs(skip_trace)]
    pub(crate) jar: Rc<RefCell<Jar>>,
}

#[rquickjs::methods(rename_all = "camelCase")]
impl CookieJar {
    #[qjs(constructor)]
    fn new() -> Self {
        CookieJar { jar: Rc::default() }
    }

    /// The values of the cookies for a URL, by name.
    #[qjs(rename = "cookiesForURL")]
    fn cookies_for_url<'js>(&self, ctx: Ctx<'js>, url: TextArg) -> Result<Object<'js>> {
        let found = Object::new(ctx.clone())?;
        let Some(url) = parsed(&ctx, &url.0)? else { return Ok(found) };
        let jar = self.jar.borrow();
        for (name, value) in jar.cookies(url.place(), unix_time()) {
            let values = found.get::<_, Option<Array<'js>>>(name)?.map_or_else(|| Array::new(ctx.clone()), Ok)?;
            values.set(values.len(), value.trim_matches('"'))?;
            found.set(name, values)?;
        }
        Ok(found)
    }

    fn set<'js>(
        &self,
        ctx: Ctx<'js>,
        url: TextArg,
        name: TextArg,
        value: Opt<Value<'js>>,
        options: Opt<Value<'js>>,
    ) -> Result<bool> {
        let url = parsed(&ctx, &url.0)?;
        // As in k6, what is missing is an empty text.
        let value = value.0.map_or_else(|| Ok(String::new()), |value| text(&ctx, value))?;
        let mut cookie = SetCookie { name: name.0, value, ..SetCookie::default() };
        if let Some(options) = non_null(options.0).and_then(Value::into_object) {
            read_options(&ctx, &mut cookie, &options)?;
        }
        if let Some(url) = url {
            // A script may set secure cookies for a plain URL too.
            let from = Place { secure: true, ..url.place() };
            self.jar.borrow_mut().set(&cookie, from, unix_time());
        }
        Ok(true)
    }

    fn clear(&self, ctx: Ctx<'_>, url: TextArg) -> Result<()> {
        if let Some(url) = parsed(&ctx, &url.0)? {
            self.jar.borrow_mut().clear(url.place(), unix_time());
        }
        Ok(())
    }

    fn delete(&self, ctx: Ctx<'_>, url: TextArg, name: TextArg) -> Result<()> {
        if let Some(url) = parsed(&ctx, &url.0)? {
            self.jar.borrow_mut().remove(&name.0, url.place(), unix_time());
        }
        Ok(())
    }
}

/// `http.cookieJar()`: that of the user.
pub(crate) fn cookie_jar(ctx: Ctx<'_>) -> Result<Class<'_, CookieJar>> {
    User::running(&ctx, "http.cookieJar()")?;
    let jar = Rc::clone(&Client::of(&ctx)?.user.jar);
    Class::instance(ctx, CookieJar { jar })
}

/// The jar of a param; None for other values.
pub(crate) fn jar_of(value: &Value<'_>) -> Option<Rc<RefCell<Jar>>> {
    let jar = instance::<CookieJar>(value)?;
    Some(Rc::clone(&jar.borrow().jar))
}

/// The URL that a jar is asked for. As in k6, it knows no cookies of a text without a scheme, such as `shop.example`.
fn parsed(ctx: &Ctx<'_>, url: &str) -> Result<Option<Url>> {
    if !url.contains("://") {
        return Ok(None);
    }
    Url::parse(url).map(Some).map_err(|fault| thrown(ctx, fault))
}

fn read_options<'js>(ctx: &Ctx<'js>, cookie: &mut SetCookie, options: &Object<'js>) -> Result<()> {
    for option in options.props::<String, Value<'js>>() {
        let (name, value) = option?;
        match name.to_ascii_lowercase().as_str() {
            "path" => cookie.path = Some(text(ctx, value)?).filter(|path| path.starts_with('/')),
            "domain" => {
                let domain = text(ctx, value)?.to_ascii_lowercase();
                cookie.domain = Some(domain.trim_start_matches('.').to_owned()).filter(|domain| !domain.is_empty());
            }
            "expires" => cookie.expires = read_date(ctx, &text(ctx, value)?)?,
            // 0 is no age.
            "max_age" => cookie.max_age = Some(Coerced::<f64>::from_js(ctx, value)?.0 as i64).filter(|age| *age != 0),
            "secure" => cookie.secure = Coerced::<bool>::from_js(ctx, value)?.0,
            "http_only" => cookie.http_only = Coerced::<bool>::from_js(ctx, value)?.0,
            _ => {}
        }
    }
    Ok(())
}

fn read_date(ctx: &Ctx<'_>, date: &str) -> Result<Option<plimsoll_web::UnixSeconds>> {
    if date.is_empty() {
        return Ok(None);
    }
    let read = SetCookie::parse(&format!("name=value; Expires={date}")).and_then(|cookie| cookie.expires);
    let wrong = || thrown(ctx, format!("unable to parse \"expires\" date string \"{date}\""));
    read.map(Some).ok_or_else(wrong)
}
