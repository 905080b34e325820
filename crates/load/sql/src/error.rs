//! Why a statement, or a connection, failed.

use plimsoll_model::record::ErrorKind;
use std::fmt::Display;

/// A failure, classified as a user of the database would.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct SqlError {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// The SQLSTATE, or the error number of MySQL; empty for failures that the server did not report.
    pub code: String,
    /// The attempt, the message of the server, and advice. It never has a password.
    pub detail: String,
    /// The character of the SQL that the server points to, from 1.
    pub(crate) position: Option<usize>,
}

impl SqlError {
    /// A failure that the server did not report.
    #[must_use]
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> SqlError {
        SqlError { kind, code: String::new(), detail: detail.into(), position: None }
    }

    /// True if the connection can no longer be used.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self.kind, ErrorKind::Connect | ErrorKind::Closed | ErrorKind::Timeout | ErrorKind::Protocol)
    }

    /// An error of PostgreSQL.
    pub(crate) fn from_sqlstate(code: &str, message: &str) -> SqlError {
        server_error(sqlstate_kind(code), code, message, "SQLSTATE")
    }

    /// An error of MariaDB or MySQL.
    pub(crate) fn from_error_number(number: u16, message: &str) -> SqlError {
        server_error(number_kind(number, message), &number.to_string(), message, "error")
    }

    /// The server violated the protocol.
    pub(crate) fn protocol(detail: impl Into<String>) -> SqlError {
        SqlError::new(ErrorKind::Protocol, detail)
    }

    /// The server asks for the password in clear text over a network.
    pub(crate) fn cleartext_password(method: &str, instead: &str) -> SqlError {
        let detail = format!(
            "{method} sends the password itself, which is not done by TCP without TLS; connect by the server's UNIX \
             socket, or use {instead} if the server has it"
        );
        SqlError::new(ErrorKind::Denied, detail)
    }

    /// The same failure of statements that were sent as one text, with their line where the server points to it. Several
    /// lines are not quoted: it is rarely the first statement of a file that fails.
    pub(crate) fn of_statements(mut self, sql: &str) -> SqlError {
        if !sql.trim().contains('\n') {
            return self.during(format_args!("run `{}`", shortened(sql)));
        }
        if let Some(position) = self.position {
            let line = 1 + sql.chars().take(position.saturating_sub(1)).filter(|letter| *letter == '\n').count();
            self.detail = format!("line {line}: {}", self.detail);
        }
        self
    }

    /// The same failure, with what was attempted.
    #[must_use]
    pub(crate) fn during(mut self, attempt: impl Display) -> SqlError {
        self.detail = format!("cannot {attempt}: {}", self.detail);
        self
    }
}

/// The first characters of a statement on one line.
pub(crate) fn shortened(sql: &str) -> String {
    const LONGEST: usize = 160;
    let words: Vec<&str> = sql.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn server_error(kind: ErrorKind, code: &str, message: &str, name: &str) -> SqlError {
    let advice = advice(kind, code, message).map(|advice| format!("; {advice}")).unwrap_or_default();
    let detail = format!("{message} ({name} {code}){advice}");
    SqlError { kind, code: code.to_owned(), detail, position: None }
}

/// The kind of an SQLSTATE, as in appendix A of PostgreSQL's manual.
fn sqlstate_kind(code: &str) -> ErrorKind {
    match code {
        "40P01" => ErrorKind::Deadlock,
        "40001" => ErrorKind::Serialization,
        "55P03" => ErrorKind::LockTimeout,
        "42501" => ErrorKind::Denied,
        "53100" => ErrorKind::Space,
        "53300" | "57P03" | "08001" | "08004" => ErrorKind::Connect,
        "57P01" | "57P02" | "57P04" | "57P05" | "25P03" => ErrorKind::Closed,
        "08P01" => ErrorKind::Protocol,
        _ => match code.get(..2) {
            Some("08") => ErrorKind::Closed,
            Some("23") => ErrorKind::Constraint,
            Some("28") => ErrorKind::Denied,
            _ => ErrorKind::Sql,
        },
    }
}

/// The kind of an error number of MariaDB or MySQL. For a full disk, only the text has the number of the
/// operating system.
fn number_kind(number: u16, message: &str) -> ErrorKind {
    match number {
        1213 => ErrorKind::Deadlock,
        1020 => ErrorKind::Serialization,
        1205 | 3572 => ErrorKind::LockTimeout,
        1022 | 1048 | 1062 | 1169 | 1216 | 1217 | 1364 | 1451 | 1452 | 1557 | 1586 | 1761 | 1762 | 3819 | 4025 => {
            ErrorKind::Constraint
        }
        1044 | 1045 | 1130 | 1142 | 1143 | 1227 | 1370 | 1698 | 3118 => ErrorKind::Denied,
        1021 | 1114 => ErrorKind::Space,
        1040 | 1129 | 1203 | 1226 => ErrorKind::Connect,
        1053 | 1080 | 1152 | 1184 | 1927 | 2006 | 2013 | 3169 | 4031 => ErrorKind::Closed,
        _ if message.contains("errno: 28") || message.contains("Errcode: 28") => ErrorKind::Space,
        _ => ErrorKind::Sql,
    }
}

/// What the user can do about the error; none for errors that only the statement explains.
fn advice(kind: ErrorKind, code: &str, message: &str) -> Option<&'static str> {
    if ["insecure transport", "no encryption", "SSL off"].iter().any(|sign| message.contains(sign)) {
        return Some(
            "the server may want TLS, which is not spoken here: connect by its UNIX socket, or allow plain TCP",
        );
    }
    match (kind, code) {
        (ErrorKind::Denied, "28P01" | "28000" | "1045" | "1698") => Some("check the user, and its password"),
        (ErrorKind::Denied, "1130") => Some("allow the user to come from this host"),
        (ErrorKind::Denied, _) => Some("grant the user this right, or take another user"),
        (ErrorKind::Connect, "53300" | "1040" | "1203") => {
            Some("raise max_connections, or take fewer users than the server has connections")
        }
        // PostgreSQL says itself what to do.
        (ErrorKind::Space, _) if message.contains("free disk space") => None,
        (ErrorKind::Space, _) => Some("make room on the server's disk"),
        (ErrorKind::Sql, "3D000" | "1049") => Some("create the database, or name another"),
        (ErrorKind::Sql, "42P01" | "1146") => {
            Some("make the table first: `load` names the SQL files of a database that the study starts")
        }
        (ErrorKind::Sql, "42601" | "1064") => Some("correct the SQL"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_statements_are_cut_between_characters() {
        assert_eq!(shortened("SELECT 1\n  FROM t"), "SELECT 1 FROM t");
        assert_eq!(shortened(&"ü".repeat(1000)), format!("{}…", "ü".repeat(160)));
    }

    #[test]
    fn of_several_lines_the_one_that_failed_is_named() {
        let failed = |sql: &str, position| {
            let error = SqlError { position, ..SqlError::new(ErrorKind::Sql, "no such table") };
            error.of_statements(sql).detail
        };
        assert_eq!(failed("DROP TABLE a", Some(12)), "cannot run `DROP TABLE a`: no such table");
        let script = "CREATE TABLE a (i INT);\n\nDROP TABLE ü;\n";
        assert_eq!(failed(script, Some(37)), "line 3: no such table");
        assert_eq!(failed(script, None), "no such table");
    }

    #[test]
    fn sqlstates_are_told_apart() {
        let cases = [
            ("40P01", ErrorKind::Deadlock),
            ("40001", ErrorKind::Serialization),
            ("55P03", ErrorKind::LockTimeout),
            ("23505", ErrorKind::Constraint),
            ("23514", ErrorKind::Constraint),
            ("28P01", ErrorKind::Denied),
            ("42501", ErrorKind::Denied),
            ("53100", ErrorKind::Space),
            ("53300", ErrorKind::Connect),
            ("57P03", ErrorKind::Connect),
            ("57P01", ErrorKind::Closed),
            ("08006", ErrorKind::Closed),
            ("08P01", ErrorKind::Protocol),
            ("3D000", ErrorKind::Sql),
            ("42P01", ErrorKind::Sql),
            ("57014", ErrorKind::Sql),
            ("", ErrorKind::Sql),
        ];
        for (code, kind) in cases {
            assert_eq!(SqlError::from_sqlstate(code, "it failed").kind, kind, "{code}");
        }
    }

    #[test]
    fn numbers_are_told_apart() {
        let cases = [
            (1213, ErrorKind::Deadlock),
            (1020, ErrorKind::Serialization),
            (1205, ErrorKind::LockTimeout),
            (3572, ErrorKind::LockTimeout),
            (1062, ErrorKind::Constraint),
            (1451, ErrorKind::Constraint),
            (1452, ErrorKind::Constraint),
            (1048, ErrorKind::Constraint),
            (1044, ErrorKind::Denied),
            (1045, ErrorKind::Denied),
            (1142, ErrorKind::Denied),
            (1114, ErrorKind::Space),
            (1040, ErrorKind::Connect),
            (1053, ErrorKind::Closed),
            (1927, ErrorKind::Closed),
            (3169, ErrorKind::Closed),
            (4031, ErrorKind::Closed),
            (1049, ErrorKind::Sql),
            (1146, ErrorKind::Sql),
        ];
        for (number, kind) in cases {
            assert_eq!(SqlError::from_error_number(number, "it failed").kind, kind, "{number}");
        }
    }

    #[test]
    fn a_full_disk_is_known_by_the_number_of_the_operating_system() {
        let error = SqlError::from_error_number(1030, "Got error 28 \"No space left on device\" (errno: 28)");
        assert_eq!(error.kind, ErrorKind::Space);
        assert!(error.detail.ends_with("make room on the server's disk"), "{}", error.detail);
    }

    #[test]
    fn what_to_do_about_a_full_disk_is_said_once() {
        let said = "could not extend file \"base/5/1\": No space left on device; Check free disk space.";
        let error = SqlError::from_sqlstate("53100", said);
        assert_eq!((error.kind, error.detail), (ErrorKind::Space, format!("{said} (SQLSTATE 53100)")));
        let bare = SqlError::from_sqlstate("53100", "could not write to file");
        assert!(bare.detail.ends_with("; make room on the server's disk"), "{}", bare.detail);
    }

    #[test]
    fn an_error_says_what_was_attempted_and_what_to_do() {
        let error = SqlError::from_sqlstate("28P01", "password authentication failed for user \"a\"").during("connect");
        let expected = "cannot connect: password authentication failed for user \"a\" (SQLSTATE 28P01); \
                        check the user, and its password";
        assert_eq!(error.detail, expected);
    }

    #[test]
    fn a_server_that_wants_tls_is_told_from_one_that_wants_a_password() {
        let message = "no pg_hba.conf entry for host \"127.0.0.1\", user \"a\", database \"b\", no encryption";
        let error = SqlError::from_sqlstate("28000", message);
        assert!(error.detail.contains("TLS"), "{}", error.detail);
        let message = "Connections using insecure transport are prohibited while --require_secure_transport=ON.";
        let error = SqlError::from_error_number(3159, message);
        assert!(error.detail.contains("TLS"), "{}", error.detail);
    }
}
