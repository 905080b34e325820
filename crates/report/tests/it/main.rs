//! The report of a study like the first one, looked at from outside.

mod between;
mod documents;
mod sample;
mod storage;
