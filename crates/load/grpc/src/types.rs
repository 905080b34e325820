//! Types from descriptors of files, as servers and protosets have them.

use prost::Message;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};

/// The types that these files define. Each file comes once, imports included.
///
/// # Errors
/// They do not fit together, or one has a syntax other than proto2 and proto3.
pub fn of_files(file: Vec<FileDescriptorProto>) -> Result<DescriptorPool, String> {
    // The library panics at any other syntax, such as `editions`.
    if let Some(other) = file.iter().find(|file| !matches!(file.syntax.as_deref(), None | Some("proto2" | "proto3"))) {
        let (name, syntax) = (other.name(), other.syntax());
        return Err(format!("expected `{name}` in syntax proto2 or proto3, found `{syntax}`, which is not supported"));
    }
    DescriptorPool::from_file_descriptor_set(FileDescriptorSet { file }).map_err(|error| error.to_string())
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
