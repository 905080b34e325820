//! The server that requests go to.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The server that requests go to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Host name or address, without port.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Encryption, if any.
    pub tls: Option<Tls>,
}

/// How the certificate of a TLS server is checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tls {
    /// PEM file with the authorities to trust; the system's when there is none.
    pub ca: Option<PathBuf>,
    /// Name that the certificate must carry; the host's when there is none.
    pub server_name: Option<String>,
    /// Accept any certificate. Off unless the study asks for it.
    pub insecure: bool,
}
