//! The service as its users have it: the program, by HTTP, with a PostgreSQL of its own.

mod life;
mod pages;
mod refusals;
mod service;
mod settings;
mod whole_plan;
