//! The server: it starts with all that a request will need, and ends at SIGTERM.

use crate::app::App;
use crate::error::{RequestError, chain};
use crate::pool::Pool;
use crate::settings::{self, Failure};
use crate::token::Tokens;
use crate::{api, pages, store};
use axum::Router;
use axum::serve::ListenerExt;
use std::io::{Write, stdout};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Creates the schema in the database of the environment.
///
/// # Errors
/// When a variable is wrong, or the database does not answer or does not let it.
pub(crate) async fn migrate() -> Result<(), Failure> {
    let config = settings::database()?;
    let pool = Pool::open(&config, 1).await.map_err(|error| cannot_reach(&error))?;
    let connection = pool.acquire().await.map_err(|error| Failure::Run(chain(&error)))?;
    store::migrate(&connection).await.map_err(|error| Failure::Run(format!("no schema is created: {}", chain(&error))))
}

/// Serves at `listen` until SIGTERM or SIGINT. Requests that are under way then are answered.
///
/// # Errors
/// When a variable is wrong, the database does not answer or has no schema, or nothing can listen there.
pub(crate) async fn serve(listen: SocketAddr) -> Result<(), Failure> {
    let app = start_app().await?;
    let failed = |error: std::io::Error| Failure::Run(format!("nothing can listen on {listen}: {error}"));
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let end = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    // Nobody may be reading.
    let _ = writeln!(stdout(), "planner listens on {address}");
    // A reply leaves at once, not when the one before it is acknowledged.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, router(app)).with_graceful_shutdown(end).await.map_err(failed)
}

async fn start_app() -> Result<App, Failure> {
    let (config, size) = (settings::database()?, settings::max_connections()?);
    let secret = settings::secret()?;
    let pool = Pool::open(&config, size).await.map_err(|error| cannot_reach(&error))?;
    let connection = pool.acquire().await.map_err(|error| Failure::Run(chain(&error)))?;
    match store::is_migrated(&connection).await {
        Ok(true) => {}
        Ok(false) => return Err(Failure::Run("the database has no schema: run `planner migrate` first".to_owned())),
        Err(error) => return Err(Failure::Run(chain(&error))),
    }
    drop(connection);
    let tokens = Tokens::new(&secret).map_err(|error| Failure::Run(format!("no key is hashed: {error}")))?;
    Ok(App { pool, tokens: Arc::new(tokens) })
}

fn router(app: App) -> Router {
    let nothing = async || RequestError::NotFound("page of this address".to_owned());
    Router::new().merge(api::routes()).merge(pages::routes()).fallback(nothing).with_state(app)
}

fn cannot_reach(error: &deadpool_postgres::PoolError) -> Failure {
    Failure::Run(format!("the database of DATABASE_URL cannot be reached: {}", chain(error)))
}
