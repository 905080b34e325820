//! Errors of requests, and the reply to each: a status and `{"error": "…"}`.

use crate::plan::PlanError;
use crate::token::Role;
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use deadpool_postgres::PoolError;
use serde_json::json;

/// Why a request is not answered as it asks.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The request is malformed.
    #[error("{0}")]
    BadRequest(String),
    /// The plan, or the change of it, is not valid.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The login or the token is missing or wrong.
    #[error("{0}")]
    Unauthorized(&'static str),
    /// The token lacks this role.
    #[error("the role `{0}` is missing")]
    Forbidden(Role),
    /// Nothing is at this address.
    #[error("there is no {0}")]
    NotFound(String),
    /// The database refuses a statement.
    #[error("the database fails: {0}")]
    Database(#[source] tokio_postgres::Error),
    /// The pool gives no connection.
    #[error("no connection to the database: {0}")]
    Pool(#[from] PoolError),
    /// Something else that the request is not to blame for.
    #[error("{0}")]
    Internal(String),
}

impl RequestError {
    fn status(&self) -> StatusCode {
        match self {
            RequestError::BadRequest(_) | RequestError::Plan(_) => StatusCode::BAD_REQUEST,
            RequestError::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            RequestError::Forbidden(_) => StatusCode::FORBIDDEN,
            RequestError::NotFound(_) => StatusCode::NOT_FOUND,
            RequestError::Database(_) | RequestError::Pool(_) | RequestError::Internal(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }
}

impl From<tokio_postgres::Error> for RequestError {
    fn from(error: tokio_postgres::Error) -> RequestError {
        match error.as_db_error() {
            // A value that PostgreSQL cannot hold, such as a text with a zero byte, came with the request.
            Some(refusal) if refusal.code().code().starts_with("22") => {
                RequestError::BadRequest(refusal.message().to_owned())
            }
            _ => RequestError::Database(error),
        }
    }
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        let status = self.status();
        let text = if status == StatusCode::INTERNAL_SERVER_ERROR {
            eprintln!("planner: {}", chain(&self));
            // Users do not need details of the service.
            "the service failed; its log has the reason".to_owned()
        } else {
            self.to_string()
        };
        (status, Json(json!({ "error": text }))).into_response()
    }
}

/// The requests that axum's own extractors refuse are all bad ones.
macro_rules! bad_request {
    ($($rejection:ty),*) => {
        $(impl From<$rejection> for RequestError {
            fn from(rejection: $rejection) -> RequestError {
                RequestError::BadRequest(rejection.body_text())
            }
        })*
    };
}

bad_request!(JsonRejection, PathRejection, QueryRejection);

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        // Some errors print their cause themselves.
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text.replace('\n', " ")
}
