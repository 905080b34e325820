//! The module `k6/http`.
//!
//! `client` sends requests, one exchange at a time, as `fetch` has them; `arguments` and `body` read the arguments of scripts,
//! `response` is their result.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

mod arguments;
mod body;
mod client;
mod cookie_jar;
mod debug;
mod page;
mod response;
mod samples;
mod statuses;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use cookie_jar::jar_of;

use crate::fetch::request::ScriptRequest;
use crate::native::{Native, joined, names_of};
use crate::user::User;
use crate::value::{Arg, instance, non_null, text, thrown};
use arguments::Arguments;
use client::{Client, ResponseObject};
use cookie_jar::CookieJar;
use plimsoll_javascript::NativeModule;
use rquickjs::function::Opt;
use rquickjs::{Array, Class, Ctx, IntoJs, Object, Promise, Result, Value};
use std::rc::Rc;

/// See the module.
pub(crate) struct Http;

/// Constants of the module, as they are in k6.
const CONSTANTS: [(&str, &str); 18] = [
    ("TLS_1_0", "tls1.0"),
    ("TLS_1_1", "tls1.1"),
    ("TLS_1_2", "tls1.2"),
    ("TLS_1_3", "tls1.3"),
    ("OCSP_STATUS_GOOD", "good"),
    ("OCSP_STATUS_REVOKED", "revoked"),
    ("OCSP_STATUS_SERVER_FAILED", "server_failed"),
    ("OCSP_STATUS_UNKNOWN", "unknown"),
    ("OCSP_REASON_UNSPECIFIED", "unspecified"),
    ("OCSP_REASON_KEY_COMPROMISE", "key_compromise"),
    ("OCSP_REASON_CA_COMPROMISE", "ca_compromise"),
    ("OCSP_REASON_AFFILIATION_CHANGED", "affiliation_changed"),
    ("OCSP_REASON_SUPERSEDED", "superseded"),
    ("OCSP_REASON_CESSATION_OF_OPERATION", "cessation_of_operation"),
    ("OCSP_REASON_CERTIFICATE_HOLD", "certificate_hold"),
    ("OCSP_REASON_REMOVE_FROM_CRL", "remove_from_crl"),
    ("OCSP_REASON_PRIVILEGE_WITHDRAWN", "privilege_withdrawn"),
    ("OCSP_REASON_AA_COMPROMISE", "aa_compromise"),
];

/// The other exports.
const EXPORTS: [&str; 17] = [
    "default",
    "get",
    "head",
    "post",
    "put",
    "patch",
    "del",
    "options",
    "request",
    "asyncRequest",
    "batch",
    "cookieJar",
    "CookieJar",
    "file",
    "url",
    "expectedStatuses",
    "setResponseCallback",
];

/// Functions of a URL and params: name, method, and name in messages.
const WITHOUT_BODY: [(&str, &str, &str); 2] = [("get", "GET", "http.get()"), ("head", "HEAD", "http.head()")];

/// Functions of a URL, a body and params.
const WITH_BODY: [(&str, &str, &str); 5] = [
    ("post", "POST", "http.post()"),
    ("put", "PUT", "http.put()"),
    ("patch", "PATCH", "http.patch()"),
    ("del", "DELETE", "http.del()"),
    ("options", "OPTIONS", "http.options()"),
];

impl NativeModule for Http {
    const NAME: &'static str = "k6/http";
    const EXPORTS: &'static [&'static str] = &joined::<35>(&[&EXPORTS, &names_of(&CONSTANTS)]);

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let client = Client::install(ctx)?;
        let object = Object::new(ctx.clone())?;
        add_requests(&object, &client)?;
        add_others(&object)?;
        CONSTANTS.into_iter().try_for_each(|(name, value)| object.set(name, value))?;
        Ok(object)
    }
}

/// Adds the functions that scripts call most. They hold the client; the others look it up.
#[inline(never)]
fn add_requests<'js>(object: &Object<'js>, client: &Rc<Client>) -> Result<()> {
    for (name, method, call) in WITHOUT_BODY {
        let client = Rc::clone(client);
        let send = move |ctx: Ctx<'js>, url: Arg<'js>, params: Opt<Value<'js>>| {
            client.request(&ctx, call, Arguments { method: method.into(), url: url.0, body: None, params: params.0 })
        };
        object.native(name, send)?;
    }
    for (name, method, call) in WITH_BODY {
        let client = Rc::clone(client);
        let send = move |ctx: Ctx<'js>, url: Arg<'js>, body: Opt<Value<'js>>, params: Opt<Value<'js>>| {
            client.request(&ctx, call, Arguments { method: method.into(), url: url.0, body: body.0, params: params.0 })
        };
        object.native(name, send)?;
    }
    Ok(())
}

#[inline(never)]
fn add_others<'js>(object: &Object<'js>) -> Result<()> {
    object.native("request", request)?;
    object.native("asyncRequest", async_request)?;
    object.native("batch", batch)?;
    object.native("cookieJar", cookie_jar::cookie_jar)?;
    object.native("file", body::file)?;
    object.native("url", template::url)?;
    object.native("expectedStatuses", statuses::expected_statuses)?;
    object.native("setResponseCallback", statuses::set_response_callback)?;
    Class::<CookieJar>::define(object)
}

fn request<'js>(
    ctx: Ctx<'js>,
    method: Arg<'js>,
    url: Arg<'js>,
    body: Opt<Value<'js>>,
    params: Opt<Value<'js>>,
) -> Result<ResponseObject<'js>> {
    let method = text(&ctx, method.0)?.into();
    Client::of(&ctx)?.request(&ctx, "http.request()", Arguments { method, url: url.0, body: body.0, params: params.0 })
}

fn async_request<'js>(
    ctx: Ctx<'js>,
    method: Arg<'js>,
    url: Arg<'js>,
    body: Opt<Value<'js>>,
    params: Opt<Value<'js>>,
) -> Result<Promise<'js>> {
    User::running(&ctx, "http.asyncRequest()")?;
    let method = text(&ctx, method.0)?.into();
    let client = Client::of(&ctx)?;
    let request = Arguments { method, url: url.0, body: body.0, params: params.0 }.read(&ctx, &client);
    client.promise(&ctx, request)
}

/// Requests in an array or an object; the responses come in the same form.
fn batch<'js>(ctx: Ctx<'js>, Arg(requests): Arg<'js>) -> Result<Value<'js>> {
    User::running(&ctx, "http.batch()")?;
    let client = Client::of(&ctx)?;
    let Some(object) = requests.as_object().filter(|object| !object.is_function()) else {
        let found = requests.type_name();
        return Err(thrown(
            &ctx,
            format!("invalid http.batch() argument type {found}: expected an array or an object"),
        ));
    };
    let entries = object.props::<String, Value<'js>>().collect::<Result<Vec<_>>>()?;
    let (mut names, mut all) = (Vec::new(), Vec::new());
    for (name, entry) in entries {
        match batched(&ctx, &client, &name, entry) {
            Ok(request) => all.push(request),
            // As in k6, an unreadable request stops its whole batch: those before it get no reply.
            Err(wrong) => {
                let unsent = names.into_iter().map(|name| Ok((name, client.unsent(&ctx)?)));
                let mut responses = unsent.collect::<Result<Vec<_>>>()?;
                responses.push((name, client.refused(&ctx, wrong)?));
                return together(&ctx, requests.is_array(), responses);
            }
        }
        names.push(name);
    }
    let responses = client.batch(&ctx, all)?;
    together(&ctx, requests.is_array(), names.into_iter().zip(responses).collect())
}

fn together<'js>(ctx: &Ctx<'js>, is_array: bool, responses: Vec<(String, ResponseObject<'js>)>) -> Result<Value<'js>> {
    if is_array {
        return responses.into_iter().map(|(_, response)| response).collect::<Vec<_>>().into_js(ctx);
    }
    let object = Object::new(ctx.clone())?;
    responses.into_iter().try_for_each(|(name, response)| object.set(name, response))?;
    Ok(object.into_value())
}

/// Reads a request of a batch: a URL, `[method, url, body, params]`, or an object with these.
fn batched<'js>(
    ctx: &Ctx<'js>,
    client: &Client,
    name: &str,
    entry: Value<'js>,
) -> std::result::Result<Rc<ScriptRequest>, arguments::RequestError> {
    let is_template = instance::<template::HttpUrl>(&entry).is_some();
    let arguments = match (entry.as_array(), entry.as_object()) {
        (Some(array), _) => of_array(ctx, array)?,
        (None, Some(object)) if !is_template && object.contains_key("url")? => of_object(ctx, object)?,
        (None, Some(_)) if !is_template => {
            return Err(arguments::refused(format!("batch request {name} doesn't have a url key")));
        }
        _ => Arguments { method: "GET".into(), url: entry, body: None, params: None },
    };
    arguments.read(ctx, client)
}

fn of_array<'js>(ctx: &Ctx<'js>, array: &Array<'js>) -> std::result::Result<Arguments<'js>, arguments::RequestError> {
    let method: Value<'js> = array.get(0)?;
    if array.len() < 2 || !method.is_string() {
        return Err(arguments::refused("expected [method, url, body, params] as a request of a batch".to_owned()));
    }
    let method = text(ctx, method)?.into();
    Ok(Arguments {
        method,
        url: array.get(1)?,
        body: non_null(Some(array.get(2)?)),
        params: non_null(Some(array.get(3)?)),
    })
}

fn of_object<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> Result<Arguments<'js>> {
    let method = non_null(Some(object.get("method")?)).map(|method| text(ctx, method)).transpose()?;
    let method = method.map_or_else(|| "GET".to_owned(), |method| method.to_ascii_uppercase());
    let body = non_null(Some(object.get("body")?)).filter(|_| !["GET", "HEAD"].contains(&method.as_str()));
    Ok(Arguments {
        method: method.into(),
        url: object.get("url")?,
        body,
        params: non_null(Some(object.get("params")?)),
    })
}
