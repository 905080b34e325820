//! Forms and links of a page: `response.submitForm(…)`, `response.clickLink(…)`.

use super::arguments::ask;
use super::body::Content;
use super::client::{Client, ResponseObject};
use super::response::Response;
use crate::modules::html::{FormValue, Selection, fields, value_of};
use crate::user::User;
use crate::value::{is_nothing, non_null, optional_text, text, thrown};
use plimsoll_javascript::busy::spend;
use plimsoll_web::{Url, form};
use rquickjs::{Ctx, IntoJs, Object, Result, Value};
use std::borrow::Cow;

/// A form that is filled in.
pub(crate) struct Form<'js> {
    method: Cow<'static, str>,
    url: Url,
    fields: Vec<(String, String)>,
    params: Option<Value<'js>>,
}

/// A link to follow.
pub(crate) struct Link<'js> {
    url: Url,
    params: Option<Value<'js>>,
}

impl<'js> Form<'js> {
    /// The form of a page, with its own fields and those of the script in their place.
    pub(crate) fn read(ctx: &Ctx<'js>, response: &Response<'js>, arguments: Option<Object<'js>>) -> Result<Form<'js>> {
        let argument = |name| argument(ctx, arguments.as_ref(), name);
        let selector = argument("formSelector")?.unwrap_or_else(|| "form".to_owned());
        let submit = argument("submitSelector")?.unwrap_or_else(|| "[type=\"submit\"]".to_owned());
        let form = response.page(ctx, Some(&selector))?;
        if form.nodes().is_empty() {
            let url = response.url();
            return Err(thrown(ctx, format!("no form found for selector '{selector}' in response '{url}'")));
        }
        let method = form.attribute("method").unwrap_or("GET").to_ascii_uppercase().into();
        let url = target(ctx, response, form.attribute("action").unwrap_or_default())?;
        let mut sent = filled_in(ctx, &form, &submit)?;
        if let Some(own) = member(arguments.as_ref(), "fields")?.and_then(Value::into_object) {
            for field in own.props::<String, Value<'js>>() {
                let (name, value) = field?;
                spend(sent.len());
                sent.retain(|(known, _)| *known != name);
                sent.extend(texts(ctx, &value)?.into_iter().map(|value| (name.clone(), value)));
            }
        }
        Ok(Form { method, url, fields: sent, params: member(arguments.as_ref(), "params")? })
    }

    pub(crate) fn submit(self, ctx: &Ctx<'js>) -> Result<ResponseObject<'js>> {
        let query = form::sorted_query(self.fields);
        if self.method == "GET" {
            let url = self.url.resolve(&format!("?{query}")).map_err(|fault| thrown(ctx, fault))?;
            return send(ctx, "submitForm()", self.method, &url, None, self.params);
        }
        let content = Content { bytes: query.into_bytes(), content_type: Some(form::CONTENT_TYPE.to_owned()) };
        send(ctx, "submitForm()", self.method, &self.url, Some(content), self.params)
    }
}

impl<'js> Link<'js> {
    /// The first link of a page, or the one that the script selects.
    pub(crate) fn read(ctx: &Ctx<'js>, response: &Response<'js>, arguments: Option<Object<'js>>) -> Result<Link<'js>> {
        let selector = argument(ctx, arguments.as_ref(), "selector")?.unwrap_or_else(|| "a[href]".to_owned());
        let link = response.page(ctx, Some(&selector))?;
        let missing = |what: &str| thrown(ctx, format!("{what} '{selector}' in response '{}'", response.url()));
        if link.nodes().is_empty() {
            return Err(missing("no element found for selector"));
        }
        let href = link.attribute("href").ok_or_else(|| missing("no valid href attribute value found on element"))?;
        Ok(Link { url: target(ctx, response, href)?, params: member(arguments.as_ref(), "params")? })
    }

    pub(crate) fn click(self, ctx: &Ctx<'js>) -> Result<ResponseObject<'js>> {
        send(ctx, "clickLink()", "GET".into(), &self.url, None, self.params)
    }
}

fn send<'js>(
    ctx: &Ctx<'js>,
    call: &str,
    method: Cow<'static, str>,
    url: &Url,
    content: Option<Content>,
    params: Option<Value<'js>>,
) -> Result<ResponseObject<'js>> {
    User::running(ctx, call)?;
    let client = Client::of(ctx)?;
    let url = url.to_string().into_js(ctx)?;
    let request = ask(ctx, &client, method, &url, content, params);
    client.send(ctx, request)
}

fn member<'js>(arguments: Option<&Object<'js>>, name: &str) -> Result<Option<Value<'js>>> {
    Ok(non_null(arguments.map(|arguments| arguments.get(name)).transpose()?))
}

fn argument<'js>(ctx: &Ctx<'js>, arguments: Option<&Object<'js>>, name: &str) -> Result<Option<String>> {
    optional_text(ctx, member(arguments, name)?)
}

/// The URL of a reference in a page.
fn target(ctx: &Ctx<'_>, response: &Response<'_>, reference: &str) -> Result<Url> {
    let page = Url::parse(response.url());
    page.and_then(|page| page.resolve(reference)).map_err(|fault| thrown(ctx, fault))
}

/// The fields of a form, with the button that submits it.
fn filled_in(ctx: &Ctx<'_>, form: &Selection, submit: &str) -> Result<Vec<(String, String)>> {
    let document = form.document();
    let selector = crate::modules::html::Selector::parse(submit).map_err(|why| thrown(ctx, why))?;
    let button = form.below(&selector).nodes().first().copied();
    let button = button.and_then(|id| {
        let name = document.attribute(id, "name")?.to_owned();
        match value_of(document, id) {
            FormValue::Nothing => None,
            value => Some((name, value)),
        }
    });
    let all = fields(document, form.nodes()).into_iter().chain(button);
    let mut sent: Vec<(String, String)> = Vec::new();
    for (name, value) in all {
        spend(sent.len());
        sent.retain(|(known, _)| *known != name);
        match value {
            FormValue::Nothing => {}
            FormValue::One(value) => sent.push((name, value)),
            FormValue::Several(values) => sent.extend(values.into_iter().map(|value| (name.clone(), value))),
        }
    }
    Ok(sent)
}

/// The texts of a field: each element of an array is one.
fn texts<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Vec<String>> {
    match value.as_array() {
        Some(array) => array.iter().map(|element| text(ctx, element?)).collect(),
        None if is_nothing(value) => Ok(vec![String::new()]),
        None => Ok(vec![text(ctx, value.clone())?]),
    }
}
