//! A script with all modules that it imports: found, read, checked, and compiled once for all runtimes.

use crate::access;
use crate::bounds::Bounds;
use crate::fault::{Fault, Place};
use crate::files::{FileError, Files};
use crate::module::{Module, Text};
use crate::native::Natives;
use crate::nesting::on_stack;
use plimsoll_model::suggestion::did_you_mean;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Error, JsLifetime, Runtime};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// A script that can be run, by any number of runtimes on any threads.
pub struct Program {
    entry: String,
    modules: HashMap<String, Compiled>,
    exports: Vec<String>,
    natives: Arc<Natives>,
    files: Files,
    bounds: Bounds,
    /// The offsets at which missing names were used, by module, the engine's offset, and the message.
    uses: Mutex<HashMap<(String, usize, String), Option<usize>>>,
}

/// The most offsets that are looked for. For others, the engine's place has to do.
const MOST_USES: usize = 1000;

/// The stack on which the engine compiles, in bytes: it calls itself for each level of nesting, and tells if that takes
/// more. Only touched pages take memory.
const STACK_OF_COMPILER: usize = 256 * 1024 * 1024;

/// What the engine may need of a stack beyond its limit, which it does not check in every function.
const STACK_BEYOND_LIMIT: usize = 1024 * 1024;

/// The userdata of a runtime by which natives find its program.
#[derive(JsLifetime)]
struct CurrentProgram(Arc<Program>);

/// A compiled module.
struct Compiled {
    bytecode: Box<[u8]>,
    /// For the places of exceptions.
    source: String,
    code: String,
    /// The specifiers of its imports, and the names of these modules.
    links: HashMap<String, String>,
}

/// The source of a script.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// A file.
    File(&'a Path),
    /// A text. Its imports are relative to its name.
    Text {
        /// Its name, for places: `-`.
        name: &'a str,
        /// The text.
        text: &'a str,
    },
}

impl Program {
    /// Reads a script and all its imports, and compiles them.
    ///
    /// # Errors
    /// All faults of all modules, in the order of their places.
    pub fn load(entry: Entry<'_>, files: Files, natives: Natives) -> Result<Arc<Self>, Vec<Fault>> {
        let mut reading =
            Reading { files, natives, modules: BTreeMap::new(), links: HashMap::new(), faults: Vec::new() };
        let entry = reading.begin(entry);
        reading.check_names();
        let exports = reading.exports(&entry, &mut BTreeSet::new()).unwrap_or_default();
        let Reading { files, mut natives, modules, mut links, mut faults } = reading;
        if !faults.is_empty() {
            faults.sort_by_key(|fault| fault.place.as_ref().map(|at| (at.file.clone(), at.line, at.column)));
            // A module with faults is read again for each that imports it.
            faults.dedup();
            return Err(faults);
        }
        modules.values().for_each(|module| module.names.note_imports(&mut natives));
        let natives = Arc::new(natives);
        let bounds = Bounds::of(&modules.values().map(|module| &*module.source).collect::<Vec<&str>>());
        let compiled = on_stack(STACK_OF_COMPILER, || compile(&modules, &links, &natives));
        let mut bytecode = compiled.unwrap_or_else(|error| Err(unavailable(&error))).map_err(|fault| vec![fault])?;
        let compiled = modules.into_iter().filter_map(|(name, module)| {
            let links = links.remove(&name).unwrap_or_default();
            let bytecode = bytecode.remove(&name)?.into();
            Some((name, Compiled { bytecode, source: module.source, code: module.code, links }))
        });
        Ok(Arc::new(Self {
            modules: compiled.collect(),
            entry,
            exports: exports.into_iter().collect(),
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

    /// The exports of the script itself in alphabetical order, `default` included.
    #[must_use]
    pub fn exports(&self) -> &[String] {
        &self.exports
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

    /// Converts a place of the engine; None for other modules. `thrown` is the engine's message if it is about a name that
    /// was used at the place or behind it.
    pub(crate) fn place(&self, file: &str, line: usize, column: usize, thrown: Option<&str>) -> Option<Place> {
        let module = self.modules.get(file)?;
        let text = Text { name: file, source: &module.source, code: &module.code };
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

    /// The modules on a shortest way of imports from `module` back to itself, which they begin and end with; none if its
    /// imports lead elsewhere.
    pub(crate) fn circle(&self, module: &str) -> Option<Vec<String>> {
        let imports = |name: &str| -> BTreeSet<&str> {
            self.modules.get(name).into_iter().flat_map(|module| module.links.values()).map(String::as_str).collect()
        };
        let mut ways = VecDeque::from([vec![module]]);
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop_front() {
            for next in imports(way[way.len() - 1]) {
                let further: Vec<&str> = way.iter().copied().chain([next]).collect();
                if next == module {
                    return Some(further.into_iter().map(str::to_owned).collect());
                }
                if seen.insert(next) {
                    ways.push_back(further);
                }
            }
        }
        None
    }

    /// Gives a runtime its modules.
    pub(crate) fn provide(self: &Arc<Self>, runtime: &Runtime) {
        runtime.set_loader(Provider(Arc::clone(self)), Provider(Arc::clone(self)));
    }

    fn load_module<'js>(&self, ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<rquickjs::Module<'js, Declared>> {
        if let Some(native) = self.natives.declare(ctx, name) {
            return native;
        }
        let module = self.modules.get(name).ok_or_else(|| Error::new_loading(name))?;
        #[expect(unsafe_code, reason = "the engine reads bytecode as it is")]
        // SAFETY: the bytes were written by `compile`, in this process and by this version of the engine, and cannot
        // be reached from outside. The engine copies them.
        unsafe {
            rquickjs::Module::load(ctx.clone(), &module.bytecode)
        }
    }
}

/// A script whose modules are being read.
struct Reading {
    files: Files,
    natives: Natives,
    modules: BTreeMap<String, Module>,
    /// The imports of each module.
    links: Links,
    faults: Vec<Fault>,
}

type Links = HashMap<String, HashMap<String, String>>;

/// The target of an import.
enum Target {
    Native,
    /// The name of a module in a file.
    File(String),
}

impl Reading {
    /// Reads the entry and all its imports. Returns the name of the entry.
    fn begin(&mut self, entry: Entry<'_>) -> String {
        let (name, text) = match entry {
            Entry::File(path) => (named(path), None),
            Entry::Text { name, text } => (name.to_owned(), Some(text.to_owned())),
        };
        match text.map_or_else(|| self.read(&name), Ok) {
            Ok(text) => self.add(&name, text),
            Err(fault) => self.faults.push(fault),
        }
        name
    }

    fn read(&self, name: &str) -> Result<String, Fault> {
        let fault = |message, help| Fault { place: None, message, help };
        let unread = |error: FileError| fault(error.to_string(), error.help().map(str::to_owned));
        let content = self.files.read(Path::new(name)).map_err(unread)?;
        let no_text = |_| fault(format!("`{name}` is no text in UTF-8"), None);
        let text = String::from_utf8(content.to_vec()).map_err(no_text)?;
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }

    /// Adds a module and its imports.
    fn add(&mut self, name: &str, text: String) {
        let module = match Module::parse(name, text) {
            Ok(module) => module,
            Err(faults) => return self.faults.extend(faults),
        };
        let requests: Vec<_> =
            module.names.requests.iter().map(|(request, at)| (request.clone(), module.place(*at))).collect();
        self.modules.insert(name.to_owned(), module);
        for (request, place) in requests {
            if let Err(fault) = self.follow(name, &request, &place) {
                self.faults.push(fault);
            }
        }
    }

    /// Reads the module that `base` calls `request`, unless it is known.
    fn follow(&mut self, base: &str, request: &str, place: &Place) -> Result<(), Fault> {
        let target = self.resolve(base, request, place)?;
        let links = self.links.entry(base.to_owned()).or_default();
        match target {
            Target::Native => {
                links.insert(request.to_owned(), request.to_owned());
            }
            Target::File(name) => {
                links.insert(request.to_owned(), name.clone());
                if !self.modules.contains_key(&name) {
                    let here = |fault: Fault| {
                        let help = self.with_extension(&name, request).or(fault.help);
                        Fault { place: Some(place.clone()), help, ..fault }
                    };
                    let text = self.read(&name).map_err(here)?;
                    self.add(&name, text);
                }
            }
        }
        Ok(())
    }

    /// Help if only the extension is missing.
    fn with_extension(&self, name: &str, request: &str) -> Option<String> {
        let found = ["js", "ts"].iter().find(|extension| self.read(&format!("{name}.{extension}")).is_ok())?;
        Some(format!("did you mean `{request}.{found}`?"))
    }

    fn resolve(&self, base: &str, request: &str, place: &Place) -> Result<Target, Fault> {
        let fault = |message, help| Err(Fault { place: Some(place.clone()), message, help });
        if request.starts_with("./") || request.starts_with("../") || request.starts_with('/') {
            if Path::new(request).extension().is_some_and(|extension| extension == "json") {
                let help = format!("read it with `JSON.parse(open('{request}'))`");
                return fault(format!("`{request}` is no module"), Some(help));
            }
            return Ok(Target::File(beside(base, request)));
        }
        if self.natives.exports(request).is_some() {
            return Ok(Target::Native);
        }
        if let Some(reason) = self.natives.refusal(request) {
            return fault(reason, None);
        }
        if request.contains("://") {
            let help = "save it beside the script and import that file".to_owned();
            return fault(format!("`{request}` is not fetched: modules are files"), Some(help));
        }
        let help = did_you_mean(request, self.natives.names()).or_else(|| {
            let beside = Path::new(&beside(base, request)).exists();
            beside.then(|| format!("a file is imported as `./{request}`"))
        });
        fault(format!("there is no module `{request}`"), help)
    }

    /// Checks that every imported name is exported.
    fn check_names(&mut self) {
        let mut faults = Vec::new();
        for module in self.modules.values() {
            for import in &module.names.imports {
                let Some(exports) = self.exports_of(&module.name, &import.request, &mut BTreeSet::new()) else {
                    continue;
                };
                if exports.contains(&import.name) {
                    continue;
                }
                let message = match import.name.as_str() {
                    "default" => format!("`{}` has no default export", import.request),
                    name => format!("`{}` exports no `{name}`", import.request),
                };
                let help = did_you_mean(&import.name, exports.iter().map(String::as_str));
                faults.push(Fault { place: Some(module.place(import.offset)), message, help });
            }
        }
        self.faults.extend(faults);
    }

    /// All exports of a module, re-exports included; None if one of these modules could not be read. `seen` ends circles.
    fn exports(&self, name: &str, seen: &mut BTreeSet<String>) -> Option<BTreeSet<String>> {
        if let Some(exports) = self.natives.exports(name) {
            return Some(exports.iter().map(|name| (*name).to_owned()).collect());
        }
        let module = self.modules.get(name)?;
        if !seen.insert(name.to_owned()) {
            return Some(BTreeSet::new());
        }
        let mut found: BTreeSet<String> = module.names.exports.iter().cloned().collect();
        for star in &module.names.star_exports {
            let mut re_exported = self.exports_of(name, star, seen)?;
            re_exported.remove("default");
            found.append(&mut re_exported);
        }
        Some(found)
    }

    /// The exports of the module that `base` calls `request`.
    fn exports_of(&self, base: &str, request: &str, seen: &mut BTreeSet<String>) -> Option<BTreeSet<String>> {
        self.exports(self.links.get(base)?.get(request)?, seen)
    }
}

/// The name of the module that `base` calls `request`: its path, without detours.
pub(crate) fn beside(base: &str, request: &str) -> String {
    let folder = Path::new(base).parent().unwrap_or(Path::new(""));
    named(&folder.join(request))
}

fn named(path: &Path) -> String {
    let mut name = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if name.file_name().is_some() => {
                name.pop();
            }
            other => name.push(other),
        }
    }
    name.display().to_string()
}

/// The bytecode of every module.
fn compile(
    modules: &BTreeMap<String, Module>,
    links: &Links,
    natives: &Arc<Natives>,
) -> Result<HashMap<String, Vec<u8>>, Fault> {
    let codes = modules.values().map(|module| (module.name.clone(), module.code.clone()));
    let compiler = Compiler(Rc::new(Compiling {
        codes: codes.collect(),
        links: links.clone(),
        natives: Arc::clone(natives),
        written: RefCell::default(),
    }));
    let runtime = Runtime::new().map_err(|error| unavailable(&error))?;
    let context = Context::full(&runtime).map_err(|error| unavailable(&error))?;
    runtime.set_max_stack_size(STACK_OF_COMPILER - STACK_BEYOND_LIMIT);
    runtime.set_loader(compiler.clone(), compiler.clone());
    context.with(|ctx| {
        Natives::install(natives, &ctx);
        modules.keys().try_for_each(|name| {
            if compiler.0.written.borrow().contains_key(name) {
                return Ok(());
            }
            let compiled = compiler.0.compile(&ctx, name).catch(&ctx).map(|_| ());
            compiled.map_err(|error| engine_fault(modules, name, &error))
        })
    })?;
    Ok(compiler.0.written.take())
}

/// Compiles modules when the engine asks for them: when it compiles one that imports them.
#[derive(Clone)]
struct Compiler(Rc<Compiling>);

struct Compiling {
    codes: HashMap<String, String>,
    links: Links,
    natives: Arc<Natives>,
    written: RefCell<HashMap<String, Vec<u8>>>,
}

impl Compiling {
    fn compile<'js>(&self, ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<rquickjs::Module<'js, Declared>> {
        let code = self.codes.get(name).ok_or_else(|| Error::new_loading(name))?;
        let module = rquickjs::Module::declare(ctx.clone(), name, code.as_str())?;
        // Without the source, of which each runtime would have a copy: `Program` has it.
        let options = WriteOptions { strip_source: true, ..WriteOptions::default() };
        let bytecode = module.write(options)?;
        self.written.borrow_mut().insert(name.to_owned(), bytecode);
        Ok(module)
    }
}

fn unavailable(error: &dyn std::error::Error) -> Fault {
    Fault { place: None, message: format!("cannot start the engine: {error}"), help: None }
}

/// A fault that the engine finds in a module and the parser did not. Its line is right, its column may be off. One that
/// nests too deep for the engine's own compiler has no place.
fn engine_fault(modules: &BTreeMap<String, Module>, name: &str, error: &CaughtError<'_>) -> Fault {
    let unplaced = |message: String| Fault { place: None, message: format!("{name}: {message}"), help: None };
    let CaughtError::Exception(exception) = error else { return unplaced(error.to_string()) };
    let stack = exception.stack().unwrap_or_default();
    let mut places = crate::stack::places(&stack);
    let place = places.find_map(|(file, line, column)| {
        let text = modules.get(file)?.text();
        Some(text.place(text.engine_offset(line, column)?))
    });
    let message = exception.message().unwrap_or_default();
    match place {
        None => unplaced(message),
        place => Fault { place, message, help: None },
    }
}

/// Gives a runtime the modules of a program.
struct Provider(Arc<Program>);

type Attributes<'js> = Option<ImportAttributes<'js>>;

impl Resolver for Provider {
    fn resolve<'js>(&mut self, _: &Ctx<'js>, base: &str, name: &str, _: Attributes<'js>) -> rquickjs::Result<String> {
        // The entry is imported by its own name, from no module.
        if base.is_empty() {
            return Ok(name.to_owned());
        }
        let found = self.0.modules.get(base).and_then(|from| from.links.get(name).cloned());
        found.ok_or_else(|| Error::new_resolving(base, name))
    }
}

impl Loader for Provider {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Attributes<'js>,
    ) -> rquickjs::Result<rquickjs::Module<'js, Declared>> {
        self.0.load_module(ctx, name)
    }
}

impl Resolver for Compiler {
    fn resolve<'js>(&mut self, _: &Ctx<'js>, base: &str, name: &str, _: Attributes<'js>) -> rquickjs::Result<String> {
        let found = self.0.links.get(base).and_then(|links| links.get(name).cloned());
        found.ok_or_else(|| Error::new_resolving(base, name))
    }
}

impl Loader for Compiler {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Attributes<'js>,
    ) -> rquickjs::Result<rquickjs::Module<'js, Declared>> {
        match self.0.natives.declare(ctx, name) {
            Some(native) => native,
            None => self.0.compile(ctx, name),
        }
    }
}
