//! Natives of scripts, with operations that a test answers.

mod calls;
mod common;
mod sockets;
