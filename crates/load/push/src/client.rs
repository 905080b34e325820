//! Sends messages to a receiver, over HTTP or gRPC.

use crate::calls::Calls;
use plimsoll_protocols::grpc::caller::CallError;
use plimsoll_web::encodings;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// The most bytes of an answer that are read.
const LONGEST_ANSWER: u64 = 64 * 1024;

/// The most characters of an answer that are told.
const LONGEST_REASON: usize = 200;

/// The least bytes of what counts as a secret: a `1` stands in many messages.
const SHORTEST_SECRET: usize = 4;

/// Where messages go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Receiver {
    /// Without a password.
    pub(crate) url: String,
    pub(crate) over: Over,
    /// Headers that the user has named. Their values may be secrets.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) tls: Tls,
}

/// How messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// As the body of a POST.
    Http,
    /// As the message of a call of this path. The URL has host and port alone.
    Grpc(&'static str),
}

/// How a receiver is trusted, and how it knows the sender.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tls {
    /// True if any certificate is accepted.
    pub(crate) insecure: bool,
    /// A file of authorities in PEM, instead of those of the system.
    pub(crate) authorities: Option<PathBuf>,
    /// The files of the sender's own certificate and its key, in PEM.
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// Why a message was not received.
#[derive(Debug)]
pub(crate) struct Unsent {
    pub(crate) why: String,
    /// True if the receiver has said so itself.
    pub(crate) is_answer: bool,
}

/// A client of one receiver.
pub(crate) struct Client {
    way: Way,
    receiver: Receiver,
}

enum Way {
    /// It keeps its connection.
    Http(Agent),
    Grpc(Calls),
}

impl Client {
    /// # Errors
    /// A file in PEM cannot be read.
    pub(crate) fn new(receiver: Receiver) -> Result<Client, String> {
        let way = match receiver.over {
            Over::Http => Way::Http(agent(&receiver)?),
            Over::Grpc(path) => Way::Grpc(Calls::new(&receiver, path)?),
        };
        Ok(Client { way, receiver })
    }

    /// Sends a message, over HTTP with these headers, and returns the answer.
    ///
    /// # Errors
    /// The receiver is away, does not answer within this time, or answers with another status than 2xx or OK.
    pub(crate) fn send(&self, headers: &[(&str, &str)], body: &[u8], within: Duration) -> Result<Vec<u8>, Unsent> {
        match &self.way {
            Way::Http(agent) => self.post(agent, headers, body, within),
            Way::Grpc(calls) => calls.call(body, within).map_err(|error| {
                let is_answer = matches!(error, CallError::Status(..));
                Unsent { is_answer, ..self.unsent(&error) }
            }),
        }
    }

    fn post(&self, agent: &Agent, headers: &[(&str, &str)], body: &[u8], within: Duration) -> Result<Vec<u8>, Unsent> {
        let own = self.receiver.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let request = agent.post(&self.receiver.url).config().timeout_global(Some(within)).build();
        let request =
            own.chain(headers.iter().copied()).fold(request, |request, (name, value)| request.header(name, value));
        let mut response = request.send(body).map_err(|error| self.unsent(&error))?;
        let status = response.status();
        let answer = response.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec();
        if status.is_success() {
            return answer.map_err(|error| self.unsent(&error));
        }
        let answer = answer.unwrap_or_default();
        let text = String::from_utf8_lossy(&answer);
        let reason: String = text.lines().next().unwrap_or_default().chars().take(LONGEST_REASON).collect();
        let why = format!("status {}{}{reason}", status.as_u16(), if reason.is_empty() { "" } else { ": " });
        Err(Unsent { is_answer: true, ..self.unsent(&why) })
    }

    fn unsent(&self, why: &dyn Display) -> Unsent {
        Unsent { why: self.concealed(why), is_answer: false }
    }

    /// A message without the values of headers, which a receiver may send back.
    fn concealed(&self, message: &dyn Display) -> String {
        let mut message = message.to_string();
        for (_, value) in &self.receiver.headers {
            let secret = value.split_once(' ').map_or(value.as_str(), |(_, credentials)| credentials);
            for text in encodings(secret).iter().filter(|text| text.len() >= SHORTEST_SECRET) {
                message = message.replace(text, "***");
            }
        }
        message
    }
}

fn agent(receiver: &Receiver) -> Result<Agent, String> {
    let tls = if receiver.url.starts_with("https:") { tls(&receiver.tls)? } else { TlsConfig::default() };
    // The user has named this host and no other: neither a redirect nor a proxy of the environment leads elsewhere.
    let config = Agent::config_builder().http_status_as_error(false).max_redirects(0).proxy(None).tls_config(tls);
    Ok(config.user_agent(concat!("plimsoll/", env!("CARGO_PKG_VERSION"))).build().new_agent())
}

fn tls(wanted: &Tls) -> Result<TlsConfig, String> {
    let mut builder = TlsConfig::builder().disable_verification(wanted.insecure);
    if !wanted.insecure {
        builder = builder.root_certs(RootCerts::new_with_certs(&authorities(wanted.authorities.as_deref())?));
    }
    if let (Some(certificate), Some(key)) = (&wanted.certificate, &wanted.key) {
        let key = PrivateKey::from_pem(&read(key)?).map_err(|error| unread(key, &error))?;
        builder = builder.client_cert(Some(ClientCert::new_with_certs(&certificates(certificate)?, key)));
    }
    Ok(builder.build())
}

/// The authorities in a file, or else those of the system.
fn authorities(file: Option<&Path>) -> Result<Vec<Certificate<'static>>, String> {
    match file {
        Some(file) => certificates(file),
        None => {
            let of_system = rustls_native_certs::load_native_certs().certs;
            Ok(of_system.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect())
        }
    }
}

fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>, String> {
    let items = parse_pem(&read(file)?).collect::<Result<Vec<_>, _>>().map_err(|error| unread(file, &error))?;
    let certificates = items.into_iter().filter_map(|item| match item {
        PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<_> = certificates.collect();
    if certificates.is_empty() { Err(unread(file, &"it has no certificate in PEM")) } else { Ok(certificates) }
}

pub(crate) fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| unread(file, &error))
}

fn unread(file: &Path, why: &dyn Display) -> String {
    format!("failed to read {}: {why}", file.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_do_not_show_the_values_of_headers() {
        let headers = [("Authorization", "Basic dXNlcjpwYXNz"), ("Key", "k3y!"), ("Tenant", "1")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let receiver =
            Receiver { url: "http://127.0.0.1:1".to_owned(), over: Over::Http, headers, tls: Tls::default() };
        let client = Client::new(receiver).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(client.concealed(&"1 of dXNlcjpwYXNz, k3y! and k3y%21"), "1 of ***, *** and ***");
    }

    #[test]
    fn a_file_of_certificates_that_cannot_be_read_is_named() {
        for (file, why) in [("/nonexistent.pem", "failed to read /nonexistent.pem"), ("/dev/null", "no certificate")] {
            let wanted = Tls { authorities: Some(file.into()), ..Tls::default() };
            let refused = tls(&wanted).map(|_| ()).expect_err("there is none");
            assert!(refused.contains(why), "{refused}");
        }
    }
}
