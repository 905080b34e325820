//! Finds in the output of a server that it refused a login: a system that cannot log in often says so in many lines, or
//! not at all.

use plimsoll_model::database::Engine;
use plimsoll_system::Running;

/// The server's message about the last login that it refused, in one line.
#[must_use]
pub fn refused_login(engine: Engine, server: &Running) -> Option<String> {
    let said = std::fs::read(server.last_output().file?).ok()?;
    last_refusal(engine, &String::from_utf8_lossy(&said)).map(str::to_owned)
}

fn last_refusal(engine: Engine, output: &str) -> Option<&str> {
    match engine {
        // It also says so to those that come before it is up, or when it ends.
        Engine::Postgresql => output
            .lines()
            .filter_map(|line| line.split_once("FATAL:  ").map(|(_, refusal)| refusal.trim()))
            .rfind(|refusal| !refusal.starts_with("the database system is") && !refusal.starts_with("terminating")),
        Engine::Mariadb | Engine::Mysql => {
            output.lines().rev().find_map(|line| line.find("Access denied for user").map(|at| line[at..].trim()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_refusal_is_found() {
        let postgresql = "2026-11-25 16:00:00 UTC [7] FATAL:  the database system is starting up\n\
                          2026-11-25 16:00:01 UTC [9] FATAL:  role \"ann\" does not exist\n\
                          2026-11-25 16:00:02 UTC [9] FATAL:  password authentication failed for user \"bob\"\n\
                          2026-11-25 16:00:02 UTC [9] DETAIL:  Connection matched line 7\n\
                          2026-11-25 16:00:03 UTC [3] FATAL:  terminating connection due to administrator command\n";
        let refusal = last_refusal(Engine::Postgresql, postgresql);
        assert_eq!(refusal, Some("password authentication failed for user \"bob\""));
        assert_eq!(last_refusal(Engine::Postgresql, "LOG:  ready\n"), None);
        let mariadb = "2026-11-25 16:00:00 5 [Warning] Access denied for user 'ann'@'localhost' (using password: YES)\n\
                       2026-11-25 16:00:00 0 [Note] mariadbd: ready for connections.\n";
        let refusal = last_refusal(Engine::Mariadb, mariadb);
        assert_eq!(refusal, Some("Access denied for user 'ann'@'localhost' (using password: YES)"));
    }
}
