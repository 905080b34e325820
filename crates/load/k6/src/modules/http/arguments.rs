//! Reads the arguments of scripts: from `http.post(url, body, params)` to a [`ScriptRequest`].

use super::body::{self, Content};
use super::client::Client;
use super::cookie_jar::jar_of;
use super::statuses::ExpectedStatuses;
use super::template::HttpUrl;
use crate::fetch::fault::Fault;
use crate::fetch::headers::is_token;
use crate::fetch::request::{AuthScheme, RequestCookie, ResponseType, ScriptRequest};
use crate::user::read_tags;
use crate::value::{instance, is_nothing, non_null, text};
use plimsoll_javascript::{HeldBytes, HeldMemory};
use plimsoll_k6_run::duration;
use plimsoll_model::units::Nanos;
use plimsoll_web::{Coding, coding};
use rquickjs::{Coerced, Ctx, FromJs, Object, Value};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;

/// The default timeout of a request.
const TIMEOUT: Nanos = Nanos(60_000_000_000);

/// The default limit on redirects.
const REDIRECTS: u64 = 10;

/// Why a request cannot be made.
pub(crate) enum RequestError {
    /// Reading the arguments threw an exception.
    Thrown(rquickjs::Error),
    /// The script gets a response with this fault.
    Refused(Fault),
}

impl From<rquickjs::Error> for RequestError {
    fn from(error: rquickjs::Error) -> Self {
        RequestError::Thrown(error)
    }
}

/// A refusal without an error code.
pub(crate) fn refused(why: impl Into<String>) -> RequestError {
    RequestError::Refused(Fault { code: 0, ..Fault::other(why) })
}

type Read<T> = std::result::Result<T, RequestError>;

/// The arguments of a request.
pub(crate) struct Arguments<'js> {
    pub(crate) method: Cow<'static, str>,
    pub(crate) url: Value<'js>,
    pub(crate) body: Option<Value<'js>>,
    pub(crate) params: Option<Value<'js>>,
}

impl<'js> Arguments<'js> {
    /// Reads the request.
    pub(crate) fn read(self, ctx: &Ctx<'js>, client: &Client) -> Read<Rc<ScriptRequest>> {
        let content = non_null(self.body).map(|body| body::read(ctx, body)).transpose()?;
        ask(ctx, client, self.method, &self.url, content, self.params)
    }
}

/// Makes a request whose body was read before.
pub(crate) fn ask<'js>(
    ctx: &Ctx<'js>,
    client: &Client,
    method: Cow<'static, str>,
    url: &Value<'js>,
    content: Option<Content>,
    params: Option<Value<'js>>,
) -> Read<Rc<ScriptRequest>> {
    let params = non_null(params).and_then(Value::into_object);
    let is_plain = content.is_none() && params.is_none();
    match is_plain.then(|| again(client, &method, url)).flatten() {
        Some(request) => Ok(request),
        None => ask_anew(ctx, client, method, url, content, params),
    }
}

/// A function of its own, because repeated requests do not need its stack.
#[inline(never)]
fn ask_anew<'js>(
    ctx: &Ctx<'js>,
    client: &Client,
    method: Cow<'static, str>,
    url: &Value<'js>,
    content: Option<Content>,
    params: Option<Object<'js>>,
) -> Read<Rc<ScriptRequest>> {
    let is_plain = content.is_none() && params.is_none();
    let (written, name) = read_url(ctx, url)?;
    let mut request = new_request(client, method, &written)?;
    request.name = name;
    if let Some(content) = content {
        request.body = Rc::new(HeldBytes::new(content.bytes, &client.memory));
        client.memory.look(ctx)?;
        if let Some(content_type) = content.content_type {
            Rc::make_mut(&mut request.headers).set("Content-Type", content_type);
        }
    }
    if let Some(params) = params {
        request.read_params(ctx, client, &params)?;
    }
    if let Some(why) = request.headers.fault() {
        return Err(RequestError::Refused(Fault::other(why)));
    }
    let is_plain = is_plain && request.name.is_none();
    let request = Rc::new(request);
    if is_plain {
        client.requests().keep_url_only(&request);
    }
    Ok(request)
}

/// The cached request, if the same one with nothing but its URL was made before.
fn again(client: &Client, method: &str, url: &Value<'_>) -> Option<Rc<ScriptRequest>> {
    let written = url.as_string()?.clone().to_cstring().ok()?;
    client.again(method, written.as_ref())
}

/// A request of a URL with the defaults of the options.
fn new_request(client: &Client, method: Cow<'static, str>, written: &str) -> Read<ScriptRequest> {
    let requests = client.requests();
    let target = requests.target(written).map_err(RequestError::Refused)?;
    if !is_token(&method) {
        return Err(refused(format!("expected a method such as `GET`, found {method:?}")));
    }
    let options = client.user.options();
    let discards = options.discard_response_bodies == Some(true);
    Ok(ScriptRequest {
        method,
        target,
        name: None,
        headers: Rc::clone(&requests.headers),
        host: None,
        body: Rc::clone(&requests.no_body),
        cookies: Vec::new(),
        jar: None,
        login: AuthScheme::Basic,
        timeout: TIMEOUT,
        redirects: options.max_redirects.unwrap_or(REDIRECTS),
        response_type: if discards { ResponseType::None } else { ResponseType::Text },
        expected: client.expected.borrow().clone(),
        tags: Vec::new(),
        throws: options.throw == Some(true),
        first_exchange: OnceCell::new(),
    })
}

/// The text of a URL, and its name if a template made it.
fn read_url<'js>(ctx: &Ctx<'js>, url: &Value<'js>) -> Read<(String, Option<String>)> {
    if let Some(string) = url.as_string() {
        return Ok((string.to_string()?, None));
    }
    if let Some(template) = instance::<HttpUrl>(url) {
        let template = template.borrow();
        let name = (template.name != template.url).then(|| template.name.clone());
        return Ok((template.url.clone(), name));
    }
    let found = text(ctx, url.clone())?;
    Err(RequestError::Refused(Fault {
        code: 1020,
        ..Fault::other(format!("invalid URL: expected a text, found `{found}`"))
    }))
}

impl ScriptRequest {
    fn read_params<'js>(&mut self, ctx: &Ctx<'js>, client: &Client, params: &Object<'js>) -> Read<()> {
        for param in params.props::<String, Value<'js>>() {
            let (name, value) = param?;
            self.read_param(ctx, &name, value)?;
        }
        // Last, because it reads the headers.
        match non_null(Some(params.get("compression")?)) {
            Some(codings) => self.compress(&text(ctx, codings)?, &client.memory),
            None => Ok(()),
        }
    }

    fn read_param<'js>(&mut self, ctx: &Ctx<'js>, name: &str, value: Value<'js>) -> Read<()> {
        let object = || non_null(Some(value.clone())).and_then(Value::into_object);
        match name {
            "headers" => self.read_headers(ctx, object())?,
            "cookies" => self.read_cookies(ctx, object())?,
            "tags" => self.read_tags(ctx, value)?,
            "jar" => self.jar = jar_of(&value),
            "auth" => self.login = read_login(&text(ctx, value)?)?,
            "timeout" => self.timeout = read_timeout(ctx, &value)?,
            "redirects" => self.redirects = Coerced::<f64>::from_js(ctx, value)?.0 as u64,
            "responseType" => self.response_type = read_response_type(&text(ctx, value)?)?,
            "responseCallback" => self.read_expected(&value)?,
            "throw" => self.throws = Coerced::<bool>::from_js(ctx, value)?.0,
            _ => {}
        }
        Ok(())
    }

    fn read_headers<'js>(&mut self, ctx: &Ctx<'js>, headers: Option<Object<'js>>) -> Read<()> {
        for header in headers.iter().flat_map(Object::props::<String, Value<'js>>) {
            let (name, value) = header?;
            let value = text(ctx, value)?;
            match name.to_ascii_lowercase().as_str() {
                "host" => self.host = Some(value),
                // They follow from the body.
                "content-length" | "transfer-encoding" | "trailer" => {}
                _ => Rc::make_mut(&mut self.headers).set(&name, value),
            }
        }
        if let Some(host) = self.host.as_deref().filter(|host| host.chars().any(char::is_control)) {
            return Err(RequestError::Refused(Fault::other(format!(
                "expected the header `Host` in one line, found {host:?}"
            ))));
        }
        Ok(())
    }

    fn read_cookies<'js>(&mut self, ctx: &Ctx<'js>, cookies: Option<Object<'js>>) -> Read<()> {
        for cookie in cookies.iter().flat_map(Object::props::<String, Value<'js>>) {
            let (name, value) = cookie?;
            let Some(value) = non_null(Some(value)) else { continue };
            let (value, replaces) = match value.as_object() {
                Some(parts) => (
                    non_null(Some(parts.get("value")?)).map(|value| text(ctx, value)).transpose()?.unwrap_or_default(),
                    parts.get::<_, Coerced<bool>>("replace")?.0,
                ),
                None => (text(ctx, value)?, false),
            };
            self.cookies.push(RequestCookie { name, value, replaces });
        }
        Ok(())
    }

    fn read_tags<'js>(&mut self, ctx: &Ctx<'js>, tags: Value<'js>) -> Read<()> {
        self.tags = match read_tags(ctx, Some(tags)) {
            Ok(tags) => tags,
            Err(_) => return Err(refused(format!("invalid HTTP request metric tags: {}", text(ctx, ctx.catch())?))),
        };
        if let Some(at) = self.tags.iter().position(|(name, _)| name == "name") {
            self.name = Some(self.tags.remove(at).1);
        }
        Ok(())
    }

    fn read_expected(&mut self, value: &Value<'_>) -> Read<()> {
        self.expected = match instance::<ExpectedStatuses>(value) {
            Some(statuses) => Some(Rc::clone(&statuses.borrow().statuses)),
            None if is_nothing(value) => None,
            None => return Err(refused("expected http.expectedStatuses(…) or null as responseCallback")),
        };
        Ok(())
    }

    /// Applies codings to the body, one after the other.
    fn compress(&mut self, names: &str, memory: &Rc<HeldMemory>) -> Read<()> {
        let names: Vec<&str> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        for name in &names {
            let coded = Coding::named(name).and_then(|coding| coding::encode(&self.body, coding));
            let Some(coded) = coded else {
                return Err(refused(format!(
                    "the compression `{name}` is not supported here: there are `gzip` and `deflate`"
                )));
            };
            if !self.body.is_empty() {
                self.body = Rc::new(HeldBytes::new(coded, memory));
            }
        }
        if !names.is_empty() && !self.body.is_empty() && self.headers.get("Content-Encoding").is_none() {
            Rc::make_mut(&mut self.headers).set("Content-Encoding", names.join(", "));
        }
        Ok(())
    }
}

fn read_login(name: &str) -> Read<AuthScheme> {
    match name {
        "digest" => Ok(AuthScheme::Digest),
        "ntlm" => Err(refused("the authentication `ntlm` is not supported here: there are `basic` and `digest`")),
        _ => Ok(AuthScheme::Basic),
    }
}

fn read_timeout<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Read<Nanos> {
    let span = match value.as_number() {
        Some(milliseconds) => duration::from_milliseconds(milliseconds),
        None => {
            let text = text(ctx, value.clone())?;
            duration::parse(&text).or_else(|| duration::from_milliseconds(text.parse().ok()?))
        }
    };
    let found = || refused("invalid timeout value: expected milliseconds or a duration such as `10s`".to_owned());
    span.map(Nanos::from).ok_or_else(found)
}

fn read_response_type(name: &str) -> Read<ResponseType> {
    match name {
        "text" => Ok(ResponseType::Text),
        "binary" => Ok(ResponseType::Binary),
        "none" => Ok(ResponseType::None),
        _ => Err(refused(format!("expected the responseType `text`, `binary` or `none`, found `{name}`"))),
    }
}
