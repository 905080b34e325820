//! Modules that are written in Rust, which scripts import by name.
//!
//! Only exports that a program imports are declared: each one takes memory in every runtime.

use crate::commonjs::Loaded;
use rquickjs::module::{Declarations, Declared, Exports, ModuleDef};
use rquickjs::{Ctx, Exception, JsLifetime, Module, Object, Result, Value};
use std::marker::PhantomData;
use std::sync::Arc;

/// A module in Rust. Its exports are known before anything runs, so loading a script finds an import that is missing.
pub trait NativeModule: 'static {
    /// The name by which scripts import it: `k6/http`.
    const NAME: &'static str;
    /// The names of its exports, with `default` if it has one.
    const EXPORTS: &'static [&'static str];

    /// Makes an object of all its exports, in each runtime anew. The object itself is the export `default`.
    ///
    /// Closures given to the engine cannot borrow: what belongs to a user is userdata of the context
    /// ([`rquickjs::Ctx::store_userdata`], in [`crate::Setup::prepare`]), and operations go through
    /// [`crate::EventLoop::of`].
    ///
    /// # Errors
    /// A value cannot be made.
    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>>;
}

type Declare = for<'js> fn(&Ctx<'js>, &str) -> Result<Module<'js, Declared>>;
type Evaluate = for<'js> fn(&Ctx<'js>) -> Result<Object<'js>>;

#[derive(Clone)]
struct Native {
    name: &'static str,
    exports: &'static [&'static str],
    /// The exports that the program imports.
    imported: Vec<&'static str>,
    declare: Declare,
    evaluate: Evaluate,
}

/// The modules in Rust that scripts can import, and the reasons why others are not supported.
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
    pub fn with<M: NativeModule>(self) -> Self {
        self.with_named::<M>(M::NAME)
    }

    /// With the module `M` under another name.
    #[must_use]
    pub fn with_named<M: NativeModule>(mut self, name: &'static str) -> Self {
        let declare: Declare = |ctx, name| Module::declare_def::<Definition<M>, _>(ctx.clone(), name);
        let evaluate = M::evaluate;
        self.modules.push(Native { name, exports: M::EXPORTS, imported: Vec::new(), declare, evaluate });
        self
    }

    /// With `refusal`, which gives the reason why a known module is not supported; None for an unknown one.
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

    /// Notes the names that the program imports from a module. Ignores modules that are not in Rust.
    pub(crate) fn import(&mut self, module: &str, is_imported: impl Fn(&str) -> bool) {
        let Some(native) = self.modules.iter_mut().find(|native| native.name == module) else { return };
        let (exports, imported) = (native.exports.iter().copied(), &mut native.imported);
        let more: Vec<_> = exports.filter(|name| is_imported(name) && !imported.contains(name)).collect();
        imported.extend(more);
    }

    /// Notes that the program may import anything: it may load modules while it runs.
    pub(crate) fn import_all(&mut self) {
        self.modules.iter_mut().for_each(|native| native.imported = native.exports.to_vec());
    }

    /// The object of a module, in a runtime whose script uses CommonJS.
    pub(crate) fn object<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Object<'js>> {
        let find = |natives: &CurrentNatives| Some(natives.0.find(name)?.evaluate);
        let Some(evaluate) = ctx.userdata::<CurrentNatives>().and_then(|natives| find(&natives)) else {
            return Err(rquickjs::Error::new_loading(name));
        };
        Loaded::shared_native(ctx, name, evaluate)
    }

    pub(crate) fn declare<'js>(&self, ctx: &Ctx<'js>, name: &str) -> Option<Result<Module<'js, Declared>>> {
        self.find(name).map(|module| (module.declare)(ctx, name))
    }

    /// Stores them in a context that is to declare them.
    pub(crate) fn install(natives: &Arc<Natives>, ctx: &Ctx<'_>) {
        let natives = CurrentNatives(Arc::clone(natives));
        assert!(ctx.store_userdata(natives).is_ok(), "nobody holds userdata of a context that is being made");
    }

    fn find(&self, name: &str) -> Option<&Native> {
        self.modules.iter().find(|module| module.name == name)
    }
}

/// The userdata of a context by which the engine finds its modules.
#[derive(JsLifetime)]
struct CurrentNatives(Arc<Natives>);

/// The definition of a module for the engine.
struct Definition<M>(PhantomData<M>);

impl<M: NativeModule> ModuleDef for Definition<M> {
    fn declare(declarations: &Declarations<'_>) -> Result<()> {
        imported(declarations.module())?.iter().try_for_each(|name| declarations.declare(*name).map(|_| ()))
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        let imported = imported(exports.module())?;
        let name: String = exports.module().name()?;
        let module = Loaded::shared_native(ctx, &name, M::evaluate)?;
        for name in imported {
            match name {
                "default" => exports.export(name, module.clone())?,
                name => exports.export(name, module.get::<_, Value<'js>>(name)?)?,
            };
        }
        Ok(())
    }
}

/// The exports of a module that the program imports.
fn imported(module: &Module<'_, Declared>) -> Result<Vec<&'static str>> {
    let (ctx, name) = (module.ctx(), module.name::<String>()?);
    let imported = ctx.userdata::<CurrentNatives>().and_then(|natives| Some(natives.0.find(&name)?.imported.clone()));
    imported.ok_or_else(|| Exception::throw_internal(ctx, "modules in Rust are for programs"))
}
