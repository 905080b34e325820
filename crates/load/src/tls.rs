//! TLS for the generator: certificates are checked unless the study says otherwise.

use plimsoll_model::workload::{Target, Tls};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;

/// How connections are encrypted, and the name that the server's certificate must carry.
pub(crate) type Encryption = (Arc<ClientConfig>, ServerName<'static>);

/// The configuration and the name to check for `target`, with `protocols` offered by ALPN.
///
/// # Errors
/// The authorities cannot be read, or the name cannot stand in a certificate.
pub(crate) fn configure(target: &Target, tls: &Tls, protocols: &[&[u8]]) -> Result<Encryption, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("failed to set up TLS: {error}"))?;
    let mut config = if tls.insecure {
        let verifier = Arc::new(AcceptAnything(provider));
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
    } else {
        builder.with_root_certificates(authorities(tls.ca.as_deref())?).with_no_client_auth()
    };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let name = tls.server_name.clone().unwrap_or_else(|| target.host.clone());
    let server_name = ServerName::try_from(name.clone())
        .map_err(|_| format!("expected a host name or address to check the certificate against, found `{name}`"))?;
    Ok((Arc::new(config), server_name))
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
