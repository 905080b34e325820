//! The database: plans, and the search for them. The schema is in `schema.sql`.

use crate::error::RequestError;
use crate::plan::{DataProduct, Dataset, Dependency, Plan};
use deadpool_postgres::{Object, Transaction};
use serde::de::value::{Error as ParseError, StrDeserializer};
use serde::{Deserialize, Serialize};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, IsolationLevel, Row};
use uuid::Uuid;

/// How many plans a page of the search has.
pub(crate) const PAGE_SIZE: usize = 50;

const DATASET: &str = "SELECT dataset_id, paused, extra FROM dataset WHERE dataset_id = $1";

const DATASET_TO_CHANGE: &str = "SELECT dataset_id, paused, extra FROM dataset WHERE dataset_id = $1 FOR UPDATE";

const DATA_PRODUCTS: &str = "
    SELECT data_product_id, compute::text, name, version, eager, state::text, passthrough, run_id, link, passback, extra
    FROM data_product WHERE dataset_id = $1 ORDER BY data_product_id COLLATE \"C\"";

const DEPENDENCIES: &str = "
    SELECT parent_id, child_id, extra FROM dependency WHERE dataset_id = $1
    ORDER BY parent_id COLLATE \"C\", child_id COLLATE \"C\"";

const PUT_DATASET: &str = "
    INSERT INTO dataset (dataset_id, paused, extra, modified_by, modified_date) VALUES ($1, $2, $3, $4, now())
    ON CONFLICT (dataset_id) DO UPDATE
    SET paused = EXCLUDED.paused, extra = EXCLUDED.extra, modified_by = EXCLUDED.modified_by, modified_date = now()";

const PUT_DATA_PRODUCT: &str = "
    INSERT INTO data_product (dataset_id, data_product_id, compute, name, version, eager, state, passthrough, run_id,
        link, passback, extra, modified_by, modified_date)
    VALUES ($1, $2, $3::text::compute, $4, $5, $6, $7::text::state, $8, $9, $10, $11, $12, $13, now())
    ON CONFLICT (dataset_id, data_product_id) DO UPDATE
    SET compute = EXCLUDED.compute, name = EXCLUDED.name, version = EXCLUDED.version, eager = EXCLUDED.eager,
        state = EXCLUDED.state, passthrough = EXCLUDED.passthrough, run_id = EXCLUDED.run_id, link = EXCLUDED.link,
        passback = EXCLUDED.passback, extra = EXCLUDED.extra, modified_by = EXCLUDED.modified_by,
        modified_date = now()";

const PUT_DEPENDENCY: &str = "
    INSERT INTO dependency (dataset_id, parent_id, child_id, extra, modified_by, modified_date)
    VALUES ($1, $2, $3, $4, $5, now())
    ON CONFLICT (dataset_id, parent_id, child_id) DO UPDATE
    SET extra = EXCLUDED.extra, modified_by = EXCLUDED.modified_by, modified_date = now()";

const SET_STATE: &str = "
    UPDATE data_product
    SET state = $3::text::state, run_id = $4, link = $5, passback = $6, modified_by = $7, modified_date = now()
    WHERE dataset_id = $1 AND data_product_id = $2";

/// Every product of a plan meets every dependency of it, and no index helps: this is what the service is slow at.
const SEARCH: &str = "
    SELECT dataset.dataset_id, dataset.paused, dataset.extra,
        count(DISTINCT data_product.data_product_id) AS data_products,
        count(DISTINCT data_product.data_product_id) FILTER (WHERE data_product.state = 'success') AS successful,
        count(DISTINCT (dependency.parent_id, dependency.child_id)) FILTER (WHERE dependency.child_id IS NOT NULL)
            AS dependencies,
        to_char(max(greatest(dataset.modified_date, data_product.modified_date, dependency.modified_date))
            AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS modified
    FROM dataset
    LEFT JOIN data_product ON data_product.dataset_id = dataset.dataset_id
    LEFT JOIN dependency ON dependency.dataset_id = dataset.dataset_id
    WHERE dataset.dataset_id::text ILIKE $1 OR dataset.extra::text ILIKE $1
    GROUP BY dataset.dataset_id
    ORDER BY max(greatest(dataset.modified_date, data_product.modified_date, dependency.modified_date)) DESC,
        dataset.dataset_id
    LIMIT $2 OFFSET $3";

/// A plan that a search found.
#[derive(Debug, Serialize)]
pub(crate) struct FoundPlan {
    /// The dataset that it is of.
    pub(crate) dataset: Dataset,
    /// How many data products it has.
    pub(crate) data_products: i64,
    /// How many of them are successful.
    pub(crate) successful: i64,
    /// How many dependencies they have.
    pub(crate) dependencies: i64,
    /// When anything of it last changed, in UTC.
    pub(crate) modified: String,
}

/// Creates the schema where it is not there.
///
/// # Errors
/// When the database does not let it.
pub(crate) async fn migrate(client: &Client) -> Result<(), Error> {
    client.batch_execute(include_str!("schema.sql")).await
}

/// True if the schema is there.
///
/// # Errors
/// When the database fails.
pub(crate) async fn is_migrated(client: &Client) -> Result<bool, Error> {
    // The last thing that `migrate` creates.
    client.query_one("SELECT to_regclass('dependency') IS NOT NULL", &[]).await?.try_get(0)
}

/// Begins a transaction that only reads, and sees the database as it is now to its end.
///
/// # Errors
/// When the database fails.
pub(crate) async fn begin_reading(connection: &mut Object) -> Result<Transaction<'_>, Error> {
    connection.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true).start().await
}

/// Reads a plan.
///
/// # Errors
/// When there is none of this dataset, or the database fails.
pub(crate) async fn read(transaction: &Transaction<'_>, dataset: Uuid) -> Result<Plan, RequestError> {
    read_with(DATASET, transaction, dataset).await
}

/// Reads a plan that the transaction is to change. Another change of the same plan waits for its end.
///
/// # Errors
/// When there is none of this dataset, or the database fails.
pub(crate) async fn read_to_change(transaction: &Transaction<'_>, dataset: Uuid) -> Result<Plan, RequestError> {
    read_with(DATASET_TO_CHANGE, transaction, dataset).await
}

/// Writes what was posted of a plan, row by row, and returns the whole plan.
///
/// # Errors
/// When the whole is no plan, or the database fails.
pub(crate) async fn put(transaction: &Transaction<'_>, posted: &Plan, by: &str) -> Result<Plan, RequestError> {
    // The row of the dataset comes first: whether it was there or not, this transaction has it from now on.
    put_dataset(transaction, &posted.dataset, by).await?;
    let stored = read_to_change(transaction, posted.dataset.id).await?;
    let plan = stored.extended(posted)?;
    let id = posted.dataset.id;
    for product in plan.data_products.iter().filter(|product| posted.product(&product.id).is_some()) {
        put_data_product(transaction, &id, product, by).await?;
    }
    for Dependency { parent_id, child_id, extra } in &posted.dependencies {
        execute(transaction, PUT_DEPENDENCY, &[&id, parent_id, child_id, extra, &by]).await?;
    }
    Ok(plan)
}

/// Writes what changed in a plan since it was read: its dataset, and how far its products are.
///
/// # Errors
/// When the database fails.
pub(crate) async fn write_changes(
    transaction: &Transaction<'_>,
    before: &Plan,
    after: &Plan,
    by: &str,
) -> Result<(), RequestError> {
    if after.dataset != before.dataset {
        put_dataset(transaction, &after.dataset, by).await?;
    }
    let changed = before.data_products.iter().zip(&after.data_products).filter(|(before, after)| before != after);
    for (_, DataProduct { id, state, run_id, link, passback, .. }) in changed {
        let state = state.as_str();
        execute(transaction, SET_STATE, &[&after.dataset.id, id, &state, run_id, link, passback, &by]).await?;
    }
    Ok(())
}

/// Searches the plans whose dataset has this text in its id or its notes: a page of them, the last changed first. `%`
/// and `_` stand for other characters, as in SQL. The first page is 0.
///
/// # Errors
/// When the database fails.
pub(crate) async fn search(
    transaction: &Transaction<'_>,
    text: &str,
    page: u32,
) -> Result<Vec<FoundPlan>, RequestError> {
    let size = PAGE_SIZE as i64;
    let rows = query(transaction, SEARCH, &[&format!("%{text}%"), &size, &(i64::from(page) * size)]).await?;
    rows.iter().map(found_plan).collect::<Result<_, _>>().map_err(RequestError::from)
}

async fn read_with(sql: &str, transaction: &Transaction<'_>, id: Uuid) -> Result<Plan, RequestError> {
    let rows = query(transaction, sql, &[&id]).await?;
    let row = rows.first().ok_or_else(|| RequestError::NotFound(format!("plan of dataset {id}")))?;
    let mut plan = Plan::empty(dataset(row)?);
    for row in query(transaction, DATA_PRODUCTS, &[&id]).await? {
        plan.data_products.push(data_product(&row)?);
    }
    for row in query(transaction, DEPENDENCIES, &[&id]).await? {
        plan.dependencies.push(dependency(&row)?);
    }
    Ok(plan)
}

async fn put_dataset(transaction: &Transaction<'_>, dataset: &Dataset, by: &str) -> Result<(), RequestError> {
    let Dataset { id, paused, extra } = dataset;
    execute(transaction, PUT_DATASET, &[id, paused, extra, &by]).await
}

async fn put_data_product(
    transaction: &Transaction<'_>,
    dataset: &Uuid,
    product: &DataProduct,
    by: &str,
) -> Result<(), RequestError> {
    let DataProduct { id, name, version, eager, passthrough, run_id, link, passback, extra, .. } = product;
    let (compute, state) = (product.compute.as_str(), product.state.as_str());
    let definition: [&(dyn ToSql + Sync); 6] = [dataset, id, &compute, name, version, eager];
    let run: [&(dyn ToSql + Sync); 7] = [&state, passthrough, run_id, link, passback, extra, &by];
    execute(transaction, PUT_DATA_PRODUCT, &[definition.as_slice(), &run].concat()).await
}

fn dataset(row: &Row) -> Result<Dataset, Error> {
    Ok(Dataset { id: row.try_get(0)?, paused: row.try_get(1)?, extra: row.try_get(2)? })
}

fn data_product(row: &Row) -> Result<DataProduct, RequestError> {
    Ok(DataProduct {
        id: row.try_get(0)?,
        compute: named(row.try_get(1)?)?,
        name: row.try_get(2)?,
        version: row.try_get(3)?,
        eager: row.try_get(4)?,
        state: named(row.try_get(5)?)?,
        passthrough: row.try_get(6)?,
        run_id: row.try_get(7)?,
        link: row.try_get(8)?,
        passback: row.try_get(9)?,
        extra: row.try_get(10)?,
    })
}

fn dependency(row: &Row) -> Result<Dependency, Error> {
    Ok(Dependency { parent_id: row.try_get(0)?, child_id: row.try_get(1)?, extra: row.try_get(2)? })
}

fn found_plan(row: &Row) -> Result<FoundPlan, Error> {
    Ok(FoundPlan {
        dataset: dataset(row)?,
        data_products: row.try_get(3)?,
        successful: row.try_get(4)?,
        dependencies: row.try_get(5)?,
        modified: row.try_get(6)?,
    })
}

/// The variant of an enum that has this name.
fn named<'a, T: Deserialize<'a>>(name: &'a str) -> Result<T, RequestError> {
    T::deserialize(StrDeserializer::new(name)).map_err(|error: ParseError| RequestError::Internal(error.to_string()))
}

/// Rows of a statement that each connection prepares once.
async fn query(
    transaction: &Transaction<'_>,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, RequestError> {
    let statement = transaction.prepare_cached(sql).await?;
    Ok(transaction.query(&statement, parameters).await?)
}

async fn execute(
    transaction: &Transaction<'_>,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<(), RequestError> {
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, parameters).await?;
    Ok(())
}
