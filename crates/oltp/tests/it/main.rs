//! Workloads on servers of PostgreSQL and MariaDB.

mod sbtest;
