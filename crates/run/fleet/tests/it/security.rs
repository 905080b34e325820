//! Brokers with passwords, accounts and TLS.

use crate::given::{Nats, RunningAgent, agent, fleet, wanted};
use plimsoll_fleet::{Broker, Fleet, FleetError};
use plimsoll_system::Interrupt;
use plimsoll_testkit::PemFiles;
use std::time::Duration;

/// Two teams, each with an account of its own.
const ACCOUNTS: &str = r#"
accounts {
    red { jetstream: enabled, users: [{ user: red, password: "red secret" }] }
    blue { jetstream: enabled, users: [{ user: blue, password: "blue secret" }] }
}
"#;

fn login(nats: &Nats, login: &str) -> Broker {
    let url = format!("nats://{login}@{}", nats.server.address());
    Broker { url, ..Broker::default() }
}

fn failure(broker: &Broker) -> String {
    match Fleet::gather(broker, &wanted(1), &Interrupt::new(), &mut |_| ()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it was let in"),
    }
}

#[test]
fn agents_of_another_account_are_not_seen() {
    let Some(nats) = Nats::with(ACCOUNTS) else { return };
    let (red, blue) = (login(&nats, "red:red%20secret"), login(&nats, "blue:blue%20secret"));
    let _agent = RunningAgent::start(&red, agent("of red"));
    let few = plimsoll_fleet::Wanted { wait: Duration::from_secs(2), ..wanted(1) };
    let gathered = Fleet::gather(&blue, &few, &Interrupt::new(), &mut |_| ());
    let text = match gathered {
        Err(FleetError::TooFew(text)) => text,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("blue has an agent of red"),
    };
    assert!(text.starts_with("expected 1 agent, found 0 after 2 s; start more"), "{text}");
    drop(fleet(&red, 1));
    for wrong in ["red:blue%20secret", "nobody:red%20secret"] {
        let text = failure(&login(&nats, wrong));
        assert!(text.contains("uthorization") && !text.contains("secret"), "{text}");
    }
}

#[test]
fn a_broker_with_tls_must_have_a_certificate_of_an_authority_that_is_trusted() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = PemFiles::write(folder.path()).expect("a disk");
    let tls = format!("tls {{ cert_file: {:?}, key_file: {:?} }}", files.certificate, files.key);
    let Some(nats) = Nats::with(&tls) else { return };
    let url = format!("tls://{}", nats.server.address());
    let trusting = Broker { url: url.clone(), ca: Some(files.ca), ..Broker::default() };
    let _agent = RunningAgent::start(&trusting, agent("a"));
    drop(fleet(&trusting, 1));
    let text = failure(&Broker { url, ..Broker::default() });
    assert!(text.starts_with("failed to connect to NATS at tls://127.0.0.1:"), "{text}");
    let text = failure(&Broker { ca: Some("/none/ca.pem".into()), ..trusting });
    assert!(text.starts_with("failed to connect to NATS at tls://127.0.0.1:"), "{text}");
}
