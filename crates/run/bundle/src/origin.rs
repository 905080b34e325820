//! Whether a folder is a bundle, and the version of Plimsoll that wrote it.

use crate::files::MANIFEST;
use crate::manifest::ManifestLine;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// True if the folder is that of a bundle, whole or not.
#[must_use]
pub fn is_bundle(folder: &Path) -> bool {
    folder.join(MANIFEST).exists()
}

/// The version of the program that began the bundle in `folder`; none if the manifest does not name it.
#[must_use]
pub fn written_by(folder: &Path) -> Option<String> {
    let manifest = File::open(folder.join(MANIFEST)).ok()?;
    let first = BufReader::new(manifest).lines().next()?.ok()?;
    match serde_json::from_str(&first).ok()? {
        ManifestLine::Bundle { plimsoll, .. } if !plimsoll.is_empty() => Some(plimsoll),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_the_manifest_tells() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(written_by(folder.path()), None, "no manifest");
        for (line, expected) in [
            (r#"{"bundle":{"format":2,"plimsoll":"1.2.3","created":"now"}}"#, Some("1.2.3")),
            (r#"{"bundle":{"format":2}}"#, None),
            (r#"{"complete":{"at":"now"}}"#, None),
            ("{", None),
        ] {
            std::fs::write(folder.path().join(MANIFEST), format!("{line}\n")).unwrap();
            assert_eq!(written_by(folder.path()).as_deref(), expected, "{line}");
        }
    }
}
