//! Creates certificates for tests: an authority, and a server certificate that it signs.

use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// The default names of a server's certificate.
pub(crate) const LOOPBACK_NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// A certificate for `names` with its key, signed by an authority that nobody else knows, and the authority's certificate.
fn signed(names: &[String]) -> io::Result<(Certificate, KeyPair, String)> {
    let mut authority = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().map_err(io::Error::other)?;
    let issuer = CertifiedIssuer::self_signed(authority, authority_key).map_err(io::Error::other)?;
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let leaf = CertificateParams::new(names).map_err(io::Error::other)?;
    let leaf = leaf.signed_by(&key, &issuer).map_err(io::Error::other)?;
    Ok((leaf, key, issuer.pem()))
}

/// Files for a server that is another program.
#[derive(Debug)]
pub struct PemFiles {
    /// The authority's certificate.
    pub ca: PathBuf,
    /// The server's certificate, for `localhost` and `127.0.0.1`.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl PemFiles {
    /// Writes new ones into a folder.
    ///
    /// # Errors
    /// The disk.
    pub fn write(folder: &Path) -> io::Result<PemFiles> {
        let (leaf, key, ca) = signed(&LOOPBACK_NAMES.map(str::to_owned))?;
        let write = |name: &str, text: &str| {
            let file = folder.join(name);
            fs::write(&file, text).map(|()| file)
        };
        Ok(PemFiles {
            ca: write("ca.pem", &ca)?,
            certificate: write("server.pem", &leaf.pem())?,
            key: write("server.key", &key.serialize_pem())?,
        })
    }
}

/// The identity of a TLS server.
#[derive(Clone)]
pub(crate) struct Identity {
    /// Accepts connections with the certificate.
    pub(crate) acceptor: TlsAcceptor,
    /// The authority's certificate.
    pub(crate) ca_pem: String,
}

impl Identity {
    /// A certificate for `names`, signed by an authority that nobody else knows; `protocols` are
    /// offered by ALPN.
    pub(crate) fn for_names(names: &[String], protocols: &[&[u8]]) -> io::Result<Identity> {
        let (leaf, key, ca_pem) = signed(names)?;
        Identity::new(leaf.der(), &key, protocols, ca_pem)
    }

    /// A self-signed certificate for `names` that claims to be an authority, like those of `openssl req -x509`.
    pub(crate) fn signed_by_itself(names: &[String], protocols: &[&[u8]]) -> io::Result<Identity> {
        let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.self_signed(&key).map_err(io::Error::other)?;
        Identity::new(certificate.der(), &key, protocols, certificate.pem())
    }

    fn new(
        shown: &CertificateDer<'static>,
        key: &KeyPair,
        protocols: &[&[u8]],
        ca_pem: String,
    ) -> io::Result<Identity> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![shown.clone()], key)
            .map_err(io::Error::other)?;
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Identity { acceptor: TlsAcceptor::from(Arc::new(config)), ca_pem })
    }
}
