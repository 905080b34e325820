//! The pages about the method fit together: every link from docs/method.md leads somewhere, and
//! every simulation is on the page that it writes.

use crate::simulations::SECTIONS;
use plimsoll_evidence::page::{COMMAND, anchor};
use std::fs;
use std::path::Path;

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter_map(|line| line.strip_prefix("## ").or(line.strip_prefix("### ")));
    headings.map(anchor).collect()
}

/// The targets of links whose address begins with `start`.
fn links<'a>(page: &'a str, start: &str) -> Vec<&'a str> {
    let targets = page.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    targets.filter_map(|target| target.strip_prefix(start)).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let (method, evidence) = (page("method.md"), page("method-evidence.md"));
    for (from, start, to) in
        [(&method, "method-evidence.md#", &evidence), (&method, "#", &method), (&evidence, "#", &evidence)]
    {
        let (links, anchors) = (links(from, start), anchors(to));
        assert!(!links.is_empty(), "no link {start}");
        for link in links {
            assert!(anchors.contains(&link.to_owned()), "{start}{link} leads nowhere");
        }
    }
}

#[test]
fn every_simulation_is_on_its_page() {
    let evidence = page("method-evidence.md");
    assert!(evidence.contains(COMMAND));
    for section in SECTIONS.iter() {
        assert!(anchors(&evidence).contains(&anchor(section.title)), "{}: run `{COMMAND}`", section.title);
    }
}
