//! The protocol fed with bytes.
