//! Public imports: those of a file that files which import it see as well.
//!
//! The library of types (prost-reflect 0.16.5) follows them for ever where many files import many, without an end where files
//! import one another, and not beyond the second file elsewhere. So files get what public imports of others bring as imports of
//! their own.

use prost_reflect::prost_types::FileDescriptorProto;
use std::collections::BTreeSet;

/// The most bytes of names that public imports may add to the imports of all files.
const MOST_ADDED: usize = 16 << 20;

/// Adds up what public imports bring.
#[derive(Debug, Default)]
pub(crate) struct PublicImports {
    added: usize,
}

/// What public imports bring to a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Brought {
    /// The names of files, without those that it imports itself.
    pub(crate) files: Vec<String>,
    /// True if some come by a public import of a public import.
    pub(crate) from_afar: bool,
}

impl PublicImports {
    /// What these imports bring; `public` gives the public imports of a file.
    ///
    /// # Errors
    /// It is too much, together with what was asked for before.
    pub(crate) fn brought(
        &mut self,
        imports: &[String],
        mut public: impl FnMut(&str) -> Vec<String>,
    ) -> Result<Brought, String> {
        let mut known: BTreeSet<String> = imports.iter().cloned().collect();
        let mut brought = Brought::default();
        let mut open: Vec<(String, bool)> = imports.iter().map(|import| (import.clone(), false)).collect();
        while let Some((import, is_far)) = open.pop() {
            for file in public(&import) {
                if known.insert(file.clone()) {
                    self.added += file.len();
                    if self.added > MOST_ADDED {
                        return Err(format!("public imports add more than {MOST_ADDED} bytes of names"));
                    }
                    brought.from_afar |= is_far;
                    brought.files.push(file.clone());
                    open.push((file, true));
                }
            }
        }
        Ok(brought)
    }
}

/// The public imports of a file.
///
/// # Errors
/// One is none of its imports.
pub(crate) fn of_file(file: &FileDescriptorProto) -> Result<Vec<String>, String> {
    let import = |place: &i32| usize::try_from(*place).ok().and_then(|place| file.dependency.get(place)).cloned();
    let imports: Option<Vec<String>> = file.public_dependency.iter().map(import).collect();
    imports.ok_or_else(|| format!("`{}` has a public import that is none of its imports", file.name()))
}
