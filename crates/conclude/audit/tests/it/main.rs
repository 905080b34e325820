//! Tables as people write them, from the outside.

mod bad_input;
mod seeds;
