//! Requests: compiled into templates, and written with the values of their user.

use super::capture::{Capture, Query, compiled};
use super::check::Checks;
use super::compile::{CompiledFlow, Compiler};
use super::redirect::{self, Redirect};
use super::reply::KeptParts;
use super::template::{Draft, Encoding, Piece, Template, TemplateContext, ValueRef};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_engine::protocol::Failure;
use plimsoll_model::flow::{
    self, Auth, Body, ContentCoding, FlowRequest, MultipartPart, PartContent, Password, WorkloadPart,
};
use plimsoll_model::storage::Secret;
use plimsoll_web::multipart::{self, Boundary, Part};
use plimsoll_web::{Coding, Jar, UnixSeconds, form};
use std::io::Write as _;
use std::ops::Range;
use std::path::Path;

/// A compiled request, with the checks and captures of its reply.
pub(super) struct Request {
    /// The step under which it is recorded.
    pub(super) step: usize,
    pub(super) method: Box<str>,
    /// Path and query.
    pub(super) target: Template,
    /// Everything between the target and the headers that describe the body.
    pub(super) head: Template,
    /// The headers that describe the body.
    pub(super) content: Template,
    pub(super) body: Template,
    /// The range of the whole request in the pool, if it has no values.
    pub(super) whole: Option<Range<usize>>,
    pub(super) keep: KeptParts,
    pub(super) captures: Vec<Capture>,
    pub(super) checks: Checks,
    /// The topic to whose listeners the system delivers what it carries.
    pub(super) delivers_to: Option<Template>,
}

/// User and password of basic authentication.
pub(super) struct Basic {
    user: Template,
    password: PasswordSource,
}

/// Where the password of basic authentication comes from.
enum PasswordSource {
    Environment(Secret),
    Value(ValueRef),
}

impl Compiler<'_> {
    /// Compiles a request; `None` if it has faults.
    pub(super) fn request(&mut self, number: usize, request: &FlowRequest) -> Option<Request> {
        let of = Some(WorkloadPart::Request(number));
        let captures = request.captures.iter().map(|capture| self.or_fault(of, Capture::new(capture)));
        // Collect first, so that the faults of all captures are found.
        let captures: Vec<Option<Capture>> = captures.collect();
        let checks = self.checks(&request.checks, of);
        let drafts = self.drafts(request, of);
        let (captures, checks, drafts) = (captures.into_iter().collect::<Option<Vec<_>>>()?, checks?, drafts?);
        let step = self.steps.iter().position(|name| *name == request.name).unwrap_or_default();
        let start = self.pool.len();
        let Drafts { target, head, content, body } = drafts;
        self.pool.extend_from_slice(format!("{} ", request.method).as_bytes());
        let [target, head, content] = [target, head, content].map(|draft| draft.finish(&mut self.pool));
        self.pool.extend_from_slice(b"\r\n");
        let body = body.finish(&mut self.pool);
        let end = self.pool.len();
        let is_fixed = [&target, &head, &content, &body].into_iter().all(Template::is_fixed);
        let whole = is_fixed.then_some(start..end);
        let keep = self.keep(request, &captures, &checks);
        let method = request.method.as_str().into();
        let delivers_to = request.delivers_to.as_ref().map(|topic| self.template(topic, Encoding::Plain));
        Some(Request { step, method, target, head, content, body, whole, keep, captures, checks, delivers_to })
    }

    fn keep(&self, request: &FlowRequest, captures: &[Capture], checks: &Checks) -> KeptParts {
        let body = checks.needs_body() || captures.iter().any(Capture::needs_body);
        let in_head =
            |capture: &flow::Capture| matches!(capture.from, flow::Source::Header(_) | flow::Source::Cookie(_));
        // The header says how a body is coded.
        let headers = body
            || self.flow.cookies
            || self.flow.redirects > 0
            || !checks.header.is_empty()
            || request.captures.iter().any(in_head);
        KeptParts { headers, body }
    }

    pub(super) fn checks(&mut self, checks: &flow::Checks, of: Option<WorkloadPart>) -> Option<Checks> {
        let matches: Vec<_> = checks.matches.iter().map(|pattern| self.or_fault(of, compiled(pattern))).collect();
        let queries: Vec<_> = checks.json.iter().map(|(path, _)| self.or_fault(of, Query::new(path))).collect();
        let expected: Vec<_> = checks.json.iter().map(|(_, expected)| self.json_template(expected)).collect();
        let header = checks.header.iter().map(|(name, text)| (name.clone(), self.template(text, Encoding::Plain)));
        Some(Checks {
            status: checks.status.clone(),
            within: checks.within.map(Into::into),
            header: header.collect(),
            contains: checks.contains.iter().map(|text| self.template(text, Encoding::Plain)).collect(),
            json: queries.into_iter().collect::<Option<Vec<_>>>()?.into_iter().zip(expected).collect(),
            matches: matches.into_iter().collect::<Option<_>>()?,
        })
    }

    fn drafts(&mut self, request: &FlowRequest, of: Option<WorkloadPart>) -> Option<Drafts> {
        let mut drafts = Drafts::default();
        self.write(&request.path, Encoding::Component, &mut drafts.target);
        let content_type = self.body(&request.body, of, &mut drafts.body);
        self.write_own_headers(request, &mut drafts.head);
        self.write_given_headers(request, &mut drafts);
        if let Some(auth) = &request.auth {
            let written = self.write_auth(auth, &mut drafts.head);
            self.or_fault(of, written)?;
        }
        let content_type = content_type?;
        if self.flow.cookies && !sets_header(request, "cookie") {
            drafts.head.piece(Piece::Cookies);
        }
        if let Some(content_type) = content_type.filter(|_| !sets_header(request, "content-type")) {
            drafts.content.literal(format!("Content-Type: {content_type}\r\n"));
        }
        // A method that means to carry a body says so even when the body is empty (RFC 9110, 8.6).
        let means_to = matches!(request.method.as_str(), "POST" | "PUT" | "PATCH");
        if drafts.body.length() != Some(0) || means_to {
            drafts.write_length();
        }
        Some(drafts)
    }

    fn write_own_headers(&self, request: &FlowRequest, head: &mut Draft) {
        head.literal(" HTTP/1.1\r\n");
        if !sets_header(request, "host") {
            head.literal(format!("Host: {}\r\n", crate::http::authority(self.target)));
        }
        if !sets_header(request, "user-agent") {
            head.literal(crate::http::USER_AGENT);
        }
        if !self.flow.compression.is_empty() && !sets_header(request, "accept-encoding") {
            head.literal(format!("Accept-Encoding: {}\r\n", codings(&self.flow.compression)));
        }
    }

    fn write_given_headers(&self, request: &FlowRequest, drafts: &mut Drafts) {
        for (name, value) in &request.headers {
            let describes_body = name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("content-"));
            let draft = if describes_body { &mut drafts.content } else { &mut drafts.head };
            draft.literal(format!("{name}: "));
            self.write(value, Encoding::Line, draft);
            draft.literal("\r\n");
        }
    }

    fn write_auth(&mut self, auth: &Auth, head: &mut Draft) -> Result<(), String> {
        head.literal("Authorization: ");
        match auth {
            Auth::Bearer(token) => {
                head.literal("Bearer ");
                self.write(token, Encoding::Line, head);
            }
            Auth::BearerOf(variable) => head.literal(format!("Bearer {}", from_environment(variable)?.0)),
            Auth::Basic { user, password } => {
                head.literal("Basic ");
                let user = self.template(user, Encoding::Plain);
                let password = match password {
                    Password::Environment(variable) => PasswordSource::Environment(from_environment(variable)?),
                    Password::Value(value) => PasswordSource::Value(self.value_ref(flow::Reference::Value(*value))),
                };
                head.piece(Piece::Basic(self.basics.len() as u16));
                self.basics.push(Basic { user, password });
            }
        }
        head.literal("\r\n");
        Ok(())
    }

    /// Writes a body, and returns its content type.
    pub(super) fn body(&mut self, body: &Body, of: Option<WorkloadPart>, draft: &mut Draft) -> Option<Option<String>> {
        let content_type = match body {
            Body::None => None,
            Body::Text(text) => {
                self.write(text, Encoding::Plain, draft);
                None
            }
            Body::Json(json) => {
                self.write_json(json, draft);
                Some("application/json".to_owned())
            }
            Body::Form(fields) => {
                for (index, (name, value)) in fields.iter().enumerate() {
                    draft.literal(if index > 0 { "&" } else { "" });
                    self.write(name, Encoding::Form, draft);
                    draft.literal("=");
                    self.write(value, Encoding::Form, draft);
                }
                Some(form::CONTENT_TYPE.to_owned())
            }
            Body::Multipart(parts) => Some(self.multipart(parts, of, draft)?),
            Body::File(file) => {
                draft.literal(self.or_fault(of, read(file))?);
                None
            }
        };
        Some(content_type)
    }

    fn multipart(&mut self, parts: &[MultipartPart], of: Option<WorkloadPart>, draft: &mut Draft) -> Option<String> {
        let contents: Vec<Option<Vec<u8>>> = parts.iter().map(|part| self.or_fault(of, fixed_content(part))).collect();
        let contents: Vec<Vec<u8>> = contents.into_iter().collect::<Option<_>>()?;
        let named: Vec<Part<'_>> =
            parts.iter().zip(&contents).map(|(part, content)| described(part, content)).collect();
        let boundary = Boundary::between(&named, 0);
        for (part, named) in parts.iter().zip(&named) {
            draft.literal(multipart::head(named, boundary));
            match &part.content {
                PartContent::Text(text) => self.write(text, Encoding::Plain, draft),
                PartContent::File(_) => draft.literal(named.content),
            }
            draft.literal(multipart::BEHIND_PART);
        }
        draft.literal(multipart::end(boundary));
        Some(boundary.content_type())
    }
}

/// The parts of a request while it is compiled.
#[derive(Default)]
struct Drafts {
    target: Draft,
    head: Draft,
    content: Draft,
    body: Draft,
}

impl Drafts {
    fn write_length(&mut self) {
        self.content.literal("Content-Length: ");
        match self.body.length() {
            Some(length) => self.content.literal(length.to_string()),
            None => self.content.piece(Piece::Length),
        }
        self.content.literal("\r\n");
    }
}

/// True if the study itself sets a header.
fn sets_header(request: &FlowRequest, wanted: &str) -> bool {
    request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted))
}

fn codings(codings: &[ContentCoding]) -> String {
    let names = codings.iter().map(|coding| match coding {
        ContentCoding::Gzip => Coding::Gzip.name(),
        ContentCoding::Deflate => Coding::Deflate.name(),
        ContentCoding::Brotli => Coding::Brotli.name(),
    });
    names.collect::<Vec<_>>().join(", ")
}

fn from_environment(variable: &str) -> Result<Secret, String> {
    let expected = |found| format!("expected a secret in the environment variable `{variable}`, {found}");
    let secret = std::env::var(variable).map_err(|_| expected("which is not set"))?;
    if secret.contains(char::is_control) {
        return Err(expected("found more than one line"));
    }
    Ok(Secret(secret))
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("failed to read `{}`: {error}", file.display()))
}

/// The content of a part that is known when compiled: the boundary must not occur in it.
fn fixed_content(part: &MultipartPart) -> Result<Vec<u8>, String> {
    match &part.content {
        PartContent::File(file) => read(file),
        PartContent::Text(text) => {
            let literals = text.0.iter().filter_map(|piece| match piece {
                flow::Piece::Literal(literal) => Some(literal.as_bytes()),
                flow::Piece::Value { .. } => None,
            });
            Ok(literals.collect::<Vec<_>>().concat())
        }
    }
}

fn described<'a>(part: &'a MultipartPart, content: &'a [u8]) -> Part<'a> {
    let file = match &part.content {
        PartContent::File(file) => file.file_name().and_then(|name| name.to_str()).or(Some("file")),
        PartContent::Text(_) => None,
    };
    Part { name: &part.name, file, content_type: part.content_type.as_deref(), content }
}

/// The state that writing a request needs beside the values of its user.
pub(super) struct WriteState<'a> {
    pub(super) flow: &'a CompiledFlow,
    pub(super) jar: &'a Jar,
    /// The redirect to follow, if any.
    pub(super) redirect: Option<&'a Redirect>,
    /// A buffer for the body.
    pub(super) scratch: &'a mut Vec<u8>,
}

impl Request {
    /// Checks that all values of the request are present and fit their places.
    pub(super) fn check(&self, context: &mut TemplateContext<'_>, flow: &CompiledFlow) -> Result<(), Failure> {
        self.delivers_to.iter().try_for_each(|topic| context.check(topic))?;
        if self.whole.is_some() {
            return Ok(());
        }
        [&self.target, &self.head, &self.content, &self.body].into_iter().try_for_each(|part| context.check(part))?;
        for piece in &*self.head.0 {
            match piece {
                Piece::Basic(number) => flow.basics[*number as usize].check(context)?,
                Piece::Bytes(_) | Piece::Value(..) | Piece::Length | Piece::Cookies => {}
            }
        }
        if self.target.begins_with_link() { self.resolve_link(context, flow).map(|_| ()) } else { Ok(()) }
    }

    /// Appends the request to `out`, and returns the range of its target there.
    pub(super) fn write(
        &self,
        context: &mut TemplateContext<'_>,
        state: &mut WriteState<'_>,
        out: &mut Vec<u8>,
    ) -> Range<usize> {
        if let Some(whole) = self.whole.clone().filter(|_| state.redirect.is_none()) {
            let target = out.len() + self.method.len() + 1;
            out.extend_from_slice(&context.pool[whole]);
            return target..target + self.target.fixed_length();
        }
        let has_body = !state.redirect.is_some_and(|redirect| redirect.drops_body);
        let method = if has_body || &*self.method == "HEAD" { &*self.method } else { "GET" };
        out.extend_from_slice(method.as_bytes());
        out.push(b' ');
        let start = out.len();
        match state.redirect {
            Some(redirect) => out.extend_from_slice(redirect.target.as_bytes()),
            None => self.write_target(context, state.flow, out),
        }
        let target = start..out.len();
        state.scratch.clear();
        write_head(&self.head, &target, context, state, out);
        if has_body {
            context.write(&self.body, state.scratch);
            write_head(&self.content, &target, context, state, out);
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(state.scratch);
        target
    }

    fn write_target(&self, context: &mut TemplateContext<'_>, flow: &CompiledFlow, out: &mut Vec<u8>) {
        if !self.target.begins_with_link() {
            context.write(&self.target, out);
        } else if let Ok(target) = self.resolve_link(context, flow) {
            out.extend_from_slice(target.as_bytes());
        }
    }

    /// Resolves a captured link, which may be an absolute URL.
    fn resolve_link(&self, context: &mut TemplateContext<'_>, flow: &CompiledFlow) -> Result<String, Failure> {
        let mut link = Vec::new();
        context.write(&self.target, &mut link);
        redirect::target_on(&flow.origin, &flow.origin, &String::from_utf8_lossy(&link))
    }
}

fn write_head(
    head: &Template,
    target: &Range<usize>,
    context: &mut TemplateContext<'_>,
    state: &WriteState<'_>,
    out: &mut Vec<u8>,
) {
    for piece in &*head.0 {
        match piece {
            Piece::Bytes(range) => out.extend_from_slice(&context.pool[range.clone()]),
            Piece::Value(place, encoding) => context.write_value(*place, *encoding, out),
            Piece::Length => drop(write!(out, "{}", state.scratch.len())),
            Piece::Cookies => write_cookies(target, context.now, state, out),
            Piece::Basic(number) => {
                let credentials = state.flow.basics[*number as usize].credentials(context);
                out.extend_from_slice(STANDARD.encode(credentials).as_bytes());
            }
        }
    }
}

impl Basic {
    fn check(&self, context: &TemplateContext<'_>) -> Result<(), Failure> {
        context.check(&self.user)?;
        match &self.password {
            PasswordSource::Environment(_) => Ok(()),
            PasswordSource::Value(place) => context.check_value(*place, Encoding::Plain),
        }
    }

    fn credentials(&self, context: &mut TemplateContext<'_>) -> Vec<u8> {
        let mut credentials = Vec::new();
        context.write(&self.user, &mut credentials);
        credentials.push(b':');
        match &self.password {
            PasswordSource::Environment(Secret(password)) => credentials.extend_from_slice(password.as_bytes()),
            PasswordSource::Value(place) => context.write_value(*place, Encoding::Plain, &mut credentials),
        }
        credentials
    }
}

fn write_cookies(target: &Range<usize>, now: i64, state: &WriteState<'_>, out: &mut Vec<u8>) {
    if state.jar.is_empty() {
        return;
    }
    let path = String::from_utf8_lossy(&out[target.clone()]).into_owned();
    let start = out.len();
    out.extend_from_slice(b"Cookie: ");
    if state.jar.write(redirect::place(&state.flow.origin, &path), UnixSeconds(now / 1000), out) {
        out.extend_from_slice(b"\r\n");
    } else {
        out.truncate(start);
    }
}
