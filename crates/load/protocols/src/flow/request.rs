//! Requests: compiled into templates, and written with what their user knows.

use super::capture::{Capture, Query, compiled};
use super::check::Checks;
use super::compile::{CompiledFlow, Compiler};
use super::redirect::{self, Hop};
use super::reply::Keep;
use super::template::{Draft, Encoding, Known, Piece, Place, Template};
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

/// A request, and what its reply must be.
pub(super) struct Request {
    /// Under which it is recorded.
    pub(super) step: usize,
    pub(super) method: Box<str>,
    /// Path and query.
    pub(super) target: Template,
    /// What follows the target, but for what describes the body.
    pub(super) head: Template,
    /// The headers that describe the body.
    pub(super) content: Template,
    pub(super) body: Template,
    /// All of it, where it has no values: the parts lie side by side.
    pub(super) whole: Option<Range<usize>>,
    pub(super) keep: Keep,
    pub(super) captures: Vec<Capture>,
    pub(super) checks: Checks,
}

/// User and password of basic authentication.
pub(super) struct Basic {
    user: Template,
    password: Word,
}

/// A password.
enum Word {
    Set(Secret),
    Kept(Place),
}

impl Compiler<'_> {
    /// Compiles a request; nothing where something is wrong with it.
    pub(super) fn request(&mut self, number: usize, request: &FlowRequest) -> Option<Request> {
        let of = Some(WorkloadPart::Request(number));
        let captures = request.captures.iter().map(|capture| self.or_fault(of, Capture::new(capture)));
        // All of them are looked at, whatever is wrong with one.
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
        let is_fixed = [&target, &head, &content, &body].into_iter().all(Template::is_fixed);
        let whole = is_fixed.then_some(start..self.pool.len());
        let keep = self.keep(request, &captures, &checks);
        let method = request.method.as_str().into();
        Some(Request { step, method, target, head, content, body, whole, keep, captures, checks })
    }

    fn keep(&self, request: &FlowRequest, captures: &[Capture], checks: &Checks) -> Keep {
        let body = checks.needs_body() || captures.iter().any(Capture::needs_body);
        let in_head =
            |capture: &flow::Capture| matches!(capture.from, flow::Source::Header(_) | flow::Source::Cookie(_));
        // A body that is looked into may be coded.
        let headers = body
            || self.flow.cookies
            || self.flow.redirects > 0
            || !checks.header.is_empty()
            || request.captures.iter().any(in_head);
        Keep { headers, body }
    }

    fn checks(&mut self, checks: &flow::Checks, of: Option<WorkloadPart>) -> Option<Checks> {
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
        if self.flow.cookies && !gives(request, "cookie") {
            drafts.head.piece(Piece::Cookies);
        }
        if let Some(content_type) = content_type.filter(|_| !gives(request, "content-type")) {
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
        if !gives(request, "host") {
            head.literal(format!("Host: {}\r\n", crate::http::authority(self.target)));
        }
        if !gives(request, "user-agent") {
            head.literal(crate::http::USER_AGENT);
        }
        if !self.flow.compression.is_empty() && !gives(request, "accept-encoding") {
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
                    Password::Environment(variable) => Word::Set(from_environment(variable)?),
                    Password::Value(value) => Word::Kept(self.place(flow::Reference::Value(*value))),
                };
                head.piece(Piece::Basic(self.basics.len() as u16));
                self.basics.push(Basic { user, password });
            }
        }
        head.literal("\r\n");
        Ok(())
    }

    /// Writes a body, and says of what type it is.
    fn body(&mut self, body: &Body, of: Option<WorkloadPart>, draft: &mut Draft) -> Option<Option<String>> {
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
        let contents: Vec<Option<Vec<u8>>> = parts.iter().map(|part| self.or_fault(of, known_content(part))).collect();
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

/// A request under way to its templates.
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

/// True if the study itself gives a header.
fn gives(request: &FlowRequest, wanted: &str) -> bool {
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

/// What of a part is known before it is sent: the boundary must not stand in it.
fn known_content(part: &MultipartPart) -> Result<Vec<u8>, String> {
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

/// What a request is written with, beside what its user knows.
pub(super) struct Sending<'a> {
    pub(super) plan: &'a CompiledFlow,
    pub(super) jar: &'a Jar,
    /// Where a redirect leads.
    pub(super) hop: Option<&'a Hop>,
    /// Space for the body.
    pub(super) scratch: &'a mut Vec<u8>,
}

impl Request {
    /// True if its user can make it.
    pub(super) fn fits(&self, known: &mut Known<'_>, plan: &CompiledFlow) -> Result<(), Failure> {
        if self.whole.is_some() {
            return Ok(());
        }
        [&self.target, &self.head, &self.content, &self.body].into_iter().try_for_each(|part| known.fits(part))?;
        for piece in &*self.head.0 {
            match piece {
                Piece::Basic(number) => plan.basics[*number as usize].fits(known)?,
                Piece::Bytes(_) | Piece::Value(..) | Piece::Length | Piece::Cookies => {}
            }
        }
        if self.target.begins_with_link() { self.link(known, plan).map(|_| ()) } else { Ok(()) }
    }

    /// Appends the request, and says where in `out` its target stands.
    pub(super) fn write(&self, known: &mut Known<'_>, sending: &mut Sending<'_>, out: &mut Vec<u8>) -> Range<usize> {
        if let Some(whole) = self.whole.clone().filter(|_| sending.hop.is_none()) {
            let target = out.len() + self.method.len() + 1;
            out.extend_from_slice(&known.pool[whole]);
            return target..target + self.target.fixed_length();
        }
        let has_body = !sending.hop.is_some_and(|hop| hop.drops_body);
        let method = if has_body || &*self.method == "HEAD" { &*self.method } else { "GET" };
        out.extend_from_slice(method.as_bytes());
        out.push(b' ');
        let start = out.len();
        match sending.hop {
            Some(hop) => out.extend_from_slice(hop.target.as_bytes()),
            None => self.write_target(known, sending.plan, out),
        }
        let target = start..out.len();
        sending.scratch.clear();
        write_head(&self.head, &target, known, sending, out);
        if has_body {
            known.write(&self.body, sending.scratch);
            write_head(&self.content, &target, known, sending, out);
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(sending.scratch);
        target
    }

    fn write_target(&self, known: &mut Known<'_>, plan: &CompiledFlow, out: &mut Vec<u8>) {
        if !self.target.begins_with_link() {
            known.write(&self.target, out);
        } else if let Ok(target) = self.link(known, plan) {
            out.extend_from_slice(target.as_bytes());
        }
    }

    /// Where a link leads that was captured: it may name the server too.
    fn link(&self, known: &mut Known<'_>, plan: &CompiledFlow) -> Result<String, Failure> {
        let mut link = Vec::new();
        known.write(&self.target, &mut link);
        redirect::target_on(&plan.origin, &plan.origin, &String::from_utf8_lossy(&link))
    }
}

fn write_head(head: &Template, target: &Range<usize>, known: &mut Known<'_>, sending: &Sending<'_>, out: &mut Vec<u8>) {
    for piece in &*head.0 {
        match piece {
            Piece::Bytes(range) => out.extend_from_slice(&known.pool[range.clone()]),
            Piece::Value(place, encoding) => known.write_value(*place, *encoding, out),
            Piece::Length => drop(write!(out, "{}", sending.scratch.len())),
            Piece::Cookies => write_cookies(target, known.now, sending, out),
            Piece::Basic(number) => {
                let credentials = sending.plan.basics[*number as usize].credentials(known);
                out.extend_from_slice(STANDARD.encode(credentials).as_bytes());
            }
        }
    }
}

impl Basic {
    fn fits(&self, known: &Known<'_>) -> Result<(), Failure> {
        known.fits(&self.user)?;
        match &self.password {
            Word::Set(_) => Ok(()),
            Word::Kept(place) => known.value_fits(*place, Encoding::Plain),
        }
    }

    fn credentials(&self, known: &mut Known<'_>) -> Vec<u8> {
        let mut credentials = Vec::new();
        known.write(&self.user, &mut credentials);
        credentials.push(b':');
        match &self.password {
            Word::Set(Secret(password)) => credentials.extend_from_slice(password.as_bytes()),
            Word::Kept(place) => known.write_value(*place, Encoding::Plain, &mut credentials),
        }
        credentials
    }
}

fn write_cookies(target: &Range<usize>, now: i64, sending: &Sending<'_>, out: &mut Vec<u8>) {
    if sending.jar.is_empty() {
        return;
    }
    let path = String::from_utf8_lossy(&out[target.clone()]).into_owned();
    let start = out.len();
    out.extend_from_slice(b"Cookie: ");
    if sending.jar.write(redirect::place(&sending.plan.origin, &path), UnixSeconds(now / 1000), out) {
        out.extend_from_slice(b"\r\n");
    } else {
        out.truncate(start);
    }
}
