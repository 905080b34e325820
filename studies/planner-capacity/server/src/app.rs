//! The state that all handlers share, and their work on plans: each time in one transaction.

use crate::error::RequestError;
use crate::plan::{Plan, PlanError};
use crate::pool::Pool;
use crate::store::{self, FoundPlan};
use crate::token::{Claims, Tokens};
use serde::Deserialize;
use std::sync::Arc;
use uuid::Uuid;

/// The state of the service.
#[derive(Clone)]
pub(crate) struct App {
    /// Its connections to the database.
    pub(crate) pool: Pool,
    /// The tokens that it issues.
    pub(crate) tokens: Arc<Tokens>,
}

/// A search for plans. Without a text it finds all.
#[derive(Deserialize)]
pub(crate) struct Search {
    /// A text in the id of a dataset, or in its notes.
    #[serde(default)]
    pub(crate) search_by: String,
    /// The number of the page, from 0.
    #[serde(default)]
    pub(crate) page: u32,
}

impl App {
    /// Reads a plan.
    ///
    /// # Errors
    /// When there is none of this dataset, or the database fails.
    pub(crate) async fn plan(&self, dataset: Uuid) -> Result<Plan, RequestError> {
        let mut connection = self.pool.acquire().await?;
        let transaction = store::begin_reading(&mut connection).await?;
        let plan = store::read(&transaction, dataset).await?;
        transaction.commit().await?;
        Ok(plan)
    }

    /// Reads a page of the plans that are searched for.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) async fn find_plans(&self, search: &Search) -> Result<Vec<FoundPlan>, RequestError> {
        let mut connection = self.pool.acquire().await?;
        let transaction = store::begin_reading(&mut connection).await?;
        let found = store::search(&transaction, &search.search_by, search.page).await?;
        transaction.commit().await?;
        Ok(found)
    }

    /// Writes a plan that was posted, and triggers what is ready in it. Returns the whole plan.
    ///
    /// # Errors
    /// When the whole is no plan, or the database fails.
    pub(crate) async fn put_plan(&self, posted: &Plan, claims: &Claims) -> Result<Plan, RequestError> {
        let mut connection = self.pool.acquire().await?;
        let transaction = connection.transaction().await?;
        let before = store::put(&transaction, posted, &claims.sub).await?;
        let mut plan = before.clone();
        plan.trigger();
        store::write_changes(&transaction, &before, &plan, &claims.sub).await?;
        transaction.commit().await?;
        Ok(plan)
    }

    /// Changes a plan as `change` does, and returns it.
    ///
    /// # Errors
    /// When there is none of this dataset, the change is refused, or the database fails.
    pub(crate) async fn change_plan(
        &self,
        dataset: Uuid,
        claims: &Claims,
        change: impl FnOnce(&mut Plan) -> Result<(), PlanError>,
    ) -> Result<Plan, RequestError> {
        let mut connection = self.pool.acquire().await?;
        let transaction = connection.transaction().await?;
        let before = store::read_to_change(&transaction, dataset).await?;
        let mut plan = before.clone();
        change(&mut plan)?;
        store::write_changes(&transaction, &before, &plan, &claims.sub).await?;
        transaction.commit().await?;
        Ok(plan)
    }
}
