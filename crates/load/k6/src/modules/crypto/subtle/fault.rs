//! Exceptions of `crypto.subtle`, which have the names of the standard: <https://www.w3.org/TR/WebCryptoAPI>.

use crate::value::thrown_named;
use rquickjs::Ctx;

/// Why an operation fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    name: &'static str,
    why: String,
}

impl Fault {
    /// The operation itself fails.
    pub(super) fn operation(why: impl Into<String>) -> Fault {
        Fault { name: "OperationError", why: why.into() }
    }

    /// The data of a key is wrong.
    pub(super) fn data(why: impl Into<String>) -> Fault {
        Fault { name: "DataError", why: why.into() }
    }

    /// The key is not meant for this.
    pub(super) fn access(why: impl Into<String>) -> Fault {
        Fault { name: "InvalidAccessError", why: why.into() }
    }

    /// There is no such algorithm, or not for this operation.
    pub(super) fn unsupported(why: impl Into<String>) -> Fault {
        Fault { name: "NotSupportedError", why: why.into() }
    }

    /// The usages of a key do not fit.
    pub(super) fn syntax(why: impl Into<String>) -> Fault {
        Fault { name: "SyntaxError", why: why.into() }
    }

    /// The exception, thrown.
    pub(super) fn throw(&self, ctx: &Ctx<'_>) -> rquickjs::Error {
        thrown_named(ctx, self.name, &self.why)
    }
}
