//! `.proto` files, compiled without `protoc`.

use crate::public_imports::{self, PublicImports};
use prost_reflect::DescriptorPool;
use protox::Error;
use protox::file::{File, FileResolver};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;

/// The types that these files define, with those that they import; `resolver` opens the files.
///
/// # Errors
/// One cannot be opened, or does not compile. Only the debug text of the error has the place of the fault.
pub fn compile(
    resolver: impl FileResolver + 'static,
    files: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<DescriptorPool, Error> {
    let opener = Opener { resolver, opened: RefCell::default(), public: RefCell::default() };
    let mut compiler = protox::Compiler::with_file_resolver(opener);
    compiler.include_imports(true);
    compiler.open_files(files)?;
    Ok(compiler.descriptor_pool())
}

/// Opens files, and gives each the imports that public imports of others bring.
struct Opener<R> {
    resolver: R,
    /// Files that were opened for their imports alone.
    opened: RefCell<HashMap<String, File>>,
    public: RefCell<PublicImports>,
}

impl<R: FileResolver> Opener<R> {
    /// The public imports of a file; none where it cannot be read, which the compiler will say itself.
    fn public_of(&self, name: &str) -> Vec<String> {
        let mut opened = self.opened.borrow_mut();
        if !opened.contains_key(name) {
            let Ok(file) = self.resolver.open_file(name) else { return Vec::new() };
            opened.insert(name.to_owned(), file);
        }
        public_imports::of_file(opened[name].file_descriptor_proto()).unwrap_or_default()
    }
}

impl<R: FileResolver> FileResolver for Opener<R> {
    fn resolve_path(&self, path: &Path) -> Option<String> {
        self.resolver.resolve_path(path)
    }

    fn open_file(&self, name: &str) -> Result<File, Error> {
        let known = self.opened.borrow().get(name).cloned();
        let file = known.map_or_else(|| self.resolver.open_file(name), Ok)?;
        let imports = &file.file_descriptor_proto().dependency;
        let brought = self.public.borrow_mut().brought(imports, |name| self.public_of(name));
        let brought = brought.map_err(|fault| Error::new(TooMany(fault)))?;
        // The library sees what comes from near by itself, and names the place of faults in what is left as it is.
        if !brought.from_afar {
            return Ok(file);
        }
        let mut descriptor = file.file_descriptor_proto().clone();
        descriptor.public_dependency.clear();
        descriptor.dependency.extend(brought.files);
        Ok(File::from_file_descriptor_proto(descriptor))
    }
}

/// Public imports bring too much.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct TooMany(String);

#[cfg(test)]
mod tests {
    use super::*;

    /// Files by name.
    struct Texts(HashMap<String, String>);

    impl FileResolver for Texts {
        fn open_file(&self, name: &str) -> Result<File, Error> {
            let text = self.0.get(name).ok_or_else(|| Error::file_not_found(name))?;
            File::from_source(name, text)
        }
    }

    /// Compiles the first of these files; each has a name and the lines after its syntax.
    fn compiled(files: &[(String, String)]) -> Result<DescriptorPool, String> {
        let text = |lines: &str| format!("syntax = \"proto3\";\n{lines}");
        let texts = files.iter().map(|(name, lines)| (name.clone(), text(lines))).collect();
        compile(Texts(texts), [&files[0].0]).map_err(|error| format!("{error:?}"))
    }

    fn files(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(name, lines)| ((*name).to_owned(), (*lines).to_owned())).collect()
    }

    #[test]
    fn types_come_by_public_imports_of_public_imports() {
        let found = compiled(&files(&[
            ("user.proto", "import \"far.proto\"; message User { Near near = 1; Middle middle = 2; }"),
            ("far.proto", "import public \"middle.proto\";"),
            ("middle.proto", "import public \"near.proto\"; message Middle { Near near = 1; }"),
            ("near.proto", "message Near { string text = 1; }"),
        ]));
        let pool = found.expect("it compiles");
        assert!(pool.get_message_by_name("User").is_some_and(|message| message.get_field_by_name("near").is_some()));
    }

    #[test]
    fn what_is_not_imported_publicly_is_not_seen() {
        let fault = compiled(&files(&[
            ("user.proto", "import \"far.proto\";\nmessage User { Near near = 1; }"),
            ("far.proto", "import \"near.proto\";"),
            ("near.proto", "message Near { string text = 1; }"),
        ]));
        let fault = fault.expect_err("it is not imported");
        assert!(fault.contains("Near") && fault.contains("user.proto:3"), "{fault}");
    }

    #[test]
    fn many_public_imports_of_many_come_to_an_end() {
        // Each of 40 layers imports the three files of the next one: 3^40 ways.
        let name = |layer: usize, side: usize| format!("{layer}-{side}.proto");
        let layered: Vec<(String, String)> = (0..120)
            .map(|number| {
                let (layer, side) = (number / 3, number % 3);
                let import = |side: usize| format!("import public \"{}\";\n", name(layer + 1, side));
                let imports = if layer < 39 { [0, 1, 2].map(import).concat() } else { String::new() };
                (name(layer, side), format!("{imports}message Of{layer}x{side} {{}}"))
            })
            .collect();
        let pool = compiled(&layered).expect("it compiles");
        assert!(pool.get_message_by_name("Of39x2").is_some());
        let circle = compiled(&files(&[
            ("a.proto", "import public \"b.proto\";"),
            ("b.proto", "import public \"c.proto\";"),
            ("c.proto", "import public \"a.proto\";"),
        ]));
        assert!(circle.expect_err("a circle").contains("a.proto -> b.proto -> c.proto -> a.proto"));
    }
}
