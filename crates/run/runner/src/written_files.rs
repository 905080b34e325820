//! The files that a study writes for a system: they are there as long as it runs.

use plimsoll_model::system::WrittenFiles;
use std::fs::{DirBuilder, OpenOptions, remove_dir, remove_dir_all};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A folder with such files. It is removed when this is dropped, with all that the system has put there.
#[derive(Debug)]
pub struct FilesOfSystem(PathBuf);

impl FilesOfSystem {
    /// Writes the files of the system of this name. Only the user who runs Plimsoll can read them: they may hold secrets.
    ///
    /// # Errors
    /// The disk does not take them.
    pub fn write(system: &str, files: &WrittenFiles) -> Result<FilesOfSystem, String> {
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| format!("the files of `{system}` cannot be written to {path}: {error}")
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&files.folder).map_err(failed(&files.folder))?;
        let written = FilesOfSystem(files.folder.clone());
        for (name, text) in &files.texts {
            let path = files.folder.join(name);
            let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
            file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed(&path))?;
        }
        Ok(written)
    }
}

impl Drop for FilesOfSystem {
    fn drop(&mut self) {
        // What cannot be removed lies in the folder of the start, where it is seen.
        let _ = remove_dir_all(&self.0);
        // The folders of the variant and of all variants go with the last of their systems.
        let _ = self.0.ancestors().skip(1).take(2).take_while(|folder| remove_dir(folder).is_ok()).count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_there_until_they_are_dropped() {
        let place = tempfile::tempdir().expect("a folder");
        fs::write(place.path().join("start.json"), "{}").expect("a disk");
        let folder = place.path().join("files/proxy");
        let texts = [("nginx.conf".to_owned(), "events {}".to_owned())].into();
        let files = WrittenFiles { folder: folder.clone(), texts };
        let written = FilesOfSystem::write("proxy", &files).expect("a disk");
        let path = folder.join("nginx.conf");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "events {}");
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        fs::write(folder.join("nginx.pid"), "1").expect("a disk");
        drop(written);
        assert!(!place.path().join("files").exists() && place.path().exists());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let place = tempfile::tempdir().expect("a folder");
        fs::write(place.path().join("taken"), "").expect("a disk");
        let files = WrittenFiles { folder: place.path().join("taken/proxy"), texts: [].into() };
        let error = FilesOfSystem::write("proxy", &files).expect_err("a file is in the way");
        assert!(error.starts_with("the files of `proxy` cannot be written to "), "{error}");
    }
}
