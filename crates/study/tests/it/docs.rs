//! The reference for users.
