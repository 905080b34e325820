//! The folder of results: the only crate that knows its paths and formats.
