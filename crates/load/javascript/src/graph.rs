//! The modules of a script, and which of them each one imports and requires.

use crate::fault::{ImportChain, Place};
use crate::module::{Kind, Module};
use crate::native::Natives;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// The modules of a script with their links. Clones share the modules.
#[derive(Clone, Default)]
pub(crate) struct Graph {
    pub(crate) modules: BTreeMap<String, Arc<Module>>,
    /// For each module its specifiers, with the names of the modules that they lead to. Those in Rust keep their name.
    pub(crate) links: HashMap<String, HashMap<String, String>>,
    /// What each facade exports, by its name for the engine.
    pub(crate) facades: HashMap<String, Arc<Facade>>,
    /// Where each module was imported or required first.
    pub(crate) imported_at: HashMap<String, Place>,
}

/// What an ECMAScript module imports from a module of CommonJS. To the engine it is a module of its own: it evaluates the
/// other one, and exports what it has then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facade {
    /// The module of CommonJS.
    pub(crate) module: String,
    /// The module that imports it; empty for the facade of the script itself.
    pub(crate) importer: String,
    /// The names that are imported.
    pub(crate) names: BTreeSet<String>,
    /// The names under which `module.exports` itself is imported.
    pub(crate) whole: BTreeSet<String>,
}

/// The exports of a module.
#[derive(Debug, Default)]
pub(crate) struct Exports {
    pub(crate) names: BTreeSet<String>,
    /// Re-exports of all that a module of CommonJS has, which is known when it runs: the re-exporting modules, with the
    /// specifier.
    pub(crate) open: Vec<(String, String)>,
}

impl Graph {
    /// The name under which the engine knows what `base` imports as `request`.
    pub(crate) fn engine_name(&self, base: &str, request: &str) -> Option<String> {
        let module = self.link(base, request)?;
        Some(if self.is_common_js(module) { facade_name(module, base) } else { module.to_owned() })
    }

    /// The facade through which `base` imports a module of CommonJS as `request`.
    pub(crate) fn facade(&self, base: &str, request: &str) -> Option<&Facade> {
        self.facades.get(&self.engine_name(base, request)?).map(Arc::as_ref)
    }

    pub(crate) fn link(&self, base: &str, request: &str) -> Option<&str> {
        self.links.get(base)?.get(request).map(String::as_str)
    }

    pub(crate) fn is_common_js(&self, module: &str) -> bool {
        self.modules.get(module).is_some_and(|module| module.kind == Kind::CommonJs)
    }

    /// True if what `base` imports as `request` is a module of CommonJS.
    pub(crate) fn leads_to_common_js(&self, base: &str, request: &str) -> bool {
        self.link(base, request).is_some_and(|module| self.is_common_js(module))
    }

    /// True if modules of it may call `require`.
    pub(crate) fn uses_require(&self) -> bool {
        self.modules.values().any(|module| module.kind == Kind::CommonJs || module.names.uses_require)
    }

    /// All exports of a module, re-exports included; None if one of these modules could not be read, or if it is one of
    /// CommonJS, whose exports are known when it runs.
    pub(crate) fn exports(&self, name: &str, natives: &Natives) -> Option<Exports> {
        let mut found = Exports::default();
        self.add_exports(name, natives, &mut found, &mut BTreeSet::new())?;
        Some(found)
    }

    /// `seen` ends circles.
    fn add_exports(
        &self,
        name: &str,
        natives: &Natives,
        found: &mut Exports,
        seen: &mut BTreeSet<String>,
    ) -> Option<()> {
        if let Some(exports) = natives.exports(name) {
            found.names.extend(exports.iter().map(|name| (*name).to_owned()));
            return Some(());
        }
        let module = self.modules.get(name).filter(|module| module.kind == Kind::Ecma)?;
        if !seen.insert(name.to_owned()) {
            return Some(());
        }
        for (star, _) in &module.names.star_exports {
            if self.leads_to_common_js(name, star) {
                found.open.push((name.to_owned(), star.clone()));
            } else {
                let mut re_exported = Exports::default();
                self.add_exports(self.link(name, star)?, natives, &mut re_exported, seen)?;
                re_exported.names.remove("default");
                found.names.append(&mut re_exported.names);
                found.open.append(&mut re_exported.open);
            }
        }
        found.names.extend(module.names.exports.iter().cloned());
        Some(())
    }

    /// Makes the facades through which a module imports modules of CommonJS.
    pub(crate) fn add_facades(&mut self, importer: &Arc<Module>) {
        let mut facades: BTreeMap<String, Facade> = BTreeMap::new();
        for request in importer.names.requests.keys().filter(|request| self.leads_to_common_js(&importer.name, request))
        {
            let Some(module) = self.link(&importer.name, request) else { continue };
            let facade = facades.entry(facade_name(module, &importer.name)).or_default();
            module.clone_into(&mut facade.module);
            importer.name.clone_into(&mut facade.importer);
            let imported = importer.names.imports.iter().filter(|import| import.request == *request);
            facade.names.extend(imported.map(|import| import.name.clone()));
            let whole = importer.names.namespaces.iter().filter(|all| all.request == *request);
            facade.whole.extend(whole.map(|all| all.name.clone()));
        }
        self.facades.extend(facades.into_iter().map(|(name, facade)| (name, Arc::new(facade))));
    }

    /// Notes that a name is imported through a re-export of all that a module of CommonJS has.
    pub(crate) fn import_through(&mut self, (importer, request): &(String, String), name: &str) {
        if let Some(facade) = self.engine_name(importer, request).and_then(|facade| self.facades.get_mut(&facade)) {
            Arc::make_mut(facade).names.insert(name.to_owned());
        }
    }

    /// The places of the imports that led to a module, from the nearest one up to the script itself.
    pub(crate) fn import_chain(&self, module: &str) -> ImportChain {
        let mut places: Vec<Place> = Vec::new();
        let mut module = module;
        while let Some(place) = self.imported_at.get(module) {
            if places.contains(place) {
                break;
            }
            places.push(place.clone());
            module = &place.file;
        }
        ImportChain(places)
    }

    /// The modules on a shortest way of imports from `module` back to itself, which they begin and end with; none if its
    /// imports lead elsewhere.
    pub(crate) fn circle(&self, module: &str) -> Option<Vec<String>> {
        let mut ways = VecDeque::from([vec![module]]);
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop_front() {
            for next in self.imports(way[way.len() - 1]) {
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

    /// The ECMAScript modules that a module imports, directly or through others, itself included: those that the engine
    /// evaluates with it.
    pub(crate) fn evaluated_with(&self, module: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::from([module.to_owned()]);
        let mut open = vec![module];
        while let Some(module) = open.pop() {
            let imported = self.imports(module).into_iter().filter(|name| !self.is_common_js(name));
            open.extend(imported.filter(|name| found.insert((*name).to_owned())));
        }
        found
    }

    /// The modules in files that a module imports.
    fn imports(&self, module: &str) -> BTreeSet<&str> {
        let Some(from) = self.modules.get(module) else { return BTreeSet::new() };
        let linked = from.names.requests.keys().filter_map(|request| self.link(module, request));
        linked.filter(|name| self.modules.contains_key(*name)).collect()
    }
}

/// The name for the engine of the facade through which `importer` imports a module of CommonJS.
pub(crate) fn facade_name(module: &str, importer: &str) -> String {
    format!("{module} for {importer}")
}
