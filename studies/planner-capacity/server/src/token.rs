//! Tokens and roles: a service logs in with its key, and gets a token that tells its roles for an hour.

use crate::error::RequestError;
use crate::hs256;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use bcrypt::BcryptError;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The life of a token in seconds.
const LIFE: u64 = 3600;

/// The cost of the hash of a key: what a login takes doubles with each.
const COST: u32 = 10;

/// The only service that logs in, which has every role.
const SERVICE: &str = "local";

/// Its key.
const KEY: &str = "abc123";

const ROLES: [Role; 4] = [Role::Publish, Role::Pause, Role::Update, Role::Disable];

/// A role: the right to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Posts plans.
    Publish,
    /// Pauses datasets, and ends their pause.
    Pause,
    /// Updates and clears data products.
    Update,
    /// Disables data products.
    Disable,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Publish => "publish",
            Role::Pause => "pause",
            Role::Update => "update",
            Role::Disable => "disable",
        })
    }
}

/// The content of a token.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Claims {
    /// The service that logged in.
    pub(crate) sub: String,
    /// Its roles.
    roles: Vec<Role>,
    /// When it logged in, in seconds since 1970.
    iat: u64,
    /// When the token ends, in seconds since 1970.
    exp: u64,
}

impl Claims {
    /// Checks that the service may do this.
    ///
    /// # Errors
    /// When it has not the role.
    pub(crate) fn require(&self, role: Role) -> Result<(), RequestError> {
        if self.roles.contains(&role) { Ok(()) } else { Err(RequestError::Forbidden(role)) }
    }
}

/// A login.
#[derive(Deserialize)]
pub(crate) struct Credentials {
    service: String,
    key: String,
}

/// The reply to a login.
#[derive(Serialize)]
pub(crate) struct IssuedToken {
    access_token: String,
    token_type: &'static str,
    /// The life of the token in seconds.
    expires_in: u64,
    service: String,
    roles: Vec<Role>,
}

/// Issues tokens, and knows its own.
pub(crate) struct Tokens {
    key_hash: String,
    signing: EncodingKey,
    verifying: DecodingKey,
}

impl Tokens {
    /// Hashes the key of the service. `secret` signs tokens.
    ///
    /// # Errors
    /// When the system gives no random salt.
    pub(crate) fn new(secret: &[u8]) -> Result<Tokens, BcryptError> {
        let (signing, verifying) = hs256::keys(secret);
        Ok(Tokens { key_hash: bcrypt::hash(KEY, COST)?, signing, verifying })
    }

    /// A token for a service that knows its key.
    ///
    /// # Errors
    /// When the service or its key is not known.
    pub(crate) async fn authenticate(&self, credentials: Credentials) -> Result<IssuedToken, RequestError> {
        let Credentials { service, key } = credentials;
        let hash = self.key_hash.clone();
        // It takes tens of milliseconds of a processor, for which other requests do not wait.
        let verified = tokio::task::spawn_blocking(move || bcrypt::verify(key, &hash)).await;
        let verified = verified.map_err(|error| RequestError::Internal(error.to_string()))?;
        if service != SERVICE || !verified.is_ok_and(|same| same) {
            return Err(RequestError::Unauthorized("the service or its key is not known"));
        }
        let iat = jsonwebtoken::get_current_timestamp();
        let claims = Claims { sub: service.clone(), roles: ROLES.to_vec(), iat, exp: iat + LIFE };
        let access_token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.signing)
            .map_err(|error| RequestError::Internal(format!("no token can be made: {error}")))?;
        Ok(IssuedToken { access_token, token_type: "Bearer", expires_in: LIFE, service, roles: claims.roles })
    }

    /// The content of a request's token.
    ///
    /// # Errors
    /// When there is none, it has ended, or somebody else made it.
    pub(crate) fn verify(&self, headers: &HeaderMap) -> Result<Claims, RequestError> {
        let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = header.and_then(|value| value.strip_prefix("Bearer "));
        let token =
            token.ok_or(RequestError::Unauthorized("a token is missing: expected `Authorization: Bearer …`"))?;
        let mut validation = Validation::new(Algorithm::HS256);
        validation.leeway = 0;
        let verified = jsonwebtoken::decode(token, &self.verifying, &validation);
        verified
            .map(|token| token.claims)
            .map_err(|_| RequestError::Unauthorized("the token is not valid, or has ended"))
    }
}
