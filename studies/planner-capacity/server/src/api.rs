//! The endpoints for programs, which speak JSON.

use crate::app::{App, Search};
use crate::error::RequestError;
use crate::extract::{Json, Path, Query};
use crate::plan::{DataProduct, Plan, StateUpdate};
use crate::store::FoundPlan;
use crate::token::{Claims, Credentials, IssuedToken, Role};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{delete, get, post, put};
use serde::Serialize;
use uuid::Uuid;

/// The reply of a handler: JSON, or an error.
type Reply<T> = Result<axum::Json<T>, RequestError>;

/// A plan, with the updates that its user may make next.
#[derive(Serialize)]
struct WholePlan {
    #[serde(flatten)]
    plan: Plan,
    /// Updates that the plan is ready for. Each can be sent back as it is.
    next: Vec<StateUpdate>,
    /// True if nothing is left to make.
    done: bool,
}

impl From<Plan> for WholePlan {
    fn from(plan: Plan) -> WholePlan {
        WholePlan { next: plan.next(), done: plan.is_done(), plan }
    }
}

/// All endpoints of this module.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/health", get(health))
        .route("/api/authenticate", post(authenticate))
        .route("/api/plan", post(post_plan))
        .route("/api/plan/search", get(search_plans))
        .route("/api/plan/{dataset}", get(get_plan))
        .route("/api/plan/{dataset}/pause", put(pause))
        .route("/api/plan/{dataset}/unpause", put(unpause))
        .route("/api/data_product/{dataset}", delete(disable))
        .route("/api/data_product/{dataset}/{product}", get(get_data_product))
        .route("/api/data_product/{dataset}/update", put(update))
        .route("/api/data_product/{dataset}/clear", put(clear))
}

async fn health(State(app): State<App>) -> Result<(), RequestError> {
    app.pool.acquire().await?.simple_query("SELECT 1").await?;
    Ok(())
}

async fn authenticate(State(app): State<App>, Json(credentials): Json<Credentials>) -> Reply<IssuedToken> {
    app.tokens.authenticate(credentials).await.map(axum::Json)
}

async fn post_plan(State(app): State<App>, claims: Claims, Json(posted): Json<Plan>) -> Reply<WholePlan> {
    claims.require(Role::Publish)?;
    app.put_plan(&posted, &claims).await.map(|plan| axum::Json(plan.into()))
}

async fn get_plan(State(app): State<App>, Path(dataset): Path<Uuid>) -> Reply<WholePlan> {
    Ok(axum::Json(app.plan(dataset).await?.into()))
}

async fn search_plans(State(app): State<App>, Query(search): Query<Search>) -> Reply<Vec<FoundPlan>> {
    app.find_plans(&search).await.map(axum::Json)
}

async fn pause(app: State<App>, claims: Claims, Path(dataset): Path<Uuid>) -> Result<StatusCode, RequestError> {
    set_paused(app, claims, dataset, true).await
}

async fn unpause(app: State<App>, claims: Claims, Path(dataset): Path<Uuid>) -> Result<StatusCode, RequestError> {
    set_paused(app, claims, dataset, false).await
}

async fn get_data_product(State(app): State<App>, Path((dataset, id)): Path<(Uuid, String)>) -> Reply<DataProduct> {
    let mut plan = app.plan(dataset).await?;
    match plan.data_products.iter().position(|product| product.id == id) {
        Some(position) => Ok(axum::Json(plan.data_products.swap_remove(position))),
        None => Err(RequestError::NotFound(format!("data product `{id}` in the plan of dataset {dataset}"))),
    }
}

async fn update(
    State(app): State<App>,
    claims: Claims,
    Path(dataset): Path<Uuid>,
    Json(updates): Json<Vec<StateUpdate>>,
) -> Reply<WholePlan> {
    claims.require(Role::Update)?;
    app.change_plan(dataset, &claims, |plan| plan.update(&updates)).await.map(|plan| axum::Json(plan.into()))
}

async fn clear(
    State(app): State<App>,
    claims: Claims,
    Path(dataset): Path<Uuid>,
    Json(ids): Json<Vec<String>>,
) -> Reply<WholePlan> {
    claims.require(Role::Update)?;
    app.change_plan(dataset, &claims, |plan| plan.clear(&ids)).await.map(|plan| axum::Json(plan.into()))
}

async fn disable(
    State(app): State<App>,
    claims: Claims,
    Path(dataset): Path<Uuid>,
    Json(ids): Json<Vec<String>>,
) -> Result<StatusCode, RequestError> {
    claims.require(Role::Disable)?;
    app.change_plan(dataset, &claims, |plan| plan.disable(&ids)).await.map(|_| StatusCode::NO_CONTENT)
}

async fn set_paused(
    State(app): State<App>,
    claims: Claims,
    dataset: Uuid,
    paused: bool,
) -> Result<StatusCode, RequestError> {
    claims.require(Role::Pause)?;
    let set = |plan: &mut Plan| {
        plan.set_paused(paused);
        Ok(())
    };
    app.change_plan(dataset, &claims, set).await.map(|_| StatusCode::NO_CONTENT)
}
