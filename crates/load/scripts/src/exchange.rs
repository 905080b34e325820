//! HTTP/1.1 requests and their responses, one after the other on a connection.

use plimsoll_engine::clock::Clock;
use plimsoll_engine::protocol::Violation;
use plimsoll_engine::recorder::SubjectIndex;
use plimsoll_engine::transport::{Cause, TransportError};
use plimsoll_javascript::{HeldBytes, HeldMemory, OpId};
use plimsoll_k6::operations::{
    BodyWanted, HttpFault, HttpFaultKind, HttpHead, HttpReply, HttpRequest, HttpResponse, HttpTimings, TlsFacts,
};
use plimsoll_model::record::{ErrorKind, Exchange, Outcome};
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_protocols::flow::excerpt;
use plimsoll_protocols::http::response::{LARGEST_REMEMBERED, Progress, ResponseReader, Sink};
use std::net::SocketAddr;
use std::rc::Rc;

/// Why an exchange failed that was still under way when the drain was over.
pub(super) const CUT_OFF: &str = "still under way at the end of the drain";

/// Headers of requests that may be sent twice.
const IDEMPOTENCY_KEYS: [&str; 2] = ["Idempotency-Key", "X-Idempotency-Key"];

/// How long the stages of a connection took, and facts about its peer.
#[derive(Clone, Debug)]
pub(super) struct ConnectionFacts {
    /// Resolving the name of the host.
    pub(super) looked_up: Nanos,
    /// Connecting.
    pub(super) connecting: Nanos,
    /// The handshake of TLS.
    pub(super) tls_handshaking: Nanos,
    /// The peer's address.
    pub(super) remote: SocketAddr,
    /// Version and cipher, with TLS.
    pub(super) tls: Option<TlsFacts>,
}

/// Why a connection or an exchange failed: the kind for records, and the kind for scripts.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) kind: ErrorKind,
    pub(super) http: HttpFault,
    /// True if this machine, not the peer, ran out of a resource.
    pub(super) is_local: bool,
}

impl Fault {
    pub(super) fn new(kind: ErrorKind, http: HttpFaultKind, detail: impl Into<String>) -> Fault {
        Fault { kind, http: HttpFault { kind: http, detail: detail.into() }, is_local: false }
    }
}

impl From<TransportError> for Fault {
    fn from(TransportError { kind, detail, cause }: TransportError) -> Fault {
        let http = match (cause, kind) {
            (Cause::Refused, _) => HttpFaultKind::Refused,
            (Cause::Reset, _) => HttpFaultKind::Reset,
            (Cause::BrokenPipe, _) => HttpFaultKind::BrokenPipe,
            (Cause::NotTls, _) => HttpFaultKind::NotTls,
            (Cause::UnknownAuthority, _) => HttpFaultKind::UnknownAuthority,
            (Cause::WrongHost, _) => HttpFaultKind::WrongHost,
            (_, ErrorKind::Connect) => HttpFaultKind::Dial,
            (_, ErrorKind::Tls) => HttpFaultKind::Tls,
            (_, ErrorKind::Timeout) => HttpFaultKind::Timeout,
            _ => HttpFaultKind::Other,
        };
        Fault { is_local: cause == Cause::Local, ..Fault::new(kind, http, detail) }
    }
}

impl From<Violation> for Fault {
    fn from(violation: Violation) -> Fault {
        Fault::new(ErrorKind::Protocol, HttpFaultKind::Other, violation.to_string())
    }
}

/// A request that waits to be sent or for its response.
pub(super) struct PendingRequest {
    pub(super) id: OpId,
    pub(super) request: Rc<HttpRequest>,
    /// How long it may take.
    pub(super) timeout: Nanos,
    /// When it was due, for the record.
    scheduled: Instant,
    /// When the script requested it, or when the rate limit released it.
    pub(super) requested: Instant,
    /// When it was handed over to the socket.
    sent: Option<Instant>,
    /// The subject under which it was counted as sent; none before that, or if exchanges are not recorded.
    pub(super) counted: Option<SubjectIndex>,
    written: Option<Instant>,
    first_byte: Option<Instant>,
    /// The response, as far as it was received.
    reply: Option<HttpReply>,
    /// Holds its body.
    memory: Rc<HeldMemory>,
    /// How the connection was made, if it was made for this request.
    made: Option<ConnectionFacts>,
}

/// HTTP/1.1 on one connection, one request after the other.
#[derive(Default)]
pub(super) struct Http {
    reader: ResponseReader,
    /// The last head that `reader` has read, if it is cached.
    last: Option<Rc<HttpHead>>,
    pub(super) pending: Option<Box<PendingRequest>>,
}

/// How far a response was received.
pub(super) enum ResponseProgress {
    /// More must come.
    Partial,
    /// It is complete. `reusable` is true if the connection can carry another.
    Whole { reusable: bool },
}

impl PendingRequest {
    /// A request whose time-out is at most `longest`.
    pub(super) fn new(
        id: OpId,
        request: Rc<HttpRequest>,
        memory: Rc<HeldMemory>,
        longest: Nanos,
        scheduled: Instant,
        requested: Instant,
    ) -> PendingRequest {
        let timeout = request.timeout.min(longest);
        let (sent, counted, written, first_byte, reply, made) = (None, None, None, None, None, None);
        PendingRequest {
            id,
            request,
            timeout,
            scheduled,
            requested,
            sent,
            counted,
            written,
            first_byte,
            reply,
            memory,
            made,
        }
    }

    /// Moves all instants by `by` nanoseconds.
    pub(super) fn shift(&mut self, by: i64) {
        let passed = self.sent.iter_mut().chain(&mut self.written).chain(&mut self.first_byte);
        for instant in passed.chain([&mut self.scheduled, &mut self.requested]) {
            *instant = instant.shifted(by);
        }
    }

    /// Its deadline.
    pub(super) fn deadline(&self) -> Instant {
        self.requested.after(self.timeout)
    }

    /// True if it may be retried when a reused connection ends before the response: the server may have closed the
    /// connection before the request arrived, and the method is idempotent (RFC 9110, section 9.2.2), or a header says
    /// that the request is.
    pub(super) fn may_be_repeated(&self) -> bool {
        let is_key = |(name, _): (&str, &str)| IDEMPOTENCY_KEYS.iter().any(|key| name.eq_ignore_ascii_case(key));
        let harmless = matches!(&*self.request.method, "GET" | "HEAD" | "OPTIONS" | "TRACE");
        self.made.is_none() && self.first_byte.is_none() && (harmless || self.request.headers().any(is_key))
    }

    /// The same request, to be sent once more.
    pub(super) fn again(self: Box<Self>) -> Box<PendingRequest> {
        Box::new(PendingRequest { sent: None, counted: None, written: None, ..*self })
    }

    /// The result for the script: the response, or why there is none.
    pub(super) fn into_response(self, done: Instant, fault: Option<HttpFault>, on: &ConnectionFacts) -> HttpResponse {
        let timings = self.timings(done);
        let silence = || HttpFault { kind: HttpFaultKind::Other, detail: "nothing was answered".to_owned() };
        let outcome = fault.map_or_else(|| self.reply.ok_or_else(silence), Err);
        HttpResponse { outcome, remote: Some(on.remote), tls: on.tls, timings, done }
    }

    /// The result for the script if no connection was made.
    pub(super) fn unsent(self, now: Instant, fault: HttpFault) -> HttpResponse {
        let timings = HttpTimings { blocked: now.since(self.requested), ..HttpTimings::default() };
        HttpResponse { outcome: Err(fault), remote: None, tls: None, timings, done: now }
    }

    fn timings(&self, done: Instant) -> HttpTimings {
        let sent = self.sent.unwrap_or(done);
        let written = self.written.unwrap_or(done);
        let made = self.made.as_ref();
        HttpTimings {
            blocked: sent.since(self.requested),
            looking_up: made.map_or(Nanos(0), |made| made.looked_up),
            connecting: made.map_or(Nanos(0), |made| made.connecting),
            tls_handshaking: made.map_or(Nanos(0), |made| made.tls_handshaking),
            sending: written.since(sent),
            waiting: self.first_byte.unwrap_or(done).since(written),
            receiving: self.first_byte.map_or(Nanos(0), |first| done.since(first)),
        }
    }

    fn status(&self) -> u16 {
        self.reply.as_ref().map_or(0, HttpReply::status)
    }

    /// Ok if the script expects the status of the response.
    pub(super) fn outcome(&self) -> Outcome {
        match &self.request.expected {
            Some(expected) if !expected.contain(self.status()) => Outcome::Failed(ErrorKind::Status),
            _ => Outcome::Ok,
        }
    }

    /// Why the response counts as failed, with the beginning of its body, which often says what was wrong.
    pub(super) fn refusal(&self) -> String {
        let text = format!("expected a status that the script takes for a success, found {}", self.status());
        let readable = |reply: &&HttpReply| !reply.body.is_empty() && reply.header("Content-Encoding").is_none();
        match self.reply.as_ref().filter(readable) {
            Some(reply) => format!("{text} with `{}`", excerpt(&reply.body)),
            None => text,
        }
    }

    /// The exchange to record.
    pub(super) fn record(&self, done: Instant, outcome: Outcome, (bytes_out, bytes_in): (u64, u64)) -> Exchange {
        let sent = self.sent.unwrap_or(self.requested);
        let done = if outcome == Outcome::Failed(ErrorKind::Timeout) { done.min(self.deadline()) } else { done };
        let (scheduled, first_byte) = (self.scheduled, self.first_byte);
        Exchange { scheduled, sent, first_byte, done, bytes_out, bytes_in, outcome }
    }
}

impl Http {
    /// Writes a request, which departs later. `made` has the facts of the connection if this is its first request.
    pub(super) fn send(
        &mut self,
        mut pending: Box<PendingRequest>,
        made: Option<ConnectionFacts>,
        close: bool,
        out: &mut Vec<u8>,
    ) {
        pending.made = made;
        write(&pending.request, close, out);
        self.reader.expect(pending.request.method == "HEAD");
        self.pending = Some(pending);
    }

    /// Notes that the written request is sent now.
    pub(super) fn departs(&mut self, now: Instant) {
        if let Some(pending) = &mut self.pending {
            pending.sent = Some(now);
        }
    }

    /// True if a request is written and has not departed.
    pub(super) fn is_departing(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.sent.is_none())
    }

    /// When all of the request was sent, if it was.
    pub(super) fn departed(&self) -> Option<Instant> {
        self.pending.as_ref()?.written
    }

    /// Notes that all of the request was sent.
    pub(super) fn is_written(&mut self, clock: &Clock) {
        if let Some(pending) = &mut self.pending {
            pending.written.get_or_insert_with(|| clock.now());
        }
    }

    /// Takes bytes that were received. A body of more than `most` bytes that is to be kept is refused.
    pub(super) fn receive(&mut self, input: &[u8], most: usize, now: Instant) -> Result<ResponseProgress, Violation> {
        let Some(pending) = &mut self.pending else {
            return Err(Violation::new(format!("expected silence between responses, found {} bytes", input.len())));
        };
        pending.first_byte.get_or_insert(now);
        let keep = pending.request.body_wanted == BodyWanted::Kept;
        let PendingRequest { reply, memory, .. } = &mut **pending;
        let mut kept = ResponseSink { reply, last: &mut self.last, memory, keep, most };
        let progress = self.reader.read(input, &mut kept)?;
        if pending.reply.as_ref().is_some_and(|reply| reply.body.len() > most) {
            return Err(Violation::new(format!("the body is larger than {most} bytes, which a user may hold")));
        }
        if keep && pending.memory.is_exceeded() {
            let most = pending.memory.most();
            return Err(Violation::new(format!(
                "the bodies that the user holds are larger than {most} bytes together"
            )));
        }
        Ok(match progress {
            Progress::Partial => ResponseProgress::Partial,
            Progress::Complete { keep_alive, unread, .. } => {
                ResponseProgress::Whole { reusable: keep_alive && unread == 0 }
            }
        })
    }

    /// The peer has ended its side. Returns true if that completes the response.
    pub(super) fn end_of_input(&self) -> bool {
        self.pending.is_some() && self.reader.end_of_input().is_some()
    }
}

/// Keeps a response.
struct ResponseSink<'a> {
    reply: &'a mut Option<HttpReply>,
    /// See [`Http`].
    last: &'a mut Option<Rc<HttpHead>>,
    memory: &'a Rc<HeldMemory>,
    keep: bool,
    most: usize,
}

impl ResponseSink<'_> {
    fn begin(&self, head: Rc<HttpHead>) -> HttpReply {
        HttpReply { head, body: HeldBytes::new(Vec::new(), self.memory) }
    }
}

/// The head of an interim response is replaced by that of the final one, which follows it.
impl Sink for ResponseSink<'_> {
    fn same_head(&mut self, _: u16) -> bool {
        *self.reply = self.last.clone().map(|head| self.begin(head));
        self.reply.is_some()
    }

    fn head(&mut self, status: u16, headers: &[httparse::Header<'_>], bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let head = Rc::new(HttpHead::new(status, text, headers.iter().map(|header| header.name)));
        *self.last = (bytes.len() <= LARGEST_REMEMBERED).then(|| Rc::clone(&head));
        *self.reply = Some(self.begin(head));
    }

    fn body(&mut self, bytes: &[u8]) {
        // One byte above the limit is kept, to show that the body was too large.
        if let Some(reply) = self.reply.as_mut().filter(|reply| self.keep && reply.body.len() <= self.most) {
            reply.body.extend(bytes);
        }
    }
}

fn write(request: &HttpRequest, close: bool, out: &mut Vec<u8>) {
    let mut push = |pieces: &[&str]| pieces.iter().for_each(|piece| out.extend_from_slice(piece.as_bytes()));
    push(&[&request.method, " ", request.url.path()]);
    if let Some(query) = request.url.query() {
        push(&["?", query]);
    }
    push(&[" HTTP/1.1\r\n", &request.headers, if close { "Connection: close\r\n\r\n" } else { "\r\n" }]);
    out.extend_from_slice(&request.body);
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_k6::operations::Statuses;
    use plimsoll_web::Url;

    fn request(method: &'static str, body_wanted: BodyWanted) -> Rc<HttpRequest> {
        Rc::new(HttpRequest {
            method: method.into(),
            url: Rc::new(Url::parse("http://here:81/a?b=c#d").expect("a URL")),
            headers: "Host: here:81\r\nContent-Length: 2\r\n".to_owned(),
            body: Rc::new(b"hi".to_vec().into()),
            timeout: Nanos(1000),
            body_wanted,
            name: "a".into(),
            expected: Some(Rc::new(Statuses::default())),
            follows: false,
        })
    }

    fn connected() -> ConnectionFacts {
        let remote = ([127, 0, 0, 1], 81).into();
        let (looked_up, connecting, tls_handshaking) = (Nanos(1), Nanos(2), Nanos(3));
        ConnectionFacts { looked_up, connecting, tls_handshaking, remote, tls: None }
    }

    /// A request that was sent at 10, and fully written at 12.
    fn pending(request: Rc<HttpRequest>, longest: Nanos) -> PendingRequest {
        PendingRequest::new(7, request, HeldMemory::beside(4), longest, Instant(1), Instant(4))
    }

    fn sent(method: &'static str, body_wanted: BodyWanted, made: Option<ConnectionFacts>) -> (Http, Vec<u8>) {
        let (mut http, mut out) = (Http::default(), Vec::new());
        let pending = pending(request(method, body_wanted), Nanos(u64::MAX));
        http.send(Box::new(pending), made, false, &mut out);
        http.departs(Instant(10));
        http.pending.as_mut().expect("it is under way").written = Some(Instant(12));
        (http, out)
    }

    const ANSWER: &[u8] = b"HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 404 Gone fishing\r\nX: 1\r\nx: 2\r\nContent-Length: 5\r\n\r\nworld";

    #[test]
    fn a_request_is_written_as_it_stands() {
        let (_, out) = sent("PUT", BodyWanted::Kept, None);
        let expected = "PUT /a?b=c HTTP/1.1\r\nHost: here:81\r\nContent-Length: 2\r\n\r\nhi";
        assert_eq!(String::from_utf8(out), Ok(expected.to_owned()));
        let mut closing = Vec::new();
        write(&request("GET", BodyWanted::Kept), true, &mut closing);
        assert!(String::from_utf8_lossy(&closing).contains("\r\nConnection: close\r\n\r\nhi"));
    }

    #[test]
    fn an_answer_in_pieces_is_kept_with_its_times() {
        for cut in 0..ANSWER.len() {
            let (mut http, _) = sent("GET", BodyWanted::Kept, Some(connected()));
            for (piece, at) in [(&ANSWER[..cut], 15), (&ANSWER[cut..], 20)] {
                if !piece.is_empty() {
                    http.receive(piece, 5, Instant(at)).expect("it is in order");
                }
            }
            let pending = http.pending.take().expect("it is under way");
            assert_eq!(pending.outcome(), Outcome::Failed(ErrorKind::Status));
            assert!(pending.refusal().ends_with("found 404 with `world`"), "{}", pending.refusal());
            let response = pending.into_response(Instant(21), None, &connected());
            let reply = response.outcome.expect("an answer");
            assert_eq!((reply.status(), reply.reason(), &*reply.body), (404, "Gone fishing", &b"world"[..]));
            let names: Vec<&str> = reply.headers().map(|(name, _)| name).collect();
            assert_eq!(names, ["X", "x", "Content-Length"]);
            let times = response.timings;
            let first = if cut == 0 { 20 } else { 15 };
            assert_eq!((times.blocked, times.sending, times.connecting), (Nanos(6), Nanos(2), Nanos(2)));
            assert_eq!((times.waiting, times.receiving), (Nanos(first - 12), Nanos(21 - first)));
        }
    }

    #[test]
    fn a_head_that_comes_again_is_kept_once() {
        let (mut http, mut out) = (Http::default(), Vec::new());
        let mut heads = Vec::new();
        for (answer, status) in [("200", 200), ("200", 200), ("204", 204)] {
            let pending = pending(request("GET", BodyWanted::Kept), Nanos(u64::MAX));
            http.send(Box::new(pending), None, false, &mut out);
            let answer = format!("HTTP/1.1 {answer} OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n");
            http.receive(answer.as_bytes(), 5, Instant(20)).expect("it is in order");
            let response = http.pending.take().expect("it is under way").into_response(Instant(21), None, &connected());
            let head = response.outcome.expect("an answer").head;
            assert_eq!((head.status, head.is_special), (status, true));
            heads.push(head);
        }
        assert!(Rc::ptr_eq(&heads[0], &heads[1]) && !Rc::ptr_eq(&heads[1], &heads[2]));
    }

    #[test]
    fn a_request_is_timed_from_when_it_goes() {
        let (mut http, _) = sent("GET", BodyWanted::Kept, None);
        http.departs(Instant(11));
        let timings = http.pending.expect("it is under way").timings(Instant(20));
        assert_eq!((timings.blocked, timings.sending), (Nanos(7), Nanos(1)));
    }

    #[test]
    fn a_connection_is_kept_where_both_sides_want_it() {
        let whole = |answer: &[u8]| {
            let (mut http, _) = sent("GET", BodyWanted::Discarded, None);
            matches!(http.receive(answer, 5, Instant(20)), Ok(ResponseProgress::Whole { reusable: true }))
        };
        assert!(whole(ANSWER));
        assert!(!whole(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
        assert!(!whole(&[ANSWER, b"!"].concat()), "something came that nobody pending for");
    }

    #[test]
    fn a_body_is_left_aside_or_bounded() {
        let (mut http, _) = sent("GET", BodyWanted::Discarded, None);
        assert!(http.receive(ANSWER, 4, Instant(20)).is_ok());
        assert!(
            http.pending.as_ref().and_then(|pending| pending.reply.as_ref()).is_some_and(|reply| reply.body.is_empty())
        );
        let (mut http, _) = sent("GET", BodyWanted::Kept, None);
        let refused = http.receive(ANSWER, 4, Instant(20)).err().expect("it is too large");
        assert!(refused.to_string().contains("larger than 4 bytes"), "{refused}");
        let (mut http, _) = sent("GET", BodyWanted::Kept, None);
        let memory = Rc::clone(&http.pending.as_ref().expect("it was written").memory);
        let _others = HeldBytes::new(vec![0; 12], &memory);
        let refused = http.receive(ANSWER, 5, Instant(20)).err().expect("they are too large together");
        assert!(refused.to_string().contains("larger than 16 bytes together"), "{refused}");
    }

    #[test]
    fn only_what_does_no_harm_twice_is_repeated_and_only_on_a_connection_that_was_kept() {
        let repeated = |method: &'static str, made| {
            let (http, _) = sent(method, BodyWanted::Kept, made);
            http.pending.is_some_and(|pending| pending.may_be_repeated())
        };
        let with_header = |line: &str| {
            let mut request = Rc::into_inner(request("POST", BodyWanted::Kept)).expect("nobody else has it");
            request.headers.push_str(line);
            pending(Rc::new(request), Nanos(1)).may_be_repeated()
        };
        assert!(with_header("idempotency-key: 5\r\n") && !with_header("Key: Idempotency-Key\r\n"));
        assert!(repeated("GET", None));
        assert!(!repeated("GET", Some(connected())));
        assert!(!repeated("POST", None));
        let (mut http, _) = sent("GET", BodyWanted::Kept, None);
        http.receive(b"H", 5, Instant(20)).expect("it is in order");
        assert!(!http.pending.expect("it is under way").may_be_repeated());
    }
}
