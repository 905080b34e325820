//! Calls: their operations, replies and samples.

use super::params::CallParams;
use crate::native::Native;
use crate::operations::{Event, GrpcCall, GrpcEnd, GrpcEvent, Metadata, Op};
use crate::schema::{decode, path_of};
use crate::user::{SampleLabels, User, milliseconds};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use plimsoll_grpc::status;
use plimsoll_javascript::OpId;
use plimsoll_k6_run::metrics::builtin;
use plimsoll_model::units::{Instant, Nanos};
use prost_reflect::MethodDescriptor;
use rquickjs::{Array, Ctx, Exception, Object, Result};
use std::net::SocketAddr;
use std::rc::Rc;

/// The default timeout of a call, as in k6.
pub(super) const LONGEST_CALL: Nanos = Nanos(120_000_000_000);

/// The samples of a call, with their tags and the labels of its begin.
pub(super) struct CallSamples {
    user: Rc<User>,
    tags: Vec<(String, String)>,
    labels: SampleLabels,
}

impl CallSamples {
    pub(super) fn new(
        user: &Rc<User>,
        address: &str,
        remote: SocketAddr,
        path: &str,
        tags: Vec<(String, String)>,
    ) -> CallSamples {
        let (service, method) = path.trim_start_matches('/').split_once('/').unwrap_or_default();
        let mut all = tags;
        let system = [
            ("url", format!("{address}{path}")),
            ("service", service.to_owned()),
            ("method", method.to_owned()),
            ("name", path.to_owned()),
            ("ip", remote.ip().to_string()),
        ];
        for (name, value) in system {
            let is_own = name == "name" && all.iter().any(|(tag, _)| tag == name);
            if user.has_system_tag(name) && !is_own {
                all.push((name.to_owned(), value));
            }
        }
        CallSamples { user: Rc::clone(user), tags: all, labels: user.labels() }
    }

    /// The name under which the call is recorded: the tag `name`, or its path.
    pub(super) fn name(&self, path: &str) -> Rc<str> {
        let own = self.tags.iter().find(|(tag, _)| tag == "name").map(|(_, name)| name.as_str());
        own.unwrap_or(path).into()
    }

    /// Adds samples.
    pub(super) fn add(&self, at: Instant, metric: plimsoll_k6_run::metrics::MetricId, value: f64, status: Option<u16>) {
        let status = status.filter(|_| self.user.has_system_tag("status")).map(|status| status.to_string());
        let mut tags: Vec<(&str, &str)> =
            self.tags.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        tags.extend(status.as_deref().map(|status| ("status", status)));
        self.user.add_measured(at, &[(metric, value)], None, (&tags, Some(&self.labels)));
    }

    pub(super) fn ended(&self, at: Instant, end: &GrpcEnd) {
        let took = milliseconds(at, at.after(end.took));
        self.add(at, builtin::GRPC_REQ_DURATION, took, Some(end.status));
    }
}

/// A call with a single message, ready to be sent.
pub(super) fn unary(connection: OpId, path: String, name: Rc<str>, params: &CallParams, message: Vec<u8>) -> Op {
    let (metadata, timeout) = (params.metadata.clone(), params.timeout.or(Some(LONGEST_CALL)));
    Op::GrpcCall(Box::new(GrpcCall { connection, path, metadata, timeout, message: Some(message), name }))
}

/// The reply to a call with a single message.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) headers: Metadata,
    pub(super) message: Option<Vec<u8>>,
    pub(super) end: GrpcEnd,
}

impl Reply {
    /// Takes an event. True if it was the last.
    pub(super) fn take(&mut self, event: Event) -> bool {
        let Event::Grpc(event) = event else { return false };
        match *event {
            GrpcEvent::Headers(headers) => self.headers = headers,
            GrpcEvent::Message(message) => self.message = Some(message),
            GrpcEvent::Ended(end) => {
                self.end = end;
                return true;
            }
            GrpcEvent::Connected(_) | GrpcEvent::NotConnected(_) => {}
        }
        false
    }

    /// The call took too long.
    pub(super) fn is_late(&mut self, took: Nanos) {
        self.end = late(took);
    }

    /// The response for the script.
    pub(super) fn into_js<'js>(
        mut self,
        ctx: &Ctx<'js>,
        method: &MethodDescriptor,
        discard: bool,
    ) -> Result<Object<'js>> {
        let response = Object::new(ctx.clone())?;
        if self.end.status == status::OK && self.message.is_none() {
            let why = format!("expected an answer to {}, found its end", path_of(method));
            self.end = GrpcEnd { status: status::INTERNAL, message: why, ..self.end };
        }
        match discard {
            true => response.set("message", rquickjs::Null)?,
            // As in k6, a failed call has an empty message.
            false => response.set("message", message_of(ctx, method, self.message.as_deref().unwrap_or_default())?)?,
        }
        response.set("status", self.end.status)?;
        response.set("headers", fields(ctx, &self.headers)?)?;
        response.set("trailers", fields(ctx, &self.end.trailers)?)?;
        match self.end.status {
            status::OK => response.set("error", rquickjs::Null)?,
            code => response.set("error", error(ctx, code, &self.end.message)?)?,
        }
        Ok(response)
    }
}

/// The end of a call that took too long.
pub(super) fn late(took: Nanos) -> GrpcEnd {
    let message = "context deadline exceeded".to_owned();
    GrpcEnd { status: status::DEADLINE_EXCEEDED, message, took, ..GrpcEnd::default() }
}

/// A message of the server, as an object.
pub(super) fn message_of<'js>(
    ctx: &Ctx<'js>,
    method: &MethodDescriptor,
    message: &[u8],
) -> Result<rquickjs::Value<'js>> {
    let json = decode(&method.output(), message).map_err(|fault| Exception::throw_message(ctx, &fault))?;
    ctx.json_parse(json)
}

/// An error as an object.
pub(super) fn error<'js>(ctx: &Ctx<'js>, code: u16, message: &str) -> Result<Object<'js>> {
    let error = Object::new(ctx.clone())?;
    error.set("code", code)?;
    error.set("message", message)?;
    error.set("details", Array::new(ctx.clone())?)?;
    let text = format!("code: {code}, message: {message}");
    error.native("error", move || text.clone())?;
    error.prop(
        "error",
        rquickjs::object::Property::from(error.get::<_, rquickjs::Value<'js>>("error")?).configurable(),
    )?;
    Ok(error)
}

/// Metadata by name, with all values of each.
pub(super) fn fields<'js>(ctx: &Ctx<'js>, metadata: &Metadata) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    for (name, value) in metadata {
        let values = object.get::<_, Option<Array<'js>>>(name)?.map_or_else(|| Array::new(ctx.clone()), Ok)?;
        values.set(values.len(), text_of(name, value))?;
        object.set(name, values)?;
    }
    Ok(object)
}

/// The text of a value. Binary values are in base64.
fn text_of(name: &str, value: &str) -> String {
    if !name.ends_with("-bin") {
        return value.to_owned();
    }
    let bytes = STANDARD_NO_PAD.decode(value).or_else(|_| STANDARD.decode(value));
    bytes.map_or_else(|_| value.to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}
