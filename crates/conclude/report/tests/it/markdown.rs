//! The Markdown of a report as a renderer reads it: nothing that a study, a system or a bundle says is markup.

use crate::documents::{documents, text};
use crate::sample;
use plimsoll_analysis::Input;
use plimsoll_model::factor::Level;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::start::Validity;
use pulldown_cmark::{Event, Options, Parser, Tag};
use std::collections::BTreeMap;

/// Texts that would become elements, links, pictures, code, headings or the end of what stands around them.
const HOSTILE: [&str; 8] = [
    "<img src=x onerror=a> </details> <!-- <script>b</script>",
    "[a](javascript:b) ![c](http://d.example/e.png) [f]: javascript:g",
    "`a` <b> `c",
    "` <b> ``<c>`` `d|<e>` | <f>",
    "x\n\n# y\n\n<z>\n```\n<w>",
    "<javascript:a> <b@c.example>",
    "\\` <b> \\[c\\](javascript:d) &lt;e&gt; &#60;f&#62;",
    "\u{1b}[2J\u{7} ~~a~~ **b**",
];

/// A study in which each of these texts stands in another place.
fn with(texts: &mut dyn Iterator<Item = &'static str>) -> Input {
    let mut next = || texts.next().expect("they go on for ever").to_owned();
    let mut input = sample::study();
    (input.facts.title, input.facts.question) = (next(), next());
    input.facts.report.comments = Some(format!("{}\n\n{}", next(), next()));
    input.facts.report.action_items = vec![next()];
    for assignment in input.plan.variants.iter_mut().chain(&mut input.plan.conditions) {
        // A number before it tells them apart.
        let level = format!("{} {}", assignment.0[0].1, next());
        assignment.0[0].1 = Level::Text(level);
    }
    input.starts[7].loads[0].summary.validity = Validity::Void(vec![next()]);
    let examples = BTreeMap::from([(ErrorKind::Status, next())]);
    let load = &mut input.starts[2].loads[0].summary;
    load.replies.error_examples = BTreeMap::from([("request:increment".to_owned(), examples)]);
    load.warnings = vec![next()];
    input.problems = vec![next()];
    input
}

#[test]
fn nothing_that_others_say_is_markup() {
    for turned in [0, 3] {
        let documents = documents(&with(&mut HOSTILE.into_iter().cycle().skip(turned)));
        let is_own = |url: &str| documents.iter().any(|document| document.path == url);
        for path in ["report.md", "summary.md"] {
            let markdown = text(&documents, path);
            let control = markdown.chars().find(|letter| letter.is_control() && *letter != '\n');
            assert_eq!(control, None, "{path}");
            for event in Parser::new_ext(&markdown, Options::all()) {
                match event {
                    Event::Html(html) | Event::InlineHtml(html) => assert_eq!(html.trim(), "<br>", "{path}"),
                    Event::Start(Tag::Link { dest_url, .. }) => assert!(is_own(&dest_url), "{path}: {dest_url}"),
                    Event::Start(Tag::Image { dest_url, .. }) => {
                        assert!(dest_url.starts_with("charts/"), "{path}: {dest_url}");
                    }
                    _ => {}
                }
            }
        }
    }
}
