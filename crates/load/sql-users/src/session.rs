//! Opens connections with the isolation level of the study, and has the server confirm it.

use plimsoll_model::database::{Endpoint, Engine};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::sql::Isolation;
use plimsoll_sql::{CallLimits, Connection, SqlError};

/// Connects, sets the isolation level if the study names one, and returns the level in force.
pub(super) fn open(
    endpoint: &Endpoint,
    limits: CallLimits,
    isolation: Option<Isolation>,
) -> Result<(Connection, String), SqlError> {
    let mut connection = Connection::open(endpoint, limits)?;
    if let Some(asked) = isolation {
        connection.batch(&set_isolation(endpoint.engine, asked))?;
    }
    let in_force = read_isolation(&mut connection)?;
    match isolation {
        Some(asked) if in_force != asked.to_string() => Err(SqlError::new(
            ErrorKind::Check,
            format!("expected the isolation level {asked}, which the study asks for, found {in_force}"),
        )),
        _ => Ok((connection, in_force)),
    }
}

fn set_isolation(engine: Engine, level: Isolation) -> String {
    match engine {
        Engine::Postgresql => format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}"),
        Engine::Mariadb | Engine::Mysql => format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"),
    }
}

fn read_isolation(connection: &mut Connection) -> Result<String, SqlError> {
    let table = match connection.engine() {
        Engine::Postgresql => connection.query("SHOW transaction_isolation")?,
        // MySQL 8 knows only the second name, MariaDB before 11.1 only the first.
        Engine::Mariadb | Engine::Mysql => connection
            .query("SELECT @@session.tx_isolation")
            .or_else(|_| connection.query("SELECT @@session.transaction_isolation"))?,
    };
    let cell = table.rows.into_iter().flatten().flatten().next();
    cell.map(|level| level.to_uppercase().replace('-', " ")).ok_or_else(|| {
        SqlError::new(
            ErrorKind::Protocol,
            "expected the server to say which isolation level is in force, found no answer",
        )
    })
}
