//! Workloads on servers of PostgreSQL and MariaDB.

mod own;
mod sbtest;
