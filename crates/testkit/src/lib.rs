//! Servers with known answers.
