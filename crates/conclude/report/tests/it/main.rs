//! The report of a study like the first one, looked at from outside.

mod cross_run;
mod database;
mod documents;
mod machines;
mod markdown;
mod release;
mod sample;
mod storage;
