//! The parts of a request. Those of axum reply to a bad one in plain text, these as the service does.

use crate::app::App;
use crate::error::RequestError;
use crate::token::Claims;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

/// The parameters in the path.
pub(crate) struct Path<T>(pub(crate) T);

/// The parameters after the path.
pub(crate) struct Query<T>(pub(crate) T);

/// The body, which is JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Path<T>, RequestError> {
        let axum::extract::Path(value) = axum::extract::Path::from_request_parts(parts, state).await?;
        Ok(Path(value))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Query<T>, RequestError> {
        let axum::extract::Query(value) = axum::extract::Query::from_request_parts(parts, state).await?;
        Ok(Query(value))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = RequestError;

    async fn from_request(request: Request, state: &S) -> Result<Json<T>, RequestError> {
        let axum::Json(value) = axum::Json::from_request(request, state).await?;
        Ok(Json(value))
    }
}

impl FromRequestParts<App> for Claims {
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Claims, RequestError> {
        app.tokens.verify(&parts.headers)
    }
}
