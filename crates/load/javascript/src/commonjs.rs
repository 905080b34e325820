//! Modules of CommonJS while a user's script is loaded: `require`, and the facades through which ECMAScript modules import
//! them.
//!
//! A module of CommonJS is a function, which gets `module` and `exports`. It is called when the module is required first,
//! and whoever requires it meanwhile, in a circle, gets what it has exported so far.
//!
//! To the engine, an import of such a module is one of a module in Rust, its facade, whose evaluation requires it. So the
//! names of a facade are known before: they are those that are imported from it.
//!
//! An ECMAScript module that is required is evaluated at once, inside the evaluation of whoever requires it. The engine
//! (0.15.1) takes that as long as no module that it evaluates already is linked or evaluated a second time. These are the
//! ones that wait for a facade, and the ones in the stack of calls: [`Loaded::waiting`].
#![expect(elided_lifetimes_in_paths, reason = "what the bindings derive names types without their lifetimes")]
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

use crate::event_loop::{EventLoop, Operations};
use crate::graph::Facade;
use crate::native::Natives;
use crate::program::{Program, Required};
use rquickjs::function::This;
use rquickjs::module::{Declarations, Declared, Exports, ModuleDef};
use rquickjs::object::Property;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Error, Exception, Function, JsLifetime, Module, Object, Promise, Result, Value};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// How many calls `require` looks up the stack for the module that calls it.
const DEEPEST_CALLER: isize = 256;

/// The userdata of a runtime whose script uses CommonJS: its modules that were loaded so far.
#[derive(Default, JsLifetime)]
pub(crate) struct Loaded<'js> {
    common_js: RefCell<HashMap<String, State<'js>>>,
    /// The ECMAScript modules, by name.
    ecma: RefCell<HashMap<String, Handle<'js>>>,
    /// The objects of modules in Rust, by name.
    natives: RefCell<HashMap<String, Object<'js>>>,
    /// The ECMAScript modules whose evaluation waits for a facade.
    waiting: RefCell<Vec<String>>,
    /// The ECMAScript modules that were required, with what they import: they are evaluated.
    evaluated: RefCell<BTreeSet<String>>,
}

/// A module of CommonJS that was required.
#[derive(Clone, JsLifetime)]
enum State<'js> {
    /// Its object `module`.
    Begun(Object<'js>),
    /// The exception that it threw.
    Threw(Value<'js>),
}

/// A module as the engine knows it, which belongs to the context and stays as long as that does.
#[derive(Clone)]
struct Handle<'js>(Module<'js, Declared>);

#[expect(unsafe_code, reason = "the bindings have no such implementation for modules")]
// SAFETY: the lifetime of the type is the one of the module in it, and `Changed` differs in nothing else.
unsafe impl<'js> JsLifetime<'js> for Handle<'js> {
    type Changed<'to> = Handle<'to>;
}

/// Prepares the runtime of a script that uses CommonJS: `require` is a global function.
pub(crate) fn install<P: Operations>(ctx: &Ctx<'_>, program: &Program) -> Result<()> {
    if !program.uses_require() {
        return Ok(());
    }
    CurrentFacades::install(ctx);
    assert!(ctx.store_userdata(Loaded::default()).is_ok(), "nobody holds userdata of a context that is being made");
    ctx.globals().prop("require", Property::from(Function::new(ctx.clone(), require::<P>)?).writable().configurable())
}

/// `require(specifier)`. It works only while the script is loaded, as `open()`.
fn require<'js, P: Operations>(ctx: Ctx<'js>, specifier: String) -> Result<Value<'js>> {
    if !EventLoop::<P>::of(&ctx)?.is_loading() {
        let message = "require() works only while the script is loaded: call it outside of functions";
        return Err(Exception::throw_message(&ctx, message));
    }
    let program = Program::of(&ctx)?;
    // The caller may be a function of the engine, as in `names.map(require)`, or code of `eval`.
    let callers = (0..DEEPEST_CALLER).filter_map(|level| ctx.script_or_module_name(level)?.to_string().ok());
    let callers: Vec<String> = callers.filter(|name| program.has_module(name)).collect();
    let base = callers.first().map_or(program.entry(), String::as_str);
    match program.require(base, &specifier) {
        Ok(Required::Native(name)) => Ok(Natives::object(&ctx, &name)?.into_value()),
        Ok(Required::CommonJs(name)) => Loaded::common_js(&ctx, &program, &name),
        Ok(Required::Ecma(name)) => Loaded::ecma(&ctx, &program, &name, callers),
        Err(fault) => Err(Exception::throw_message(&ctx, &fault)),
    }
}

impl<'js> Loaded<'js> {
    /// Does something with what a runtime has loaded; None if its script does not use CommonJS. Nothing else may look for
    /// userdata meanwhile.
    fn with<T>(ctx: &Ctx<'js>, work: impl FnOnce(&Self) -> T) -> Option<T> {
        ctx.userdata::<Self>().map(|loaded| work(&loaded))
    }

    /// Forgets all, which keeps memory, when the script is loaded and `require` works no longer.
    pub(crate) fn forget(ctx: &Ctx<'js>) {
        let common_js = Self::with(ctx, |loaded| loaded.common_js.take());
        let natives = Self::with(ctx, |loaded| loaded.natives.take());
        Self::with(ctx, |loaded| loaded.ecma.take());
        drop((common_js, natives));
    }

    /// Notes an ECMAScript module that the engine has loaded.
    pub(crate) fn note(ctx: &Ctx<'js>, name: &str, module: &Module<'js, Declared>) {
        let handle = Handle(module.clone());
        Self::with(ctx, |loaded| loaded.ecma.borrow_mut().insert(name.to_owned(), handle));
    }

    /// The object of a module in Rust: the same for all that import and require it.
    pub(crate) fn shared_native(
        ctx: &Ctx<'js>,
        name: &str,
        make: impl FnOnce(&Ctx<'js>) -> Result<Object<'js>>,
    ) -> Result<Object<'js>> {
        if let Some(known) = Self::with(ctx, |loaded| loaded.natives.borrow().get(name).cloned()).flatten() {
            return Ok(known);
        }
        let object = make(ctx)?;
        Self::with(ctx, |loaded| loaded.natives.borrow_mut().insert(name.to_owned(), object.clone()));
        Ok(object)
    }

    /// What a module of CommonJS exports. It is evaluated if it was not yet.
    fn common_js(ctx: &Ctx<'js>, program: &Program, name: &str) -> Result<Value<'js>> {
        let known = Self::with(ctx, |loaded| loaded.common_js.borrow().get(name).cloned()).flatten();
        match known {
            Some(State::Begun(module)) => return module.get("exports"),
            Some(State::Threw(value)) => return Err(ctx.throw(value)),
            None => {}
        }
        let module = Object::new(ctx.clone())?;
        let exports = Object::new(ctx.clone())?;
        module.set("exports", exports.clone())?;
        let note = |state| Self::with(ctx, |loaded| loaded.common_js.borrow_mut().insert(name.to_owned(), state));
        note(State::Begun(module.clone()));
        let evaluate = || {
            let function: Function<'js> = program.evaluate(ctx, name)?.get("default")?;
            function.call::<_, Value<'js>>((This(exports.clone()), module.clone(), exports))?;
            let exported: Value<'js> = module.get("exports")?;
            if exported.is_null() || exported.is_undefined() {
                let found = exported.type_name();
                let message =
                    format!("`{name}` exports nothing: expected an object in `module.exports`, found {found}");
                return Err(Exception::throw_type(ctx, &message));
            }
            Ok(exported)
        };
        evaluate().map_err(|error| {
            let Error::Exception = error else {
                Self::with(ctx, |loaded| loaded.common_js.borrow_mut().remove(name));
                return error;
            };
            let thrown = ctx.catch();
            note(State::Threw(thrown.clone()));
            ctx.throw(thrown)
        })
    }

    /// The namespace of an ECMAScript module. It is evaluated if it was not yet; what it waits for at its top is not
    /// waited for. `callers` are the modules in the stack of calls.
    fn ecma(ctx: &Ctx<'js>, program: &Program, name: &str, callers: Vec<String>) -> Result<Value<'js>> {
        let evaluated_with = program.evaluated_with(name);
        let known = Self::with(ctx, |loaded| {
            let evaluated = loaded.evaluated.borrow();
            let mut waiting = loaded.waiting.borrow().clone();
            waiting.extend(callers.into_iter().filter(|caller| !evaluated.contains(caller)));
            let circular = waiting.into_iter().find(|module| evaluated_with.contains(module));
            (circular, loaded.ecma.borrow().get(name).cloned(), loaded.ecma.borrow().keys().cloned().collect())
        });
        let (circular, handle, before): (_, _, BTreeSet<String>) = known.unwrap_or_default();
        match (circular, handle) {
            // It has what was evaluated of it so far.
            (Some(_), Some(Handle(module))) => return Ok(module.namespace()?.into_value()),
            (Some(circular), None) => {
                let message =
                    format!("cannot require `{name}`: it imports `{circular}`, which waits for what requires it");
                return Err(Exception::throw_message(ctx, &message));
            }
            (None, _) => {}
        }
        let imported = ignored(Module::import(ctx, name)?)?;
        if imported.state() == PromiseState::Rejected {
            // The engine has dropped what it could not load.
            Self::with(ctx, |loaded| loaded.ecma.borrow_mut().retain(|module, _| before.contains(module)));
        }
        let Some(Handle(module)) = Self::with(ctx, |loaded| loaded.ecma.borrow().get(name).cloned()).flatten() else {
            return imported.result().unwrap_or(Err(Error::new_loading(name)));
        };
        // The promise of an import is settled later, that of the evaluation is so by now.
        let (module, evaluated) = module.eval()?;
        if let PromiseState::Rejected = ignored(evaluated.clone())?.state() {
            return evaluated.result().unwrap_or(Err(Error::new_loading(name)));
        }
        Self::with(ctx, |loaded| loaded.evaluated.borrow_mut().extend(evaluated_with));
        Ok(module.namespace()?.into_value())
    }
}

/// The promise, whose rejection somebody looks at.
fn ignored<'js>(promise: Promise<'js>) -> Result<Promise<'js>> {
    let nothing = Function::new(promise.ctx().clone(), || ())?;
    promise.then()?.call::<_, Value<'js>>((This(promise.clone()), nothing.clone(), nothing))?;
    Ok(promise)
}

/// The userdata of a context by which the engine finds the facades that it is to declare, by name.
#[derive(Default, JsLifetime)]
pub(crate) struct CurrentFacades(RefCell<HashMap<String, Arc<Facade>>>);

impl CurrentFacades {
    pub(crate) fn install(ctx: &Ctx<'_>) {
        let installed = ctx.store_userdata(Self::default());
        assert!(installed.is_ok(), "nobody holds userdata of a context that is being made");
    }

    /// The facade of the module that is declared or evaluated.
    fn find(module: &Module<'_, Declared>) -> Result<Arc<Facade>> {
        let name: String = module.name()?;
        let facades = module.ctx().userdata::<Self>();
        let found = facades.and_then(|facades| facades.0.borrow().get(&name).cloned());
        found.ok_or_else(|| Error::new_loading(&name))
    }
}

/// Declares a facade.
pub(crate) fn declare_facade<'js>(ctx: &Ctx<'js>, name: &str, facade: &Arc<Facade>) -> Result<Module<'js, Declared>> {
    if let Some(current) = ctx.userdata::<CurrentFacades>() {
        current.0.borrow_mut().insert(name.to_owned(), Arc::clone(facade));
    }
    Module::declare_def::<FacadeDefinition, _>(ctx.clone(), name)
}

/// The definition of a facade for the engine.
struct FacadeDefinition;

impl ModuleDef for FacadeDefinition {
    fn declare(declarations: &Declarations<'_>) -> Result<()> {
        let facade = CurrentFacades::find(declarations.module())?;
        let mut names = facade.names.iter().chain(&facade.whole);
        names.try_for_each(|name| declarations.declare(name.as_str()).map(|_| ()))
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        let facade = CurrentFacades::find(exports.module())?;
        let program = Program::of(ctx)?;
        Loaded::with(ctx, |loaded| loaded.waiting.borrow_mut().push(facade.importer.clone()));
        let exported = Loaded::common_js(ctx, &program, &facade.module);
        Loaded::with(ctx, |loaded| loaded.waiting.borrow_mut().pop());
        let exported = exported?;
        for name in &facade.whole {
            exports.export(name.as_str(), exported.clone())?;
        }
        for name in facade.names.difference(&facade.whole) {
            exports.export(name.as_str(), named(ctx, &exported, name)?)?;
        }
        Ok(())
    }
}

/// An export of a module of CommonJS. Of a name that it does not have it is undefined, as in k6. Its default export is
/// `default` if it has that, as modules have that were compiled from others, and else all of `module.exports`.
fn named<'js>(ctx: &Ctx<'js>, exported: &Value<'js>, name: &str) -> Result<Value<'js>> {
    match exported.as_object() {
        Some(object) if name != "default" || object.contains_key(name)? => object.get(name),
        _ if name == "default" => Ok(exported.clone()),
        _ => Ok(Value::new_undefined(ctx.clone())),
    }
}
