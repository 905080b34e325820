//! Findings to Markdown, HTML, charts, CSV and JSON: pure.
