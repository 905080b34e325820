//! Published tables of results.

use super::text;

/// Audits the input, and formats what is found.
pub(super) fn audit(input: &[u8]) {
    match plimsoll_audit::audit(&text(input)) {
        Ok(audit) => {
            let _ = (plimsoll_audit::terminal("table.csv", &audit), plimsoll_audit::json("table.csv", &audit));
        }
        Err(faults) => assert!(!faults.is_empty(), "expected a fault where there is no audit"),
    }
}
