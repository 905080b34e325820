//! The client's side of WebSocket.

use super::{chosen, pieces, text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plimsoll_protocols::websocket::{Event, Handshake, Socket};
use sha1::{Digest, Sha1};

/// Reads the input as the response to a handshake. `ACCEPT` in it stands for the key's hash.
pub(super) fn handshake(input: &[u8]) {
    let (way, bytes) = chosen(input);
    let (mut socket, accept) = opening();
    let response = text(bytes).replace("ACCEPT", &accept).into_bytes();
    let mut events = Vec::new();
    for piece in pieces(way, &response) {
        socket.receive(piece, &mut Vec::new(), &mut events);
    }
    socket.end_of_input(&mut events);
    check_order(&events);
}

/// Reads the input as the frames of a server, on a socket that compresses or does not.
pub(super) fn frames(input: &[u8]) {
    let (way, bytes) = chosen(input);
    let (mut socket, accept) = opening();
    let deflate = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
    let extension = if way & 4 == 0 { String::new() } else { format!("Sec-WebSocket-Extensions: {deflate}\r\n") };
    let response = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{extension}\r\n"
    );
    let mut events = Vec::new();
    socket.receive(response.as_bytes(), &mut Vec::new(), &mut events);
    assert!(matches!(events[..], [Event::Opened(_)]), "expected an open socket, found {events:?}");
    for piece in pieces(way, bytes) {
        let mut out = Vec::new();
        socket.receive(piece, &mut out, &mut events);
        let most = 256 + 8 * piece.len();
        assert!(out.len() <= most, "expected at most {most} bytes for {} bytes, found {}", piece.len(), out.len());
    }
    socket.end_of_input(&mut events);
    assert!(socket.is_closed(), "expected the end of the input to close the socket");
    check_order(&events);
}

/// A socket whose handshake is sent, and the hash by which a server accepts it.
fn opening() -> (Socket, String) {
    let subprotocols = ["chat".to_owned()];
    let handshake = Handshake { target: "/", headers: &[], subprotocols: &subprotocols, deflate: true };
    let mut request = Vec::new();
    let socket = Socket::open(&handshake, 7, &mut request);
    let request = String::from_utf8(request).expect("a request is text");
    let key = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).expect("a key");
    let hash = Sha1::new().chain_update(key).chain_update("258EAFA5-E914-47DA-95CA-C5AB0DC85B11").finalize();
    (socket, STANDARD.encode(hash))
}

/// A socket opens before anything else happens on it, and nothing follows its end.
fn check_order(events: &[Event]) {
    let is_end = |event: &Event| matches!(event, Event::Refused(..) | Event::Closed { .. } | Event::Broken(_));
    let is_start = |event: &Event| matches!(event, Event::Opened(_) | Event::Refused(..));
    assert!(events.first().is_some_and(is_start), "expected a socket that opens or is refused, found {events:?}");
    let ends = events.iter().filter(|event| is_end(event)).count();
    assert!(ends == 1 && events.last().is_some_and(is_end), "expected one end, found {events:?}");
}
