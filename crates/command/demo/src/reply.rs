//! Replies of gRPC over h2: headers, messages, trailers with a status.

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Response};

/// Status code of a request that makes no sense.
pub const INVALID_ARGUMENT: u16 = 3;
/// Status code of a method that the server does not have.
pub const UNIMPLEMENTED: u16 = 12;
/// Status code of a request that breaks the protocol.
pub const INTERNAL: u16 = 13;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// A status other than OK.
#[derive(Debug)]
pub struct Status {
    code: u16,
    message: String,
}

impl Status {
    /// A status with a message in plain ASCII.
    #[must_use]
    pub fn new(code: u16, message: impl Into<String>) -> Status {
        Status { code, message: message.into() }
    }

    /// The two headers that carry it.
    fn headers(&self) -> [(HeaderName, HeaderValue); 2] {
        let message = HeaderValue::from_str(&self.message).unwrap_or(HeaderValue::from_static("unprintable"));
        [(GRPC_STATUS, self.code.into()), (GRPC_MESSAGE, message)]
    }
}

/// Reads a request's body to its end.
///
/// # Errors
/// When the stream or its connection breaks.
pub async fn read_to_end(mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut bytes = Vec::new();
    while let Some(part) = body.data().await {
        let part = part?;
        body.flow_control().release_capacity(part.len())?;
        bytes.extend(part);
    }
    Ok(bytes)
}

/// Sends the headers that come before messages, with the call's `metadata`.
///
/// # Errors
/// When the stream has ended.
pub fn begin(respond: &mut SendResponse<Bytes>, metadata: HeaderMap) -> Result<SendStream<Bytes>, h2::Error> {
    let mut response = headers();
    response.headers_mut().extend(metadata);
    respond.send_response(response, false)
}

/// Ends a reply with status OK and the `metadata` of trailers.
///
/// # Errors
/// When the stream has ended.
pub fn succeed(mut stream: SendStream<Bytes>, mut metadata: HeaderMap) -> Result<(), h2::Error> {
    metadata.insert(GRPC_STATUS, HeaderValue::from(0_u16));
    stream.send_trailers(metadata)
}

/// Ends a reply with another status, whatever messages it had.
///
/// # Errors
/// When the stream has ended.
pub fn fail(mut stream: SendStream<Bytes>, status: &Status) -> Result<(), h2::Error> {
    stream.send_trailers(HeaderMap::from_iter(status.headers()))
}

/// Ends a call before any message: headers and trailers in one.
///
/// # Errors
/// When the stream has ended.
pub fn refuse(mut respond: SendResponse<Bytes>, status: &Status) -> Result<(), h2::Error> {
    let mut response = headers();
    response.headers_mut().extend(status.headers());
    respond.send_response(response, true).map(drop)
}

fn headers() -> Response<()> {
    let mut response = Response::new(());
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}
