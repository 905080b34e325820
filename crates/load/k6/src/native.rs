//! Functions and names of modules that are written in Rust.

use rquickjs::function::IntoJsFunc;
use rquickjs::{Function, Object, Result};

/// Joins parts with `N` names in all.
pub(crate) const fn joined<const N: usize>(parts: &[&[&'static str]]) -> [&'static str; N] {
    let mut all = [""; N];
    let (mut count, mut part) = (0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            all[count] = parts[part][at];
            (count, at) = (count + 1, at + 1);
        }
        part += 1;
    }
    assert!(count == N, "there are as many names as places for them");
    all
}

/// The names of constants.
pub(crate) const fn names_of<const N: usize>(constants: &[(&'static str, &'static str); N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = constants[at].0;
        at += 1;
    }
    names
}

/// Objects with functions in Rust.
pub(crate) trait Native<'js> {
    /// Sets a function. The function has no name of its own: that would take half as much memory again, for each user.
    fn native<P>(&self, name: &str, function: impl IntoJsFunc<'js, P> + 'js) -> Result<()>;
}

impl<'js> Native<'js> for Object<'js> {
    fn native<P>(&self, name: &str, function: impl IntoJsFunc<'js, P> + 'js) -> Result<()> {
        self.set(name, Function::new(self.ctx().clone(), function)?)
    }
}
