//! `import.meta` of ECMAScript modules: `resolve`, and the URLs that it makes.

use crate::copies;
use crate::reading::{beside, named};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Function, Module, Result};
use std::path::{Path, absolute};

const SCHEME: &str = "file://";

/// Gives a module its `import.meta.resolve(specifier)`.
pub(crate) fn install<'js>(ctx: &Ctx<'js>, module: &Module<'js, Declared>, name: &str) -> Result<()> {
    let base = name.to_owned();
    let resolve = move |specifier: String| url(&base, &specifier);
    module.meta()?.set("resolve", Function::new(ctx.clone(), resolve)?)
}

/// True if a specifier is a path.
pub(crate) fn is_path(specifier: &str) -> bool {
    ["./", "../", "/"].iter().any(|start| specifier.starts_with(start))
}

/// The URL of what the module `base` calls `specifier`. A name, such as `k6/http`, and a URL stay as they are.
fn url(base: &str, specifier: &str) -> String {
    if !is_path(specifier) {
        return specifier.to_owned();
    }
    if copies::is_remote(base) {
        return copies::url(base, specifier);
    }
    let path = beside(base, specifier);
    let path = absolute(&path).map_or(path, |path| path.display().to_string());
    format!("{SCHEME}{path}")
}

/// The name of the file that the module `base` calls by a URL, None for what is no such URL. As that of `base` it begins
/// in the working directory, unless `base` is named by an absolute path.
pub(crate) fn file_of(base: &str, specifier: &str) -> Option<String> {
    let path = Path::new(specifier.strip_prefix(SCHEME)?);
    let here = std::env::current_dir().unwrap_or_default();
    let below = path.strip_prefix(here).ok().filter(|_| !Path::new(base).is_absolute());
    Some(named(below.unwrap_or(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_leads_back_to_the_file_that_it_was_made_of() {
        for (base, specifier, file) in [
            ("load.js", "./lib/a.js", "lib/a.js"),
            ("lib/deep/b.js", "../a.js", "lib/a.js"),
            ("load.js", "/srv/a.js", "/srv/a.js"),
            ("/srv/load.js", "./a.js", "/srv/a.js"),
        ] {
            let url = url(base, specifier);
            assert!(url.starts_with("file:///"), "{url}");
            assert_eq!(file_of(base, &url).as_deref(), Some(file), "{url}");
        }
    }

    #[test]
    fn names_and_other_urls_stay_as_they_are() {
        for specifier in ["k6/http", "https://jslib.example/a.js"] {
            assert_eq!((url("load.js", specifier).as_str(), file_of("load.js", specifier)), (specifier, None));
        }
    }
}
