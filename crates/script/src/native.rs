//! Modules that are written in Rust, and what else a script may import by name.

use rquickjs::module::{Declarations, Declared, Exports, ModuleDef};
use rquickjs::{Ctx, Module, Result};
use std::marker::PhantomData;

/// A module in Rust. Its names are known before anything runs, so that an import of one that it lacks is found where
/// the script is loaded.
pub trait NativeModule: 'static {
    /// As scripts import it: `k6/http`.
    const NAME: &'static str;
    /// Everything it exports; `default` among them, where it has one.
    const EXPORTS: &'static [&'static str];

    /// Gives each name its value, in each runtime anew.
    ///
    /// Closures given to the engine cannot borrow: what belongs to a user is userdata of the context
    /// ([`rquickjs::Ctx::store_userdata`], in [`crate::Setup::prepare`]), and operations go through
    /// [`crate::EventLoop::of`].
    ///
    /// # Errors
    /// A value cannot be made.
    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()>;
}

type Declare = for<'js> fn(&Ctx<'js>) -> Result<Module<'js, Declared>>;

#[derive(Clone, Copy)]
struct Native {
    name: &'static str,
    exports: &'static [&'static str],
    declare: Declare,
}

/// The modules in Rust that scripts can import, and those that they cannot have.
#[derive(Clone)]
pub struct Natives {
    modules: Vec<Native>,
    refusal: fn(&str) -> Option<String>,
}

impl Default for Natives {
    fn default() -> Self {
        Self { modules: Vec::new(), refusal: |_| None }
    }
}

impl Natives {
    /// With the module `M` as well.
    #[must_use]
    pub fn with<M: NativeModule>(mut self) -> Self {
        let declare: Declare = |ctx| Module::declare_def::<Definition<M>, _>(ctx.clone(), M::NAME);
        self.modules.push(Native { name: M::NAME, exports: M::EXPORTS, declare });
        self
    }

    /// With `refusal`, which says why a module that somebody may well ask for is not there: None for one it does not
    /// know.
    #[must_use]
    pub fn refusing(mut self, refusal: fn(&str) -> Option<String>) -> Self {
        self.refusal = refusal;
        self
    }

    pub(crate) fn exports(&self, name: &str) -> Option<&'static [&'static str]> {
        self.find(name).map(|module| module.exports)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.modules.iter().map(|module| module.name)
    }

    pub(crate) fn refusal(&self, name: &str) -> Option<String> {
        (self.refusal)(name)
    }

    pub(crate) fn declare<'js>(&self, ctx: &Ctx<'js>, name: &str) -> Option<Result<Module<'js, Declared>>> {
        self.find(name).map(|module| (module.declare)(ctx))
    }

    fn find(&self, name: &str) -> Option<&Native> {
        self.modules.iter().find(|module| module.name == name)
    }
}

/// What the engine wants to see of a module.
struct Definition<M>(PhantomData<M>);

impl<M: NativeModule> ModuleDef for Definition<M> {
    fn declare(declarations: &Declarations<'_>) -> Result<()> {
        M::EXPORTS.iter().try_for_each(|name| declarations.declare(*name).map(|_| ()))
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        M::evaluate(ctx, exports)
    }
}
