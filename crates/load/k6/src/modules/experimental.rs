//! The modules `k6/experimental/…`: files read in pieces, CSV, and streams.

pub(crate) mod csv;
pub(crate) mod fs;
pub(crate) mod streams;
