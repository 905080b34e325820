//! `Response`: the result of a request. Expensive properties are made on demand and cached.
#![expect(elided_lifetimes_in_paths, reason = "the macro for classes writes such")]

use super::page;
use crate::fetch::FetchResult;
use crate::fetch::fault::Fault;
use crate::fetch::headers::canonical;
use crate::fetch::request::ResponseType;
use crate::gjson::{self, GjsonFault};
use crate::modules::html::Selection;
use crate::operations::{HttpReply, HttpTimings};
use crate::value::{buffer, non_null, optional_text, thrown};
use plimsoll_model::units::Nanos;
use plimsoll_web::SetCookie;
use plimsoll_web::url::Parts;
use rquickjs::class::{Trace, Tracer};
use rquickjs::function::{Opt, This};
use rquickjs::{Array, Class, Ctx, IntoJs, JsLifetime, Object, Result, String as Text, Value};
use serde::de::IgnoredAny;

/// A response. It is moved more than once, so rarely used parts are boxed.
#[derive(JsLifetime)]
#[rquickjs::class]
pub(crate) struct Response<'js> {
    source: Source,
    cached: Option<Box<Cached<'js>>>,
}

/// Properties that the script has read.
#[derive(Default, Trace, JsLifetime)]
struct Cached<'js> {
    body: Option<Value<'js>>,
    headers: Option<Value<'js>>,
    cookies: Option<Value<'js>>,
    timings: Option<Value<'js>>,
    request: Option<Value<'js>>,
    json: Option<Value<'js>>,
}

impl<'js> Trace<'js> for Response<'js> {
    fn trace<'a>(&self, tracer: Tracer<'a, 'js>) {
        self.cached.iter().for_each(|cached| cached.trace(tracer));
    }
}

/// The source of a response.
enum Source {
    FetchResult(FetchResult),
    /// The request could not be made.
    Refused(Box<Fault>),
}

/// The properties of a response, in the order of its JSON.
const PARTS: [&str; 16] = [
    "remote_ip",
    "remote_port",
    "url",
    "status",
    "status_text",
    "proto",
    "headers",
    "cookies",
    "body",
    "timings",
    "tls_version",
    "tls_cipher_suite",
    "ocsp",
    "error",
    "error_code",
    "request",
];

/// k6's `expires` of a cookie without one, for scripts that compare it.
const NO_EXPIRY: f64 = -6_795_364_578_871.0;

impl Source {
    fn answer(&self) -> Option<&FetchResult> {
        match self {
            Source::FetchResult(answer) => Some(answer),
            Source::Refused(_) => None,
        }
    }

    fn reply(&self) -> Option<&HttpReply> {
        self.answer().and_then(FetchResult::reply)
    }

    fn fault(&self) -> Option<&Fault> {
        match self {
            Source::FetchResult(answer) => answer.fault.as_deref(),
            Source::Refused(fault) => Some(fault),
        }
    }

    /// The body, unless the script discards it.
    fn body(&self) -> Option<&[u8]> {
        let wanted = self.answer().filter(|answer| answer.request.response_type != ResponseType::None);
        wanted.and_then(FetchResult::reply).map(|reply| &*reply.body)
    }

    fn needed_body(&self, ctx: &Ctx<'_>, what: &str) -> Result<&[u8]> {
        self.body().ok_or_else(|| {
            let why = "this likely was because of a request error getting the response";
            thrown(ctx, format!("the body is null so we can't transform it to {what} - {why}"))
        })
    }

    fn whole_json<'js>(&self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let body = self.needed_body(ctx, "JSON")?;
        if let Err(error) = serde_json::from_slice::<IgnoredAny>(body) {
            let (line, column) = (error.line(), error.column());
            let what = format!("cannot parse json due to an error at line {line}, character {column} , error: {error}");
            return Err(thrown(ctx, what));
        }
        ctx.json_parse(body)
    }
}

impl<'js> Response<'js> {
    pub(crate) fn of(answer: FetchResult) -> Response<'js> {
        Response::new(Source::FetchResult(answer))
    }

    pub(crate) fn refused(fault: Fault) -> Response<'js> {
        Response::new(Source::Refused(Box::new(fault)))
    }

    fn new(source: Source) -> Response<'js> {
        Response { source, cached: None }
    }

    fn cached(&mut self) -> (&Source, &mut Cached<'js>) {
        (&self.source, self.cached.get_or_insert_default())
    }

    /// The body as a page, or a selection in it.
    pub(crate) fn page(&self, ctx: &Ctx<'js>, selector: Option<&str>) -> Result<Selection> {
        let body = self.source.needed_body(ctx, "HTML")?;
        let page = Selection::of_page(ctx, &String::from_utf8_lossy(body), self.url())?;
        match selector.map(crate::modules::html::Selector::parse) {
            None => Ok(page),
            Some(Ok(selector)) => Ok(page.below(&selector)),
            Some(Err(why)) => Err(thrown(ctx, why)),
        }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> &str {
        self.source.answer().map_or("", FetchResult::url)
    }

    fn json_at(&self, ctx: &Ctx<'js>, path: &str) -> Result<Value<'js>> {
        let body = String::from_utf8_lossy(self.source.needed_body(ctx, "JSON")?);
        match gjson::get(&body, path) {
            Ok(Some(json)) => ctx.json_parse(&*json),
            Ok(None) | Err(GjsonFault::NoJson(_)) => Ok(Value::new_undefined(ctx.clone())),
            Err(fault) => Err(thrown(ctx, fault)),
        }
    }
}

/// The cached value, or the one that `make` makes.
fn once<'js>(kept: &mut Option<Value<'js>>, make: impl FnOnce() -> Result<Value<'js>>) -> Result<Value<'js>> {
    match kept {
        Some(value) => Ok(value.clone()),
        None => Ok(kept.insert(make()?).clone()),
    }
}

#[rquickjs::methods(rename_all = "camelCase")]
impl<'js> Response<'js> {
    #[qjs(get, enumerable)]
    fn status(&self) -> u16 {
        self.source.reply().map_or(0, HttpReply::status)
    }

    #[qjs(get, enumerable, rename = "status_text")]
    fn status_text(&self) -> String {
        self.source.reply().map(|reply| format!("{} {}", reply.status(), reply.reason())).unwrap_or_default()
    }

    #[qjs(get, enumerable, rename = "url")]
    fn address(&self) -> String {
        match self.source.fault() {
            None => Parts::split(self.url()).shown(),
            Some(_) => self.url().to_owned(),
        }
    }

    #[qjs(get, enumerable)]
    fn proto(&self) -> &'static str {
        self.source.reply().map_or("", |_| "HTTP/1.1")
    }

    #[qjs(get, enumerable)]
    fn error(&self) -> String {
        self.source.fault().map(|fault| fault.message.clone()).unwrap_or_default()
    }

    #[qjs(get, enumerable, rename = "error_code")]
    fn error_code(&self) -> u16 {
        match (self.source.fault(), self.source.reply()) {
            (Some(fault), _) => fault.code,
            (None, Some(reply)) if reply.status() >= 400 => 1000 + reply.status(),
            _ => 0,
        }
    }

    #[qjs(get, enumerable, rename = "remote_ip")]
    fn remote_ip(&self) -> String {
        let remote = self.source.answer().and_then(|answer| answer.response.remote);
        remote.map(|remote| remote.ip().to_string()).unwrap_or_default()
    }

    #[qjs(get, enumerable, rename = "remote_port")]
    fn remote_port(&self) -> u16 {
        self.source.answer().and_then(|answer| answer.response.remote).map_or(0, |remote| remote.port())
    }

    #[qjs(get, enumerable, rename = "tls_version")]
    fn tls_version(&self) -> &'static str {
        self.source.answer().and_then(|answer| answer.response.tls).map_or("", |tls| tls.version)
    }

    #[qjs(get, enumerable, rename = "tls_cipher_suite")]
    fn tls_cipher_suite(&self) -> &'static str {
        self.source.answer().and_then(|answer| answer.response.tls).map_or("", |tls| tls.cipher_suite)
    }

    /// Says nothing of the certificate, which is not checked by OCSP.
    #[qjs(get, enumerable)]
    fn ocsp(&self, ctx: Ctx<'js>) -> Result<Object<'js>> {
        let ocsp = Object::new(ctx)?;
        ["produced_at", "this_update", "next_update", "revoked_at"]
            .into_iter()
            .try_for_each(|name| ocsp.set(name, 0))?;
        ocsp.set("revocation_reason", "")?;
        let is_encrypted = self.source.reply().is_some() && !self.tls_version().is_empty();
        ocsp.set("status", if is_encrypted { "unknown" } else { "" })?;
        Ok(ocsp)
    }

    #[qjs(get, enumerable)]
    fn body(&mut self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        let (source, cached) = self.cached();
        once(&mut cached.body, || match (source.body(), source.answer()) {
            (Some(body), Some(answer)) if answer.request.response_type == ResponseType::Binary => {
                buffer(&ctx, body.to_vec())
            }
            (Some(body), _) => Ok(Text::from_str(ctx, &String::from_utf8_lossy(body))?.into_value()),
            (None, _) => Ok(Value::new_null(ctx)),
        })
    }

    #[qjs(get, enumerable)]
    fn headers(&mut self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        let (source, cached) = self.cached();
        once(&mut cached.headers, || headers(&ctx, source))
    }

    #[qjs(get, enumerable)]
    fn cookies(&mut self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        let (source, cached) = self.cached();
        once(&mut cached.cookies, || cookies(&ctx, source))
    }

    #[qjs(get, enumerable)]
    fn timings(&mut self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        let (source, cached) = self.cached();
        once(&mut cached.timings, || {
            timings(&ctx, source.answer().map(|answer| answer.response.timings).unwrap_or_default())
        })
    }

    #[qjs(get, enumerable)]
    fn request(&mut self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        let (source, cached) = self.cached();
        once(&mut cached.request, || match source.answer() {
            Some(answer) => request(&ctx, answer),
            None => Ok(Value::new_null(ctx)),
        })
    }

    fn json(&mut self, ctx: Ctx<'js>, path: Opt<Value<'js>>) -> Result<Value<'js>> {
        match optional_text(&ctx, path.0)? {
            Some(path) => self.json_at(&ctx, &path),
            None => {
                let (source, cached) = self.cached();
                once(&mut cached.json, || source.whole_json(&ctx))
            }
        }
    }

    fn html(&self, ctx: Ctx<'js>, selector: Opt<Value<'js>>) -> Result<Selection> {
        let selector = optional_text(&ctx, selector.0)?;
        self.page(&ctx, selector.as_deref())
    }

    fn submit_form(
        this: This<Class<'js, Response<'js>>>,
        ctx: Ctx<'js>,
        arguments: Opt<Value<'js>>,
    ) -> Result<Class<'js, Response<'js>>> {
        let form = page::Form::read(&ctx, &this.0.borrow(), non_null(arguments.0).and_then(Value::into_object))?;
        form.submit(&ctx)
    }

    fn click_link(
        this: This<Class<'js, Response<'js>>>,
        ctx: Ctx<'js>,
        arguments: Opt<Value<'js>>,
    ) -> Result<Class<'js, Response<'js>>> {
        let link = page::Link::read(&ctx, &this.0.borrow(), non_null(arguments.0).and_then(Value::into_object))?;
        link.click(&ctx)
    }

    /// All properties: getters of a class are not serialised by themselves.
    #[qjs(rename = "toJSON")]
    fn to_json(this: This<Class<'js, Response<'js>>>, ctx: Ctx<'js>) -> Result<Object<'js>> {
        let object = Object::new(ctx)?;
        for part in PARTS {
            let value: Value<'js> = this.0.get(part)?;
            if !value.is_undefined() {
                object.set(part, value)?;
            }
        }
        Ok(object)
    }
}

/// Headers by their canonical names. Several of one name are joined.
fn headers<'js>(ctx: &Ctx<'js>, source: &Source) -> Result<Value<'js>> {
    let headers = Object::new(ctx.clone())?;
    for (name, value) in source.reply().into_iter().flat_map(HttpReply::headers) {
        let name = canonical(name);
        let value = match headers.get::<_, Option<String>>(name.as_str())? {
            Some(before) => format!("{before}, {value}"),
            None => value.to_owned(),
        };
        headers.set(name, value)?;
    }
    Ok(headers.into_value())
}

/// The cookies that the reply sets, by name.
fn cookies<'js>(ctx: &Ctx<'js>, source: &Source) -> Result<Value<'js>> {
    let cookies = Object::new(ctx.clone())?;
    for header in source.reply().into_iter().flat_map(|reply| reply.values("Set-Cookie")) {
        if let Some(cookie) = SetCookie::parse(header) {
            push(ctx, &cookies, &cookie.name, cookie_object(ctx, &cookie)?)?;
        }
    }
    Ok(cookies.into_value())
}

fn cookie_object<'js>(ctx: &Ctx<'js>, cookie: &SetCookie) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    object.set("name", cookie.name.as_str())?;
    object.set("value", cookie.value.trim_matches('"'))?;
    object.set("domain", cookie.domain.as_deref().unwrap_or_default())?;
    object.set("path", cookie.path.as_deref().unwrap_or_default())?;
    object.set("http_only", cookie.http_only)?;
    object.set("secure", cookie.secure)?;
    object.set("max_age", cookie.max_age.unwrap_or_default() as f64)?;
    object.set("expires", cookie.expires.map_or(NO_EXPIRY, |end| end.0 as f64 * 1000.0))?;
    Ok(object)
}

/// Adds an element to an array property.
fn push<'js>(ctx: &Ctx<'js>, object: &Object<'js>, name: &str, element: Object<'js>) -> Result<()> {
    let array = object.get::<_, Option<Array<'js>>>(name)?.map_or_else(|| Array::new(ctx.clone()), Ok)?;
    array.set(array.len(), element)?;
    object.set(name, array)
}

/// The timings in milliseconds.
fn timings<'js>(ctx: &Ctx<'js>, timings: HttpTimings) -> Result<Value<'js>> {
    let object = Object::new(ctx.clone())?;
    for (name, span) in [
        ("duration", timings.duration()),
        ("blocked", timings.blocked),
        ("looking_up", timings.looking_up),
        ("connecting", timings.connecting),
        ("tls_handshaking", timings.tls_handshaking),
        ("sending", timings.sending),
        ("waiting", timings.waiting),
        ("receiving", timings.receiving),
    ] {
        let Nanos(span) = span;
        object.set(name, span as f64 / 1e6)?;
    }
    Ok(object.into_value())
}

/// The request of the first exchange.
fn request<'js>(ctx: &Ctx<'js>, answer: &FetchResult) -> Result<Value<'js>> {
    let FetchResult { request, cookie, .. } = answer;
    let headers = Object::new(ctx.clone())?;
    let cookie = cookie.as_deref();
    let others = request.headers.iter().filter(|(name, _)| *name != "Cookie");
    let host = request.host.as_deref().map(|host| ("Host", host));
    for (name, value) in others.chain(host).chain(cookie.map(|cookie| ("Cookie", cookie))) {
        headers.set(name, vec![value])?;
    }
    let cookies = Object::new(ctx.clone())?;
    for (name, value) in cookie.iter().flat_map(|cookie| cookie.split("; ")).filter_map(|pair| pair.split_once('=')) {
        let object = Object::new(ctx.clone())?;
        object.set("name", name)?;
        object.set("value", value.trim_matches('"'))?;
        object.set("replace", false)?;
        push(ctx, &cookies, name, object)?;
    }
    let object = Object::new(ctx.clone())?;
    object.set("method", &*request.method)?;
    object.set("url", Parts::split(request.target.written.trim()).shown())?;
    object.set("headers", headers)?;
    object.set("body", String::from_utf8_lossy(&request.body).into_js(ctx)?)?;
    object.set("cookies", cookies)?;
    Ok(object.into_value())
}
