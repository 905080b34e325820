//! TLS for the generator: certificates are checked unless the study says otherwise.

use plimsoll_model::workload::{Target, Tls};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;

/// How connections are encrypted, and the name that the server's certificate must carry.
pub(crate) type Encryption = (Arc<ClientConfig>, ServerName<'static>);

/// Who may vouch for a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trust<'a> {
    /// Nobody needs to.
    Anyone,
    /// The authorities of the system.
    System,
    /// Those of a PEM file.
    File(&'a Path),
    /// Those of these texts in PEM.
    Texts(&'a [String]),
}

/// The configuration and the name to check for `target`, with `protocols` offered by ALPN.
///
/// # Errors
/// The authorities cannot be read, or the name cannot stand in a certificate.
pub(crate) fn configure(target: &Target, tls: &Tls, protocols: &[&[u8]]) -> Result<Encryption, String> {
    let trust = match &tls.ca {
        _ if tls.insecure => Trust::Anyone,
        Some(file) => Trust::File(file),
        None => Trust::System,
    };
    let config = client(trust, None, protocols)?;
    let name = tls.server_name.clone().unwrap_or_else(|| target.host.clone());
    let server_name = ServerName::try_from(name.clone())
        .map_err(|_| format!("expected a host name or address to check the certificate against, found `{name}`"))?;
    Ok((Arc::new(config), server_name))
}

/// A client of servers whom `trust` vouches for, with `identity` (a certificate and its key, in PEM) where it has one.
///
/// # Errors
/// Authorities or identity cannot be read.
pub(crate) fn client(
    trust: Trust<'_>,
    identity: Option<(&str, &str)>,
    protocols: &[&[u8]],
) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("failed to set up TLS: {error}"))?;
    let builder = match trust {
        Trust::Anyone => builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAnything(provider))),
        Trust::System => builder.with_root_certificates(authorities(None)?),
        Trust::File(file) => builder.with_root_certificates(authorities(Some(file))?),
        Trust::Texts(texts) => builder.with_root_certificates(authorities_in(texts)?),
    };
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some((certificates, key)) => {
            let unread = |error: pem::Error| format!("failed to read the client's certificate or key: {error}");
            let certificates = CertificateDer::pem_slice_iter(certificates.as_bytes());
            let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(unread)?;
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(unread)?;
            let config = builder.with_client_auth_cert(certificates, key);
            config.map_err(|error| format!("failed to use the client's certificate: {error}"))?
        }
    };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// The authorities of texts in PEM.
fn authorities_in(texts: &[String]) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    for certificate in texts.iter().flat_map(|text| CertificateDer::pem_slice_iter(text.as_bytes())) {
        let certificate = certificate.map_err(|error| format!("failed to read an authority: {error}"))?;
        store.add(certificate).map_err(|error| format!("failed to use an authority: {error}"))?;
    }
    Ok(store)
}

/// The authorities in `file`, or the system's.
fn authorities(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    let Some(file) = file else {
        let found = rustls_native_certs::load_native_certs();
        store.add_parsable_certificates(found.certs);
        return match store.is_empty() {
            false => Ok(store),
            true => Err("found no certificate authorities on this system; name a PEM file as `tls.ca`".to_owned()),
        };
    };
    let shown = file.display();
    let certificates = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("failed to read the authorities in {shown}: {error}"))?;
    if certificates.is_empty() {
        return Err(format!("expected PEM certificates in {shown}, found none"));
    }
    for certificate in certificates {
        store.add(certificate).map_err(|error| format!("failed to use an authority in {shown}: {error}"))?;
    }
    Ok(store)
}

/// `tls.insecure`: any certificate will do, but the handshake must still be in order.
#[derive(Debug)]
struct AcceptAnything(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnything {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
