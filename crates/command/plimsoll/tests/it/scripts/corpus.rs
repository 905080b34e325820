//! The scripts of `corpus/`. Comments at their beginning say what is to come of each.

use crate::common::{Place, files};
use std::fs;
use std::path::{Path, PathBuf};

/// A script, with what is to come of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    pub(crate) file: String,
    /// `// exit N`
    pub(crate) exit: i32,
    /// `// requests N`: how many come to the server.
    pub(crate) requests: Option<usize>,
    /// `// checks N of M`: how many of them pass.
    pub(crate) checks: Option<(u64, u64)>,
    /// `// flags …`
    pub(crate) flags: String,
    /// `// says …`: what stands in standard error.
    pub(crate) says: Vec<String>,
    /// `// prints …`: what stands in standard output; `nothing` is nothing.
    pub(crate) prints: Vec<String>,
    /// `// beside FILE`: another script that lies beside it.
    beside: Vec<String>,
    /// `// not in k6: …`: why it is not held against that.
    pub(crate) only_here: bool,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus")
}

/// All of them, in the order of their names.
pub(crate) fn cases() -> Vec<Case> {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    files.iter().map(|path| Case::read(path)).collect()
}

impl Case {
    /// A folder with the script and what it uses: copying all scripts for each would take longer than to run them.
    pub(crate) fn place(&self) -> Place {
        let place = Place::empty();
        for file in files(&folder()) {
            let name = file.strip_prefix(folder()).unwrap().to_str().unwrap();
            if name.contains('/') || name == self.file || self.beside.iter().any(|beside| beside == name) {
                place.copy(&file, name);
            }
        }
        place
    }

    fn read(path: &Path) -> Case {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut case = Case { file, ..Case::default() };
        let text = fs::read_to_string(path).unwrap();
        text.lines().map_while(|line| line.strip_prefix("// ")).for_each(|line| case.note(line));
        case
    }

    fn note(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "exit" => self.exit = rest.parse().expect(line),
            "requests" => self.requests = Some(rest.parse().expect(line)),
            "checks" => {
                let (passed, all) = rest.split_once(" of ").expect(line);
                self.checks = Some((passed.parse().expect(line), all.parse().expect(line)));
            }
            "flags" => rest.clone_into(&mut self.flags),
            "says" => self.says.push(rest.to_owned()),
            "prints" => self.prints.push(rest.to_owned()),
            "beside" => self.beside.push(rest.to_owned()),
            "not" => self.only_here = true,
            // Words for a reader.
            _ => {}
        }
    }

    /// Whether standard output is as it should be.
    pub(crate) fn prints(&self, stdout: &str) -> bool {
        match self.prints.as_slice() {
            [nothing] if nothing == "nothing" => stdout.is_empty(),
            all => all.iter().all(|text| stdout.contains(text)),
        }
    }
}
