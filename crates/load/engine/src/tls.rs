//! TLS for the generator: certificates are checked unless the study says otherwise.

use plimsoll_model::workload::{Target, Tls};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    ALL_VERSIONS, CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};
use std::path::Path;
use std::sync::Arc;

/// How connections are encrypted, and the name that the server's certificate must carry.
pub type Encryption = (Arc<ClientConfig>, ServerName<'static>);

/// The authorities that may vouch for a server.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'a> {
    /// Any certificate is accepted.
    Anyone,
    /// The authorities of the system.
    System,
    /// The authorities in a PEM file.
    File(&'a Path),
    /// The authorities in these texts in PEM.
    Texts(&'a [String]),
}

/// The configuration and the name to check for `target`, with `protocols` offered by ALPN.
///
/// # Errors
/// The authorities cannot be read, or the name is not valid in a certificate.
pub fn configure(target: &Target, tls: &Tls, protocols: &[&[u8]]) -> Result<Encryption, String> {
    let trust = match &tls.ca {
        _ if tls.insecure => Trust::Anyone,
        Some(file) => Trust::File(file),
        None => Trust::System,
    };
    let config = client(trust, None, protocols, ALL_VERSIONS)?;
    let name = tls.server_name.clone().unwrap_or_else(|| target.host.clone());
    let server_name = ServerName::try_from(name.clone())
        .map_err(|_| format!("expected a host name or address to check the certificate against, found `{name}`"))?;
    Ok((Arc::new(config), server_name))
}

/// The configuration of a client that trusts `trust`, with `identity` (a certificate and its key, in PEM) if it has
/// one. It offers `protocols` by ALPN, and `versions` of TLS.
///
/// # Errors
/// Authorities or identity cannot be read.
pub fn client(
    trust: Trust<'_>,
    identity: Option<(&str, &str)>,
    protocols: &[&[u8]],
    versions: &[&'static SupportedProtocolVersion],
) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .map_err(|error| format!("failed to set up TLS: {error}"))?;
    let builder = match trust {
        Trust::Anyone => builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAnything(provider))),
        Trust::System => builder.with_root_certificates(of_system()?),
        Trust::File(file) => {
            let named = Named::new(in_file(file)?, provider)
                .map_err(|error| format!("failed to use the authorities in {}: {error}", file.display()))?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(named))
        }
        Trust::Texts(texts) => {
            let named = Named::new(in_texts(texts)?, provider)
                .map_err(|error| format!("failed to use the authorities: {error}"))?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(named))
        }
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
fn in_texts(texts: &[String]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = texts.iter().flat_map(|text| CertificateDer::pem_slice_iter(text.as_bytes()));
    certificates.collect::<Result<_, _>>().map_err(|error| format!("failed to read an authority: {error}"))
}

/// The authorities in a file in PEM.
fn in_file(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = file.display();
    let certificates: Vec<_> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<_, _>>)
        .map_err(|error| format!("failed to read the authorities in {shown}: {error}"))?;
    if certificates.is_empty() {
        Err(format!("expected PEM certificates in {shown}, found none"))
    } else {
        Ok(certificates)
    }
}

/// The system's authorities.
fn of_system() -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match store.is_empty() {
        false => Ok(store),
        true => Err("found no certificate authorities on this system; name a PEM file as `tls.ca`".to_owned()),
    }
}

/// Verifies against named authorities, each of which may also be the server's own certificate. A certificate for tests
/// is mostly self-signed and marked as an authority; the usual rules refuse such a certificate for a server.
#[derive(Debug)]
struct Named {
    certificates: Vec<CertificateDer<'static>>,
    usual: Arc<WebPkiServerVerifier>,
}

impl Named {
    fn new(certificates: Vec<CertificateDer<'static>>, provider: Arc<CryptoProvider>) -> Result<Named, String> {
        let mut store = RootCertStore::empty();
        for certificate in &certificates {
            store.add(certificate.clone()).map_err(|error| error.to_string())?;
        }
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider).build();
        Ok(Named { certificates, usual: usual.map_err(|error| error.to_string())? })
    }
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The validity period of the certificate was checked by then.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(why)))
                if is_of_an_authority(&why) && self.certificates.iter().any(|named| **named == **end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            usual => usual,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// True if a certificate was refused because it is that of an authority. The library has no name for this in its types.
pub fn is_of_an_authority(why: &OtherError) -> bool {
    why.to_string() == "CaUsedAsEndEntity"
}

/// Verifier for `tls.insecure`: accepts any certificate, but the handshake must still be valid.
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
