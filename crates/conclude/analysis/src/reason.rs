//! Values that may be missing.

/// A value, or a short text that says why there is none.
pub type OrReason<T> = Result<T, String>;
