//! ARCHITECTURE.md names every module of every crate.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules that only tests see.
const FOR_TESTS: [&str; 3] = ["tests", "testing", "fingerprint"];

fn folders(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.is_dir()).collect()
}

fn name(path: &Path) -> String {
    path.file_stem().expect("a name").to_string_lossy().into_owned()
}

/// The modules at the top of a crate.
fn modules(source: &Path) -> Vec<String> {
    let entries = fs::read_dir(source).expect("sources").map(|entry| entry.expect("an entry").path());
    let is_module = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "rs") || path.join("mod.rs").exists();
    let named = entries.filter(is_module).map(|path| name(&path));
    named.filter(|name| name != "lib" && name != "main" && !FOR_TESTS.contains(&name.as_str())).collect()
}

#[test]
fn the_code_map_has_a_line_for_each_module() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the document");
    let mut missing = Vec::new();
    for group in folders(&root.join("crates")) {
        for package in folders(&group) {
            let heading = format!("**`{}/{}`**", name(&group), name(&package));
            let (_, map) = text.split_once(&heading).unwrap_or_else(|| panic!("no heading {heading}"));
            let map = map.split("\n**`").next().expect("the first part");
            let line = |module: &String| !map.contains(&format!("\n- `{module}`: "));
            let without = modules(&package.join("src")).into_iter().filter(line);
            missing.extend(without.map(|module| format!("{heading}: {module}")));
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}
