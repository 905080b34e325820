//! Types from descriptors of files, as servers and protosets have them.

use crate::public_imports::{self, PublicImports};
use prost::Message;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};
use std::collections::BTreeMap;

/// The types that these files define. Each file comes once, imports included.
///
/// # Errors
/// They do not fit together, one has a syntax other than proto2 and proto3, or public imports make too many of a few.
pub fn of_files(mut file: Vec<FileDescriptorProto>) -> Result<DescriptorPool, String> {
    // The library panics at any other syntax, such as `editions`.
    if let Some(other) = file.iter().find(|file| !matches!(file.syntax.as_deref(), None | Some("proto2" | "proto3"))) {
        let (name, syntax) = (other.name(), other.syntax());
        return Err(format!("expected `{name}` in syntax proto2 or proto3, found `{syntax}`, which is not supported"));
    }
    resolve_public_imports(&mut file)?;
    DescriptorPool::from_file_descriptor_set(FileDescriptorSet { file }).map_err(|error| error.to_string())
}

/// Gives each file what public imports of others bring, and takes the marks of public imports away.
fn resolve_public_imports(files: &mut [FileDescriptorProto]) -> Result<(), String> {
    let mut public: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in &mut *files {
        public.insert(file.name().to_owned(), public_imports::of_file(file)?);
        file.public_dependency.clear();
    }
    let mut imports = PublicImports::default();
    for file in files {
        let brought = imports.brought(&file.dependency, |name| public.get(name).cloned().unwrap_or_default())?;
        file.dependency.extend(brought.files);
    }
    Ok(())
}

/// The types of a `FileDescriptorSet`.
///
/// # Errors
/// As for [`of_files`]; or the bytes are something else.
pub fn of_set(bytes: &[u8]) -> Result<DescriptorPool, String> {
    of_files(FileDescriptorSet::decode(bytes).map_err(|error| error.to_string())?.file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
    use prost_reflect::prost_types::{DescriptorProto, FieldDescriptorProto};

    /// A file that imports these others, all of them publicly.
    fn file(name: &str, imports: &[&str]) -> FileDescriptorProto {
        FileDescriptorProto {
            name: Some(name.to_owned()),
            dependency: imports.iter().map(|import| (*import).to_owned()).collect(),
            public_dependency: (0..imports.len() as i32).collect(),
            message_type: vec![DescriptorProto { name: Some(format!("Of_{name}")), ..DescriptorProto::default() }],
            ..FileDescriptorProto::default()
        }
    }

    #[test]
    fn files_that_import_one_another_publicly_come_to_an_end() {
        assert!(of_files(vec![file("a", &["a"])]).is_ok());
        assert!(of_files(vec![file("a", &["b"]), file("b", &["c"]), file("c", &["a"])]).is_ok());
        // Each of 40 layers imports the two files of the next one: 2^40 ways.
        let name = |layer: usize, side: usize| format!("{layer}-{side}");
        let layered = (0..80).map(|number| {
            let (layer, side) = (number / 2, number % 2);
            let below = [name(layer + 1, 0), name(layer + 1, 1)];
            let imports: Vec<&str> = below.iter().map(String::as_str).filter(|_| layer < 39).collect();
            file(&name(layer, side), &imports)
        });
        assert!(of_files(layered.collect()).is_ok());
        let mut broken = file("a", &["a"]);
        broken.public_dependency = vec![7];
        assert!(of_files(vec![broken]).expect_err("there is no such import").contains("none of its imports"));
    }

    #[test]
    fn types_come_by_public_imports_of_public_imports() {
        let mut user = file("user", &["far"]);
        user.public_dependency.clear();
        user.message_type[0].field.push(FieldDescriptorProto {
            name: Some("of_another".to_owned()),
            number: Some(1),
            r#type: Some(Type::Message.into()),
            label: Some(Label::Optional.into()),
            type_name: Some(".Of_near".to_owned()),
            ..FieldDescriptorProto::default()
        });
        let files = vec![file("near", &[]), file("middle", &["near"]), file("far", &["middle"]), user];
        assert!(of_files(files).is_ok());
    }

    #[test]
    fn a_file_in_another_syntax_is_refused_by_name() {
        let file = |syntax: &str| FileDescriptorProto {
            name: Some("a.proto".to_owned()),
            syntax: Some(syntax.to_owned()),
            ..FileDescriptorProto::default()
        };
        for syntax in ["proto2", "proto3"] {
            let set = FileDescriptorSet { file: vec![file(syntax)] }.encode_to_vec();
            assert!(of_set(&set).is_ok(), "{syntax}");
        }
        for syntax in ["editions", ""] {
            let refused = of_files(vec![file(syntax)]).expect_err("it is not supported");
            assert!(refused.contains("`a.proto`") && refused.contains(&format!("found `{syntax}`")), "{refused}");
        }
    }
}
