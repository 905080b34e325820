//! A script with all modules that it imports and requires, compiled once for all runtimes.

use crate::access;
use crate::bounds::Bounds;
use crate::commonjs::{self, Loaded};
use crate::compile::{Bytecode, compile};
use crate::fault::{Fault, ImportChain, Place};
use crate::files::Files;
use crate::graph::{Graph, facade_name};
use crate::import_meta;
use crate::module::Text;
use crate::native::Natives;
use crate::reading::{Entry, Read, Reading, WHOLE};
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::object::Filter;
use rquickjs::{Ctx, Error, JsLifetime, Module, Object, Promise, Runtime, Value};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// A script that can be run, by any number of runtimes on any threads.
pub struct Program {
    entry: String,
    /// True if modules of it may call `require`.
    uses_require: bool,
    modules: RwLock<Modules>,
    /// The exports of the script itself. Those of CommonJS are known when it was loaded once.
    exports: OnceLock<Vec<String>>,
    /// Set when a user has loaded it.
    loaded_once: OnceLock<()>,
    natives: Arc<Natives>,
    files: Files,
    bounds: Bounds,
    /// The offsets at which missing names were used, by module, the engine's offset, and the message.
    uses: Mutex<HashMap<(String, usize, String), Option<usize>>>,
}

/// The modules of a program: those that it surely loads, and those that a user has required while it was loaded.
struct Modules {
    graph: Graph,
    bytecode: Bytecode,
    /// Why something cannot be required, by the module that asks and its specifier: it is so for all users.
    refused: HashMap<(String, String), String>,
}

/// The most offsets that are looked for. For others, the engine's place has to do.
const MOST_USES: usize = 1000;

/// The userdata of a runtime by which natives find its program.
#[derive(JsLifetime)]
struct CurrentProgram(Arc<Program>);

/// The module that a call of `require` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Required {
    /// One in Rust.
    Native(String),
    CommonJs(String),
    Ecma(String),
}

impl Program {
    /// Reads a script and all its imports, and compiles them.
    ///
    /// # Errors
    /// All faults of all modules, in the order of their places.
    pub fn load(entry: Entry<'_>, files: Files, mut natives: Natives) -> Result<Arc<Self>, Vec<Fault>> {
        let (entry, Read { graph, new }) = Reading::new(Graph::default(), &files, &natives).script(entry)?;
        let uses_require = graph.uses_require();
        let exports = OnceLock::new();
        if let Some(found) = graph.exports(&entry, &natives) {
            exports.get_or_init(|| found.names.into_iter().collect());
        }
        if uses_require {
            natives.import_all();
        } else {
            graph.modules.values().for_each(|module| module.names.note_imports(&mut natives));
        }
        let natives = Arc::new(natives);
        let bytecode = compile(&graph, &new, &natives).map_err(|fault| vec![fault])?;
        let sources: Vec<&str> = graph.modules.values().map(|module| &*module.source).collect();
        // What is required while a user loads the script is not read yet.
        let bounds = if uses_require { Bounds::all() } else { Bounds::of(&sources) };
        Ok(Arc::new(Self {
            entry,
            uses_require,
            modules: RwLock::new(Modules { graph, bytecode, refused: HashMap::new() }),
            exports,
            loaded_once: OnceLock::new(),
            natives,
            files,
            bounds,
            uses: Mutex::default(),
        }))
    }

    /// The program of the runtime.
    ///
    /// # Errors
    /// The runtime has none.
    pub fn of(ctx: &Ctx<'_>) -> rquickjs::Result<Arc<Self>> {
        let found = ctx.userdata::<CurrentProgram>().map(|program| Arc::clone(&program.0));
        found.ok_or_else(|| rquickjs::Exception::throw_internal(ctx, "this native is for users of scripts"))
    }

    /// Stores it in a runtime, where [`Self::of`] finds it.
    pub(crate) fn install(program: &Arc<Self>, ctx: &Ctx<'_>) {
        Natives::install(&program.natives, ctx);
        let current = CurrentProgram(Arc::clone(program));
        assert!(ctx.store_userdata(current).is_ok(), "nobody holds userdata of a context that is being made");
    }

    /// The exports of the script itself in alphabetical order, `default` included. Those of a script of CommonJS are known when a user has
    /// loaded it.
    #[must_use]
    pub fn exports(&self) -> &[String] {
        self.exports.get().map_or(&[], Vec::as_slice)
    }

    /// The files that it may read, with those that were read so far, modules included.
    #[must_use]
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// The functions of the engine that have bounds in its runtimes.
    pub(crate) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// The name of the script itself.
    #[must_use]
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// True if modules of it may call `require`.
    pub(crate) fn uses_require(&self) -> bool {
        self.uses_require
    }

    /// True if a module of it has a `throw null`, or rejects a promise with null.
    pub(crate) fn throws_null(&self) -> bool {
        self.read(|modules| modules.graph.modules.values().any(|module| module.names.throws_null))
    }

    /// Has a runtime load the script. The promise is one of its exports.
    pub(crate) fn import<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Promise<'js>> {
        if self.read(|modules| modules.graph.is_common_js(&self.entry)) {
            return Module::import(ctx, facade_name(&self.entry, ""));
        }
        Module::import(ctx, self.entry.as_str())
    }

    /// The object with the exports of the script, of what [`Self::import`] resolves to.
    pub(crate) fn exported<'js>(&self, imported: Object<'js>) -> rquickjs::Result<Object<'js>> {
        let is_common_js = self.read(|modules| modules.graph.is_common_js(&self.entry));
        let exported = if is_common_js { exports_of(&imported)? } else { imported };
        self.loaded_once.get_or_init(|| ());
        if self.exports.get().is_none() {
            let names = exported.own_keys::<String>(Filter::new().string().enum_only());
            let names = names.collect::<rquickjs::Result<BTreeSet<String>>>()?;
            self.exports.get_or_init(|| names.into_iter().collect());
        }
        Ok(exported)
    }

    /// Finds what the module `base` requires as `request`, and reads it if it is new. A module that only a later user
    /// requires is none of the script, as in k6.
    ///
    /// # Errors
    /// The message of the exception.
    pub(crate) fn require(&self, base: &str, request: &str) -> Result<Required, String> {
        if let Some(known) = self.read(|modules| modules.known(base, request)) {
            return known;
        }
        let mut modules = self.modules.write().unwrap_or_else(PoisonError::into_inner);
        // Another user may have read it meanwhile.
        if let Some(known) = modules.known(base, request) {
            return known;
        }
        let read = Reading::new(modules.graph.clone(), &self.files, &self.natives).required(base, request);
        let read = read.and_then(|Read { graph, new }| {
            if !new.is_empty() && self.loaded_once.get().is_some() {
                let message = format!(
                    "`{request}` was not required when the script was loaded first, so it is no part of it: require it whatever `__VU` is"
                );
                return Err(vec![Fault::new(None, message)]);
            }
            let bytecode = compile(&graph, &new, &self.natives).map_err(|fault| vec![fault])?;
            Ok((graph, bytecode))
        });
        match read {
            Ok((graph, bytecode)) => {
                modules.graph = graph;
                modules.bytecode.extend(bytecode);
            }
            Err(faults) => {
                let message = faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n");
                modules.refused.insert((base.to_owned(), request.to_owned()), message);
            }
        }
        modules.known(base, request).unwrap_or_else(|| Err(format!("cannot require `{request}`")))
    }

    /// Evaluates a module that imports nothing in a runtime. Returns its namespace.
    pub(crate) fn evaluate<'js>(&self, ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<Object<'js>> {
        let (module, evaluated) = self.load_bytecode(ctx, name)?.eval()?;
        evaluated.result::<Value<'js>>().transpose()?;
        module.namespace()
    }

    pub(crate) fn has_module(&self, name: &str) -> bool {
        self.read(|modules| modules.graph.modules.contains_key(name))
    }

    /// The ECMAScript modules that the engine evaluates with one.
    pub(crate) fn evaluated_with(&self, name: &str) -> BTreeSet<String> {
        self.read(|modules| modules.graph.evaluated_with(name))
    }

    /// The places of the imports that led to a module, from the nearest one up to the script itself.
    pub(crate) fn import_chain(&self, name: &str) -> ImportChain {
        self.read(|modules| modules.graph.import_chain(name))
    }

    /// The modules on a shortest way of imports from `module` back to itself, which they begin and end with; none if its
    /// imports lead elsewhere.
    pub(crate) fn circle(&self, module: &str) -> Option<Vec<String>> {
        self.read(|modules| modules.graph.circle(module))
    }

    /// Converts a place of the engine; None for other modules. `thrown` is the engine's message if it is about a name that
    /// was used at the place or behind it.
    pub(crate) fn place(&self, file: &str, line: usize, column: usize, thrown: Option<&str>) -> Option<Place> {
        let module = self.read(|modules| modules.graph.modules.get(file).cloned())?;
        let text = module.text();
        let offset = text.engine_offset(line, column)?;
        let used = thrown.and_then(|message| self.use_of(&text, message, offset));
        Some(text.place(used.unwrap_or(offset)))
    }

    /// [`Text::use_of`], cached: an exception is often thrown again.
    fn use_of(&self, text: &Text<'_>, message: &str, offset: usize) -> Option<usize> {
        let name = access::name_in(message)?;
        let mut known = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (text.name.to_owned(), offset, message.to_owned());
        match known.get(&key) {
            Some(place) => *place,
            None if known.len() < MOST_USES => *known.entry(key).or_insert(text.use_of(name, offset)),
            None => None,
        }
    }

    /// Gives a runtime its modules.
    pub(crate) fn provide(self: &Arc<Self>, runtime: &Runtime) {
        runtime.set_loader(Provider(Arc::clone(self)), Provider(Arc::clone(self)));
    }

    fn load_module<'js>(&self, ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<Module<'js, Declared>> {
        if let Some(native) = self.natives.declare(ctx, name) {
            return native;
        }
        if let Some(facade) = self.read(|modules| modules.graph.facades.get(name).cloned()) {
            return commonjs::declare_facade(ctx, name, &facade);
        }
        let module = self.load_bytecode(ctx, name)?;
        if self.read(|modules| modules.graph.modules.get(name).is_some_and(|module| module.names.uses_import_meta)) {
            import_meta::install(ctx, &module, name)?;
        }
        Loaded::note(ctx, name, &module);
        Ok(module)
    }

    fn load_bytecode<'js>(&self, ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<Module<'js, Declared>> {
        let bytecode = self.read(|modules| modules.bytecode.get(name).cloned());
        let bytecode = bytecode.ok_or_else(|| Error::new_loading(name))?;
        #[expect(unsafe_code, reason = "the engine reads bytecode as it is")]
        // SAFETY: the bytes were written by `compile`, in this process and by this version of the engine, and cannot
        // be reached from outside. The engine copies them.
        unsafe {
            Module::load(ctx.clone(), &bytecode)
        }
    }

    fn read<T>(&self, look: impl FnOnce(&Modules) -> T) -> T {
        look(&self.modules.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The exports of a script of CommonJS. A value that is no object has no functions.
fn exports_of<'js>(facade: &Object<'js>) -> rquickjs::Result<Object<'js>> {
    let exported: Value<'js> = facade.get(WHOLE)?;
    exported.into_object().map_or_else(|| Object::new(facade.ctx().clone()), Ok)
}

impl Modules {
    /// What is known of what a module requires.
    fn known(&self, base: &str, request: &str) -> Option<Result<Required, String>> {
        if let Some(message) = self.refused.get(&(base.to_owned(), request.to_owned())) {
            return Some(Err(message.clone()));
        }
        let name = self.graph.link(base, request)?;
        Some(Ok(match self.graph.modules.contains_key(name) {
            false => Required::Native(name.to_owned()),
            true if self.graph.is_common_js(name) => Required::CommonJs(name.to_owned()),
            true => Required::Ecma(name.to_owned()),
        }))
    }
}

/// Gives a runtime the modules of a program.
struct Provider(Arc<Program>);

type Attributes<'js> = Option<ImportAttributes<'js>>;

impl Resolver for Provider {
    fn resolve<'js>(&mut self, _: &Ctx<'js>, base: &str, name: &str, _: Attributes<'js>) -> rquickjs::Result<String> {
        let found = self.0.read(|modules| modules.graph.engine_name(base, name));
        // The script is imported by its name, from no module, and so is a module that `require` has the engine load.
        let by_name = || (base.is_empty() || self.0.has_module(name)).then(|| name.to_owned());
        found.or_else(by_name).ok_or_else(|| Error::new_resolving(base, name))
    }
}

impl Loader for Provider {
    fn load<'js>(&mut self, ctx: &Ctx<'js>, name: &str, _: Attributes<'js>) -> rquickjs::Result<Module<'js, Declared>> {
        self.0.load_module(ctx, name)
    }
}
