//! Compiles modules once, into bytecode for all runtimes.

use crate::commonjs::{self, CurrentFacades};
use crate::fault::Fault;
use crate::graph::Graph;
use crate::native::Natives;
use crate::nesting::on_stack;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Error, Runtime};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// The stack on which the engine compiles, in bytes: it calls itself for each level of nesting, and tells if that takes
/// more. Only touched pages take memory.
const STACK_OF_COMPILER: usize = 256 * 1024 * 1024;

/// What the engine may need of a stack beyond its limit, which it does not check in every function.
const STACK_BEYOND_LIMIT: usize = 1024 * 1024;

/// The bytecode of modules, by name.
pub(crate) type Bytecode = HashMap<String, Arc<[u8]>>;

/// Compiles some modules of a script.
///
/// # Errors
/// A fault that only the engine finds, or the engine cannot be started.
pub(crate) fn compile(graph: &Graph, names: &BTreeSet<String>, natives: &Arc<Natives>) -> Result<Bytecode, Fault> {
    let compiled = on_stack(STACK_OF_COMPILER, || compile_here(graph, names, natives));
    let mut written = compiled.unwrap_or_else(|error| Err(unavailable(&error)))?;
    written.retain(|name, _| names.contains(name));
    Ok(written)
}

fn compile_here(graph: &Graph, names: &BTreeSet<String>, natives: &Arc<Natives>) -> Result<Bytecode, Fault> {
    let compiling = Compiling { graph: graph.clone(), natives: Arc::clone(natives), written: RefCell::default() };
    let compiler = Compiler(Rc::new(compiling));
    let runtime = Runtime::new().map_err(|error| unavailable(&error))?;
    let context = Context::full(&runtime).map_err(|error| unavailable(&error))?;
    runtime.set_max_stack_size(STACK_OF_COMPILER - STACK_BEYOND_LIMIT);
    runtime.set_loader(compiler.clone(), compiler.clone());
    context.with(|ctx| {
        Natives::install(natives, &ctx);
        CurrentFacades::install(&ctx);
        names.iter().try_for_each(|name| {
            if compiler.0.written.borrow().contains_key(name) {
                return Ok(());
            }
            let compiled = compiler.0.compile(&ctx, name).catch(&ctx).map(|_| ());
            compiled.map_err(|error| engine_fault(graph, name, &error))
        })
    })?;
    Ok(compiler.0.written.take())
}

/// Compiles modules when the engine asks for them: when it compiles one that imports them.
#[derive(Clone)]
struct Compiler(Rc<Compiling>);

struct Compiling {
    graph: Graph,
    natives: Arc<Natives>,
    written: RefCell<Bytecode>,
}

impl Compiling {
    fn compile<'js>(&self, ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<rquickjs::Module<'js, Declared>> {
        let module = self.graph.modules.get(name).ok_or_else(|| Error::new_loading(name))?;
        let code = module.engine_code(|request| self.graph.leads_to_common_js(name, request));
        let module = rquickjs::Module::declare(ctx.clone(), name, code)?;
        // Without the source, of which each runtime would have a copy: `Program` has it.
        let options = WriteOptions { strip_source: true, ..WriteOptions::default() };
        let bytecode = module.write(options)?;
        self.written.borrow_mut().insert(name.to_owned(), bytecode.into());
        Ok(module)
    }
}

fn unavailable(error: &dyn std::error::Error) -> Fault {
    Fault::new(None, format!("cannot start the engine: {error}"))
}

/// A fault that the engine finds in a module and the parser did not. Its line is right, its column may be off. One that
/// nests too deep for the engine's own compiler has no place.
fn engine_fault(graph: &Graph, name: &str, error: &CaughtError<'_>) -> Fault {
    let unplaced = |message: String| Fault::new(None, format!("{name}: {message}"));
    let CaughtError::Exception(exception) = error else { return unplaced(error.to_string()) };
    let stack = exception.stack().unwrap_or_default();
    let mut places = crate::stack::places(&stack);
    let place = places.find_map(|(file, line, column)| {
        let text = graph.modules.get(file)?.text();
        Some(text.place(text.engine_offset(line, column)?))
    });
    let message = exception.message().unwrap_or_default();
    match place {
        None => unplaced(message),
        Some(place) => {
            Fault { imported_at: Box::new(graph.import_chain(&place.file)), ..Fault::new(Some(place), message) }
        }
    }
}

type Attributes<'js> = Option<ImportAttributes<'js>>;

impl Resolver for Compiler {
    fn resolve<'js>(&mut self, _: &Ctx<'js>, base: &str, name: &str, _: Attributes<'js>) -> rquickjs::Result<String> {
        self.0.graph.engine_name(base, name).ok_or_else(|| Error::new_resolving(base, name))
    }
}

impl Loader for Compiler {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Attributes<'js>,
    ) -> rquickjs::Result<rquickjs::Module<'js, Declared>> {
        if let Some(native) = self.0.natives.declare(ctx, name) {
            return native;
        }
        match self.0.graph.facades.get(name) {
            Some(facade) => commonjs::declare_facade(ctx, name, facade),
            None => self.0.compile(ctx, name),
        }
    }
}
