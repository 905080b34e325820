//! Reads the modules of a script, finds what they import, and checks the names.

use crate::copies::{self, Copies, RemoteImport};
use crate::fault::{Fault, Place};
use crate::files::{FileError, Files};
use crate::graph::{Facade, Graph, facade_name};
use crate::import_meta;
use crate::module::Module;
use crate::native::Natives;
use plimsoll_model::suggestion::did_you_mean;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

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

/// A script whose modules are being read.
pub(crate) struct Reading<'a> {
    files: &'a Files,
    natives: &'a Natives,
    graph: Graph,
    /// The names of the modules that were read.
    read: BTreeSet<String>,
    /// The URLs of remote modules, if they are looked for: those without a copy are no fault then.
    remote: Option<BTreeSet<String>>,
    faults: Vec<Fault>,
}

/// What was read.
pub(crate) struct Read {
    /// All modules, those that were known before included.
    pub(crate) graph: Graph,
    /// The names of those that were not.
    pub(crate) new: BTreeSet<String>,
}

/// The target of an import.
enum Target {
    Native,
    /// The name of a module in a file.
    File(String),
}

impl<'a> Reading<'a> {
    /// Reads modules besides those of `graph`.
    pub(crate) fn new(graph: Graph, files: &'a Files, natives: &'a Natives) -> Self {
        Self { files, natives, graph, read: BTreeSet::new(), remote: None, faults: Vec::new() }
    }

    /// Reads a script with all modules that it surely loads. Returns its name.
    ///
    /// # Errors
    /// All faults of all modules, in the order of their places.
    pub(crate) fn script(mut self, entry: Entry<'_>) -> Result<(String, Read), Vec<Fault>> {
        let name = self.begin(entry);
        let read = self.finish(|reading| reading.check_script(&name))?;
        Ok((name, read))
    }

    /// Reads the script itself, and what it surely loads. Returns its name.
    fn begin(&mut self, entry: Entry<'_>) -> String {
        let (name, text) = match entry {
            Entry::File(path) => (named(path), None),
            Entry::Text { name, text } => (name.to_owned(), Some(text.to_owned())),
        };
        match text.map_or_else(|| self.text(&name), Ok) {
            Ok(text) => self.add(&name, text),
            Err(fault) => self.faults.push(fault),
        }
        name
    }

    /// Reads what a module requires while it runs.
    ///
    /// # Errors
    /// There is no such module, or the faults of what was read for it.
    pub(crate) fn required(mut self, base: &str, request: &str) -> Result<Read, Vec<Fault>> {
        self.follow(base, request, None).map_err(|fault| vec![fault])?;
        self.finish(|_| ())
    }

    fn finish(mut self, check: impl FnOnce(&mut Self)) -> Result<Read, Vec<Fault>> {
        let new: Vec<Arc<Module>> = self.read.iter().filter_map(|name| self.graph.modules.get(name)).cloned().collect();
        new.iter().for_each(|module| self.graph.add_facades(module));
        new.iter().for_each(|module| self.check_names(module));
        check(&mut self);
        let Self { graph, read, mut faults, .. } = self;
        if faults.is_empty() {
            return Ok(Read { graph, new: read });
        }
        for fault in &mut faults {
            let chain = fault.place.as_ref().map(|place| graph.import_chain(&place.file));
            *fault.imported_at = chain.unwrap_or_default();
        }
        faults.sort_by_key(|fault| fault.place.as_ref().map(|at| (at.file.clone(), at.line, at.column)));
        // A module with faults is read again for each that imports it.
        faults.dedup();
        Err(faults)
    }

    fn text(&self, name: &str) -> Result<String, Fault> {
        let fault = |message: String, help| Fault { help, ..Fault::new(None, message) };
        let unread = |error: FileError| fault(error.to_string(), error.help().map(str::to_owned));
        let content = match self.files.copies().filter(|_| copies::is_remote(name)) {
            Some(copies) => self.copy(copies, name),
            None => self.files.read(Path::new(name)),
        };
        let content = content.map_err(unread)?;
        let no_text = |_| fault(format!("`{name}` is no text in UTF-8"), None);
        let text = String::from_utf8(content.to_vec()).map_err(no_text)?;
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }

    /// The content of the copy of a remote module.
    fn copy(&self, copies: &Copies, url: &str) -> Result<Arc<[u8]>, FileError> {
        let content = self.files.read_copy(copies, url)?;
        if self.remote.is_none() {
            copies.check(url, &content)?;
        }
        Ok(content)
    }

    /// Adds a module, and what it imports.
    fn add(&mut self, name: &str, text: String) {
        let module = match Module::parse(name, text) {
            Ok(module) => Arc::new(module),
            Err(faults) => return self.faults.extend(faults),
        };
        self.read.insert(name.to_owned());
        self.graph.modules.insert(name.to_owned(), Arc::clone(&module));
        let mut requests: BTreeMap<&str, usize> = BTreeMap::new();
        let imported = module.names.requests.iter().map(|(request, at)| (request.as_str(), *at));
        let required = module.names.required.iter().map(|(request, at)| (request.as_str(), *at));
        let looked_for =
            module.names.maybe_required.iter().filter(|(request, _)| {
                self.remote.is_some() && (copies::is_remote(request) || copies::is_remote(name))
            });
        let looked_for = looked_for.map(|(request, at)| (request.as_str(), *at));
        for (request, at) in imported.chain(required).chain(looked_for) {
            requests.entry(request).or_insert(at);
        }
        for (request, at) in requests {
            let place = module.place(at);
            if let Err(fault) = self.follow(name, request, Some(&place)) {
                self.faults.push(fault);
            }
        }
    }

    /// Reads the module that `base` calls `request`, unless it is known.
    fn follow(&mut self, base: &str, request: &str, place: Option<&Place>) -> Result<(), Fault> {
        let target = self.resolve(base, request).map_err(|fault| Fault { place: place.cloned(), ..fault })?;
        let links = self.graph.links.entry(base.to_owned()).or_default();
        match target {
            Target::Native => {
                links.insert(request.to_owned(), request.to_owned());
            }
            Target::File(name) => {
                links.insert(request.to_owned(), name.clone());
                if self.passes_over(&name) {
                    return Ok(());
                }
                if !self.graph.modules.contains_key(&name) {
                    let here = |fault: Fault| {
                        let help = self.with_extension(&name, request).or(fault.help);
                        Fault { place: place.cloned(), help, ..fault }
                    };
                    let text = self.text(&name).map_err(here)?;
                    if let Some(place) = place {
                        self.graph.imported_at.entry(name.clone()).or_insert_with(|| place.clone());
                    }
                    self.add(&name, text);
                }
            }
        }
        Ok(())
    }

    /// Notes a remote module if those are looked for. Returns true if it has no copy, which is no fault then.
    fn passes_over(&mut self, name: &str) -> bool {
        let (Some(remote), Some(copies)) = (&mut self.remote, self.files.copies()) else { return false };
        if !copies::is_remote(name) {
            return false;
        }
        remote.insert(name.to_owned());
        !copies.file(name).exists()
    }

    /// Help if only the extension is missing.
    fn with_extension(&self, name: &str, request: &str) -> Option<String> {
        let found = ["js", "ts"].iter().find(|extension| self.text(&format!("{name}.{extension}")).is_ok())?;
        Some(format!("did you mean `{request}.{found}`?"))
    }

    fn resolve(&self, base: &str, request: &str) -> Result<Target, Fault> {
        let fault = |message, help| Err(Fault { help, ..Fault::new(None, message) });
        if let Some(file) = import_meta::file_of(base, request) {
            return Ok(Target::File(file));
        }
        if import_meta::is_path(request) {
            if Path::new(request).extension().is_some_and(|extension| extension == "json") {
                let help = format!("read it with `JSON.parse(open('{request}'))`");
                return fault(format!("`{request}` is no module"), Some(help));
            }
            let is_remote = copies::is_remote(base);
            return Ok(Target::File(if is_remote { copies::url(base, request) } else { beside(base, request) }));
        }
        if copies::is_remote(request) && self.files.copies().is_some() {
            return Ok(Target::File(copies::url(base, request)));
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

    /// Checks that every name that a module imports is exported. Names of CommonJS are known when it runs.
    fn check_names(&mut self, module: &Module) {
        for import in &module.names.imports {
            let facade = self.graph.facade(&module.name, &import.request);
            if facade.is_some_and(|facade| facade.whole.contains(&import.name)) {
                let (name, request) = (&import.name, &import.request);
                let message = format!("`{name}` is a name of `{request}` here, and elsewhere all of it");
                let help = Some("give the whole of a CommonJS module a name that it does not have".to_owned());
                self.faults.push(Fault { help, ..Fault::new(Some(module.place(import.offset)), message) });
                continue;
            }
            let target = self.graph.link(&module.name, &import.request);
            let Some(exports) = target.and_then(|target| self.graph.exports(target, self.natives)) else { continue };
            if exports.names.contains(&import.name) {
                continue;
            }
            if let Some(open) = exports.open.first().filter(|_| import.name != "default") {
                self.graph.import_through(open, &import.name);
                continue;
            }
            let message = match import.name.as_str() {
                "default" => format!("`{}` has no default export", import.request),
                name => format!("`{}` exports no `{name}`", import.request),
            };
            let help = did_you_mean(&import.name, exports.names.iter().map(String::as_str));
            self.faults.push(Fault { help, ..Fault::new(Some(module.place(import.offset)), message) });
        }
        let namespaces = module.names.namespaces.iter();
        let whole = namespaces.filter_map(|all| self.graph.link(&module.name, &all.request).map(str::to_owned));
        for target in whole.collect::<BTreeSet<String>>() {
            self.check_closed(&target);
        }
    }

    /// Gives a script of CommonJS its facade, and checks that the exports of any other script are known.
    fn check_script(&mut self, name: &str) {
        if self.graph.is_common_js(name) {
            let whole = BTreeSet::from([WHOLE.to_owned()]);
            let facade = Facade { module: name.to_owned(), whole, ..Facade::default() };
            self.graph.facades.insert(facade_name(name, ""), Arc::new(facade));
        }
        self.check_closed(name);
    }

    /// Checks that all exports of a module are known: it is imported as a whole.
    fn check_closed(&mut self, name: &str) {
        let Some(exports) = self.graph.exports(name, self.natives) else { return };
        for (module, request) in exports.open {
            let Some(module) = self.graph.modules.get(&module) else { continue };
            let at = module.names.star_exports.iter().find(|(star, _)| *star == request).map_or(0, |(_, at)| *at);
            let message = format!(
                "expected the names of what is exported, since `{request}` is a CommonJS module: what it has is known when it runs"
            );
            let help = Some(format!("write `export {{ name, … }} from '{request}'`"));
            self.faults.push(Fault { help, ..Fault::new(Some(module.place(at)), message) });
        }
    }
}

/// The remote modules that a script imports, in the order of their URLs, with what there is of their copies; and the
/// faults of what could be read. Whether a copy was taken does not matter.
#[must_use]
pub fn remote_imports(entry: Entry<'_>, files: &Files, natives: &Natives) -> (Vec<RemoteImport>, Vec<Fault>) {
    let mut reading = Reading { remote: Some(BTreeSet::new()), ..Reading::new(Graph::default(), files, natives) };
    reading.begin(entry);
    let urls = reading.remote.take().unwrap_or_default();
    let faults = reading.finish(|_| ()).err().unwrap_or_default();
    let import = |url: String| {
        let copies = files.copies()?;
        Some(copies.import(&url, files.read_copy(copies, &url).ok().as_deref()))
    };
    (urls.into_iter().filter_map(import).collect(), faults)
}

/// The export of the facade of a script of CommonJS that holds its `module.exports`.
pub(crate) const WHOLE: &str = "module.exports";

/// The name of the module that `base` calls `request`: its path, without detours.
pub(crate) fn beside(base: &str, request: &str) -> String {
    let folder = Path::new(base).parent().unwrap_or(Path::new(""));
    named(&folder.join(request))
}

pub(crate) fn named(path: &Path) -> String {
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
