//! `[workload]` with `protocol = "storage"`: objects that are written, read, listed and deleted.

use crate::document::{Fault, Faults, Span, table};
use crate::table::named_tables;
use crate::table::store::StoreTable;
use crate::table::workload::Protocol;
use crate::value::{
    Block, Literal, Objects, PositiveTimeSpan, Problem, Scalar, Scope, Size, Templated, Text, Weight, aligned_instead,
    keyword, resolve_optional, shown, written_or,
};
use plimsoll_model::factor::Level;
use plimsoll_model::storage::{Action, Mode, Operation, Payload, S3, Storage, StorageStep, Store, Upload};
use plimsoll_model::workload::{Connect, Steps, Workload};
use serde_json::{Value, json};
use std::time::Duration;

table! {
    /// Objects that are written, read, listed and deleted.
    struct StorageTable {
        /// What is spoken with the target.
        #[allow(dead_code)] // read before, to choose this table
        protocol: Literal<Protocol>,
        /// Where objects are kept: the name of a [store.NAME].
        store: Templated<Text>,
        /// Bytes of an object, such as "100KB", "1MiB" or 4096.
        size: Templated<Size>,
        /// What is done about caches and durability: "app", "durable", "cold" or "direct". Default: "app".
        mode: Option<Templated<Mode>>,
        /// In mode "durable": whether the directory that has an object's name is synced as well. Default: true.
        sync_directory: Option<Templated<bool>>,
        /// What objects hold: "random", "zeros" or "compressible N". Default: "random".
        payload: Option<Templated<Payload>>,
        /// Bytes that are written or read at once. Default: "1MiB".
        block: Option<Templated<Block>>,
        /// Objects that each user keeps. Default: 1.
        objects: Option<Templated<Objects>>,
        /// Whether a new object is written over the oldest, under its name. Default: false.
        overwrite: Option<Templated<bool>>,
        /// Whether what is read is held against what was written. Default: false.
        verify: Option<Templated<bool>>,
        /// The longest that one operation may take. Default: "10m".
        timeout: Option<Templated<PositiveTimeSpan>>,
        /// The operations of an iteration.
        steps: Option<Vec<StorageStepTable>>,
        /// Instead of `steps`: several kinds of iteration, of which each iteration is one, drawn by weight.
        actions: Option<Vec<ActionTable>>,
    }
}

table! {
    /// One timed operation.
    struct StorageStepTable {
        /// Name in the results. Default: the operation.
        name: Option<Templated<Text>>,
        /// What is done with an object: "write", "read", "list" or "delete".
        r#do: Templated<Operation>,
    }
}

table! {
    /// One kind of iteration.
    struct ActionTable {
        /// How often it is drawn, beside the other weights. Default: 1.
        weight: Option<Templated<Weight>>,
        /// The operations of such an iteration.
        steps: Vec<StorageStepTable>,
    }
}

const BLOCK: u64 = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(600);

/// What S3 takes in one PUT, and how many parts in a multipart upload.
const LARGEST_PUT: u64 = 5 << 30;
const MOST_PARTS: u64 = 10_000;

impl StorageTable {
    pub(crate) fn resolve(
        &self,
        scope: &Scope<'_>,
        stores: &[(String, StoreTable)],
        faults: &mut Faults,
    ) -> Option<Workload> {
        let store = self.store(scope, stores, faults);
        let size = self.size.resolve(scope, faults);
        let mode = resolve_optional(self.mode.as_ref(), |mode| mode.resolve(scope, faults));
        let sync_directory = resolve_optional(self.sync_directory.as_ref(), |sync| sync.resolve(scope, faults));
        let payload = resolve_optional(self.payload.as_ref(), |payload| payload.resolve(scope, faults));
        let block = resolve_optional(self.block.as_ref(), |block| block.resolve(scope, faults));
        let objects = resolve_optional(self.objects.as_ref(), |objects| objects.resolve(scope, faults));
        let overwrite = resolve_optional(self.overwrite.as_ref(), |overwrite| overwrite.resolve(scope, faults));
        let verify = resolve_optional(self.verify.as_ref(), |verify| verify.resolve(scope, faults));
        let timeout = resolve_optional(self.timeout.as_ref(), |timeout| timeout.resolve(scope, faults));
        let work = self.work(scope, faults);
        let ((name, store), (actions, steps), mode) = (store?, work?, mode?.unwrap_or(Mode::App));
        let sync_directory = sync_directory?.unwrap_or(true);
        self.check_sync(mode, sync_directory, (&name, &store), faults)?;
        let storage = Storage {
            name,
            sync_directory: sync_directory || !matches!(store, Store::Directory(_)),
            store,
            mode,
            payload: payload?.unwrap_or(Payload::Random),
            size: size?.0,
            block: block?.map_or(BLOCK, |block| block.0),
            objects: objects?.map_or(1, Objects::u32),
            overwrite: overwrite?.unwrap_or(false),
            verify: verify?.unwrap_or(false),
            actions,
            steps,
        };
        self.check_direct(&storage, faults)?;
        self.check_upload(&storage, faults)?;
        Some(Workload {
            target: storage.store.target(),
            connect: Connect::PerUser,
            timeout: timeout?.map_or(TIMEOUT, |timeout| timeout.0),
            steps: Steps::Storage(Box::new(storage)),
        })
    }

    /// The store of the trial and its name. Only that one is resolved: another may name systems
    /// that do not run.
    fn store(
        &self,
        scope: &Scope<'_>,
        stores: &[(String, StoreTable)],
        faults: &mut Faults,
    ) -> Option<(String, Store)> {
        let name = self.store.resolve(scope, faults)?.0;
        let table = named_tables::find(stores, &name, &self.store.span, faults)?;
        table.resolve(&name, scope, faults).map(|store| (name, store))
    }

    /// What an iteration does, and the steps of all actions in one list.
    fn work(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<(Vec<Action>, Vec<StorageStep>)> {
        let mut resolve = |(weight, steps): (Option<&Templated<Weight>>, &[StorageStepTable])| {
            let weight = resolve_optional(weight, |weight| weight.resolve(scope, faults));
            let steps: Vec<Option<StorageStep>> = steps.iter().map(|step| step.resolve(scope, faults)).collect();
            Some((weight?.map_or(1, Weight::u32), steps.into_iter().collect::<Option<Vec<_>>>()?))
        };
        let resolved: Vec<Option<_>> = self.kinds().into_iter().map(&mut resolve).collect();
        let (mut actions, mut all) = (Vec::new(), Vec::new());
        for (weight, steps) in resolved.into_iter().collect::<Option<Vec<_>>>()? {
            actions.push(Action { weight, steps: all.len()..all.len() + steps.len() });
            all.extend(steps);
        }
        Some((actions, all))
    }

    /// The kinds of iteration: weight and steps.
    fn kinds(&self) -> Vec<(Option<&Templated<Weight>>, &[StorageStepTable])> {
        let alone = self.steps.iter().map(|steps| (None, steps.as_slice()));
        let several = self.actions.iter().flatten().map(|action| (action.weight.as_ref(), action.steps.as_slice()));
        alone.chain(several).collect()
    }

    /// Directories are synced in mode `durable` alone, and only where there are some.
    fn check_sync(&self, mode: Mode, asked: bool, (name, store): (&str, &Store), faults: &mut Faults) -> Option<()> {
        let Some(templated) = &self.sync_directory else { return Some(()) };
        if mode != Mode::Durable {
            let message = format!("`workload.sync_directory` is of mode `durable`; the mode is `{mode}`");
            faults.add(Fault::error(&templated.span, message).help("leave it out, or write `mode = \"durable\"`"));
            return None;
        }
        if !asked && !matches!(store, Store::Directory(_)) {
            let message = format!("this changes nothing for store `{name}`: no directory is synced there");
            faults.add(Fault::warning(&templated.span, message).help("leave it out, or use a store with `directory`"));
        }
        Some(())
    }

    /// `O_DIRECT` is of mounted file systems, and moves whole pages.
    fn check_direct(&self, storage: &Storage, faults: &mut Faults) -> Option<()> {
        let Some(mode) = self.mode.as_ref().filter(|_| storage.mode == Mode::Direct) else { return Some(()) };
        if !matches!(storage.store, Store::Directory(_)) {
            let message = format!("store `{}` has no mode `direct`", storage.name);
            let help = "only the page cache of a file system that is mounted here can be gone past: choose another mode, \
                        or a store with `directory`";
            faults.add(Fault::error(&mode.span, message).help(help));
            return None;
        }
        let Some(nearest) = aligned_instead(storage.size) else { return Some(()) };
        let message =
            format!("`workload.size` must be a multiple of 4KiB in mode `direct`, not {}", shown(storage.size));
        faults.add(Fault::error(&self.size.span, message).help(nearest));
        None
    }

    /// What S3 takes at once is limited.
    fn check_upload(&self, storage: &Storage, faults: &mut Faults) -> Option<()> {
        let Store::S3(s3) = &storage.store else { return Some(()) };
        let size = storage.size;
        let S3 { upload, part_size, .. } = **s3;
        match upload {
            Upload::Single if size > LARGEST_PUT => {
                let message = format!("objects of {} are more than the 5GiB that S3 takes in one PUT", shown(size));
                let fault = Fault::warning(&self.size.span, message);
                faults.add(fault.help("give the store `upload = \"multipart parallel 4\"`"));
            }
            Upload::Multipart(_) if size.div_ceil(part_size) > MOST_PARTS => {
                let parts = size.div_ceil(part_size);
                let message =
                    format!("{} take {parts} parts of {}; S3 takes {MOST_PARTS}", shown(size), shown(part_size));
                let least = size.div_ceil(MOST_PARTS).div_ceil(1 << 20);
                let fault = Fault::error(&self.size.span, message);
                faults.add(fault.help(format!("give the store a `part_size` of at least \"{least}MiB\"")));
                return None;
            }
            Upload::Single | Upload::Multipart(_) => {}
        }
        Some(())
    }
}

// What is known before any trial.
impl StorageTable {
    /// The names of the steps as the study has them, and where each step stands.
    pub(crate) fn step_names(&self) -> Vec<(String, Span)> {
        self.all_steps().map(|step| (step.name().to_owned(), step.place.clone())).collect()
    }

    /// The most steps that an iteration has.
    pub(crate) fn most_steps(&self) -> usize {
        self.kinds().iter().map(|(_, steps)| steps.len()).max().unwrap_or(0)
    }

    fn all_steps(&self) -> impl Iterator<Item = &StorageStepTable> {
        self.kinds().into_iter().flat_map(|(_, steps)| steps)
    }

    /// Operations, store and what is particular, as reports say it.
    pub(crate) fn in_words(&self) -> String {
        let payload = match written_or(self.payload.as_ref(), "random") {
            "zeros" => "zeros for content".to_owned(),
            other => format!("{other} content"),
        };
        let mut words = format!(
            "storage: {} objects of {} in {}; mode {}, {payload}, blocks of {}",
            self.work_in_words(),
            self.size.as_written(),
            self.store.as_written(),
            written_or(self.mode.as_ref(), "app"),
            written_or(self.block.as_ref(), "1MiB"),
        );
        match written_or(self.sync_directory.as_ref(), "true") {
            "true" => {}
            "false" => words += ", directory not synced",
            other => words += &format!(", sync_directory {other}"),
        }
        if let Some(objects) = &self.objects {
            words += &format!(", {} objects kept by each user", objects.as_written());
        }
        match written_or(self.overwrite.as_ref(), "false") {
            "false" => {}
            "true" => words += ", overwritten",
            other => words += &format!(", overwrite {other}"),
        }
        match written_or(self.verify.as_ref(), "false") {
            "false" => {}
            "true" => words += ", verified when read",
            other => words += &format!(", verify {other}"),
        }
        format!("{words}; time-out {}", written_or(self.timeout.as_ref(), "10m"))
    }

    /// `write, then read`, or `read (weight 70) or write (weight 30)`.
    fn work_in_words(&self) -> String {
        let kinds = self.kinds().into_iter().map(|(weight, steps)| {
            let names: Vec<&str> = steps.iter().map(StorageStepTable::name).collect();
            let weight = weight.filter(|_| self.kinds().len() > 1);
            let weight = weight.map_or_else(String::new, |weight| format!(" (weight {})", weight.as_written()));
            names.join(", then ") + &weight
        });
        kinds.collect::<Vec<_>>().join(" or ")
    }

    /// Faults and warnings about the operations as a whole.
    pub(crate) fn check(&self, faults: &mut Faults) -> Option<()> {
        if let Some(fault) = self.fault_of_work() {
            faults.add(fault);
            return None;
        }
        self.warn_of_idle_keys(faults);
        Some(())
    }

    fn fault_of_work(&self) -> Option<Fault> {
        let idle = self.actions.iter().flatten().find(|action| action.steps.is_empty());
        match (&self.steps, &self.actions) {
            (None, None) => {
                let help =
                    "add `steps`, as in `steps = [{ do = \"write\" }]`, or `actions` with a weight and steps each";
                Some(Fault::error(&self.place, "`workload` does not say what users do").help(help))
            }
            (Some(_), Some(_)) => {
                let fault = Fault::error(&self.place, "`workload` has both `steps` and `actions`");
                Some(fault.help("keep `actions` alone: each has steps of its own"))
            }
            _ => idle
                .map(|idle| Fault::error(&idle.place, "an action has no steps").help("give it one, or leave it out")),
        }
    }

    /// Warns of what only matters to an operation that no trial has.
    fn warn_of_idle_keys(&self, faults: &mut Faults) {
        let is_on = |templated: &&Templated<bool>| templated.fixed() == Some(&true);
        let overwrite =
            self.overwrite.as_ref().filter(is_on).map(|templated| (&templated.span, Operation::Write, "writes"));
        let verify = self.verify.as_ref().filter(is_on).map(|templated| (&templated.span, Operation::Read, "reads"));
        let cold = self.mode.as_ref().filter(|mode| mode.fixed() == Some(&Mode::Cold));
        let cold = cold.map(|templated| (&templated.span, Operation::Read, "reads"));
        for (span, needed, does) in [overwrite, verify, cold].into_iter().flatten() {
            if !self.all_steps().any(|step| step.r#do.fixed().is_none_or(|operation| *operation == needed)) {
                let fault = Fault::warning(span, format!("this changes nothing: no step {does}"));
                faults.add(fault.help(format!("add a step `{{ do = \"{needed}\" }}`, or leave it out")));
            }
        }
    }
}

impl StorageStepTable {
    /// The name as the study has it, placeholders and all.
    fn name(&self) -> &str {
        self.name.as_ref().map_or_else(|| self.r#do.as_written(), Templated::as_written)
    }

    fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<StorageStep> {
        Some(StorageStep { name: self.name().to_owned(), operation: self.r#do.resolve(scope, faults)? })
    }
}

impl Scalar for Mode {
    const EXPECTED: &'static str = "\"app\", \"durable\", \"cold\" or \"direct\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        keyword(level, &[Mode::App, Mode::Durable, Mode::Cold, Mode::Direct].map(|mode| (mode.name(), mode)))
    }

    fn schema() -> Value {
        json!({ "enum": ["app", "durable", "cold", "direct"] })
    }
}

impl Scalar for Operation {
    const EXPECTED: &'static str = "\"write\", \"read\", \"list\" or \"delete\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        keyword(level, &Operation::ALL.map(|operation| (operation.name(), operation)))
    }

    fn schema() -> Value {
        json!({ "enum": Operation::ALL.map(Operation::name) })
    }
}

/// The highest ratio: beyond it, objects are zeros.
const MOST_COMPRESSIBLE: f64 = 1000.0;

impl Scalar for Payload {
    const EXPECTED: &'static str = "\"random\", \"zeros\" or \"compressible N\" with a ratio above 1";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        if let Ok(payload) = keyword(level, &[("random", Payload::Random), ("zeros", Payload::Zeros)]) {
            return Ok(payload);
        }
        let text = level.to_string();
        let ratio: Option<f64> = text.strip_prefix("compressible ").and_then(|ratio| ratio.trim().parse().ok());
        let ratio = ratio.filter(|ratio| *ratio > 1.0 && *ratio <= MOST_COMPRESSIBLE);
        ratio.map(Payload::Compressible).ok_or_else(|| Problem::wrong::<Self>(level))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^(random|zeros|compressible [0-9.]+)$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::testing::{faults_of, no_faults, read_table};
    use crate::table::workload::{StudyContext, WorkloadTable};
    use crate::value::{Bindings, NO_LOGINS};
    use plimsoll_model::factor::Assignment;
    use std::path::Path;

    /// A directory, and a bucket to which objects go in parts of 8 MiB.
    fn stores() -> Vec<(String, StoreTable)> {
        let local = read_table("directory = 'data'");
        let s3 = read_table("s3 = 'http://localhost'\nbucket = 'b'\nupload = '{upload}'\npart_size = '8MiB'");
        vec![("local".to_owned(), local), ("s3".to_owned(), s3)]
    }

    fn resolve(written: &str, faults: &mut Faults) -> Option<Workload> {
        let text = |value: &str| Level::Text(value.to_owned());
        let levels = [("backend", text("s3")), ("upload", text("multipart serial")), ("size", text("100KB"))];
        let assignment = Assignment(levels.map(|(name, level)| (name.to_owned(), level)).into());
        let bindings = Bindings::default();
        let scope = Scope {
            assignment: &assignment,
            bindings: &bindings,
            not_running: &[],
            elsewhere: &[],
            logins: &NO_LOGINS,
            is_trusted: false,
            system: None,
            dir: Path::new("/study"),
            processors: &[0],
            of_generator: None,
        };
        let table: WorkloadTable = read_table(&format!("protocol = 'storage'\n{written}"));
        let given = StudyContext { stores: &stores(), databases: &[], seed: 1, ..StudyContext::default() };
        table.resolve(&scope, given, faults)
    }

    fn storage(text: &str) -> Storage {
        let workload = resolve(text, &mut no_faults()).expect(text);
        let Steps::Storage(storage) = workload.steps else { panic!("storage") };
        *storage
    }

    fn step(name: &str, operation: Operation) -> StorageStep {
        StorageStep { name: name.to_owned(), operation }
    }

    #[test]
    fn a_workload_has_defaults() {
        let text = "store = 'local'\nsize = '{size}'\nsteps = [{ do = 'write' }, { do = 'read' }]";
        let workload = resolve(text, &mut no_faults()).expect("a workload");
        assert_eq!((workload.target, workload.connect), (None, Connect::PerUser));
        assert_eq!(workload.timeout, Duration::from_secs(600));
        let expected = Storage {
            name: "local".to_owned(),
            store: Store::Directory("/study/data".into()),
            mode: Mode::App,
            sync_directory: true,
            payload: Payload::Random,
            size: 100_000,
            block: 1 << 20,
            objects: 1,
            overwrite: false,
            verify: false,
            actions: vec![Action { weight: 1, steps: 0..2 }],
            steps: vec![step("write", Operation::Write), step("read", Operation::Read)],
        };
        assert_eq!(storage(text), expected);
    }

    #[test]
    fn every_key_is_resolved() {
        let text = "store = '{backend}'\nsize = 4096\nmode = 'cold'\npayload = 'compressible 2.5'\nblock = '4KiB'\n\
                    objects = 7\noverwrite = true\nverify = true\ntimeout = '1m'\n\
                    actions = [{ weight = 70, steps = [{ do = 'read' }, { do = 'list' }] }, \
                    { steps = [{ do = 'write', name = 'put {size}' }, { do = 'delete' }] }]";
        let workload = resolve(text, &mut no_faults()).expect("a workload");
        assert_eq!(workload.target.map(|target| target.port), Some(80));
        assert_eq!(workload.timeout, Duration::from_secs(60));
        let storage = storage(text);
        assert_eq!((storage.name.as_str(), storage.size, storage.block, storage.objects), ("s3", 4096, 4096, 7));
        assert_eq!((storage.mode, storage.payload), (Mode::Cold, Payload::Compressible(2.5)));
        assert!(storage.overwrite && storage.verify);
        assert_eq!(storage.actions, [Action { weight: 70, steps: 0..2 }, Action { weight: 1, steps: 2..4 }]);
        assert_eq!(
            (&storage.steps[1], &storage.steps[2]),
            (&step("list", Operation::List), &step("put {size}", Operation::Write))
        );
    }

    #[test]
    fn the_directory_is_left_out_where_the_study_says_so() {
        let text = |store: &str, mode: &str, sync: bool| {
            format!(
                "store = '{store}'\nsize = 1\nmode = '{mode}'\nsync_directory = {sync}\nsteps = [{{ do = 'write' }}]"
            )
        };
        let told = |sync| {
            let storage = storage(&text("local", "durable", sync));
            (storage.sync_directory, storage.syncs_directory(), storage.mode_in_words())
        };
        assert_eq!(told(true), (true, true, "durable"));
        assert_eq!(told(false), (false, false, "durable, directory not synced"));
        let faults_of = |text: &str| {
            let mut faults = no_faults();
            let words = resolve(text, &mut faults).map(|workload| match workload.steps {
                Steps::Storage(storage) => storage.mode_in_words(),
                _ => panic!("storage"),
            });
            (words, faults.into_diagnostics().iter().map(ToString::to_string).collect::<String>())
        };
        let (none, fault) = faults_of(&text("local", "app", false));
        assert_eq!(none, None);
        assert!(fault.contains("is of mode `durable`; the mode is `app`; leave it out, or write"), "{fault}");
        let (words, warning) = faults_of(&text("s3", "durable", false));
        assert_eq!(words, Some("durable"));
        assert!(warning.contains("warning: this changes nothing for store `s3`"), "{warning}");
        assert_eq!(faults_of(&text("s3", "durable", true)).1, "");
    }

    #[test]
    fn a_workload_is_told_in_words() {
        let words = |text: &str| read_table::<WorkloadTable>(&format!("protocol = 'storage'\n{text}")).in_words();
        assert_eq!(
            words("store = '{backend}'\nsize = '{size}'\nsteps = [{ do = 'write' }, { do = 'read' }]"),
            "storage: write, then read objects of {size} in {backend}; mode app, random content, blocks of 1MiB; \
             time-out 10m"
        );
        let synced =
            words("store = 'a'\nsize = 5\nmode = 'durable'\nsync_directory = false\nsteps = [{ do = 'write' }]");
        assert!(synced.contains("blocks of 1MiB, directory not synced; time-out"), "{synced}");
        assert_eq!(
            words(
                "store = 'a'\nsize = 5\npayload = 'zeros'\nobjects = 3\noverwrite = true\nverify = true\n\
                 actions = [{ weight = 70, steps = [{ do = 'read' }] }, { steps = [{ do = 'write' }] }]"
            ),
            "storage: read (weight 70) or write objects of 5 in a; mode app, zeros for content, blocks of 1MiB, 3 objects \
             kept by each user, overwritten, verified when read; time-out 10m"
        );
    }

    #[test]
    fn wrong_workloads_are_named_when_read() {
        const START: &str = "protocol = 'storage'\nstore = 'local'\n";
        const READ: &str = "steps = [{ do = 'read' }]";
        for (text, what) in [
            ("size = 1", "does not say what users do"),
            ("size = 1\nsteps = []", "`workload.steps` is empty"),
            ("size = 1\nactions = [{ steps = [] }]", "an action has no steps"),
            (
                "size = 1\nsteps = [{ do = 'read' }]\nactions = [{ steps = [{ do = 'write' }] }]",
                "both `steps` and `actions`",
            ),
            ("size = 1\nsteps = [{ do = 'move' }]", "\"write\", \"read\", \"list\" or \"delete\""),
            ("size = 1\nsteps = [{ }]", "`do` is missing"),
            ("size = 1\nsteps = [{ do = 'read' }, { do = 'read' }]", "two steps are named `read`"),
            ("steps = [{ do = 'read' }]", "`size` is missing"),
            (&format!("size = '0B'\n{READ}"), "at least 1B"),
            (&format!("size = '6TB'\n{READ}"), "at most 5TB"),
            (&format!("size = '1 mb'\n{READ}"), "did you mean \"1MB\"?"),
            (&format!("size = 1\nblock = '1MB'\n{READ}"), "must be a multiple of 4KiB"),
            (&format!("size = 1\nmode = 'fast'\n{READ}"), "\"app\", \"durable\", \"cold\" or \"direct\""),
            (&format!("size = 1\npayload = 'compressible 1'\n{READ}"), "a ratio above 1"),
            (&format!("size = 1\nobjects = 0\n{READ}"), "at least 1"),
            (&format!("size = 1\ntarget = 'a:1'\n{READ}"), "unknown key `target`"),
            (&format!("size = 1\noverwrite = true\n{READ}"), "warning: this changes nothing: no step writes"),
            ("size = 1\nverify = true\nsteps = [{ do = 'write' }]", "no step reads"),
            ("size = 1\nmode = 'cold'\nsteps = [{ do = 'write' }]", "no step reads"),
        ] {
            let faults = faults_of::<WorkloadTable>(&format!("{START}{text}"));
            assert!(matches!(faults.as_slice(), [fault] if fault.contains(what)), "{text}: {faults:?}");
        }
    }

    #[test]
    fn wrong_workloads_are_named_when_resolved() {
        for (text, what) in [
            ("store = 'lokal'\nsize = 1", "no store is named `lokal`; did you mean `local`?"),
            ("store = 'tape'\nsize = 1", "stores are `local` or `s3`"),
            ("store = '{backend}'\nsize = 4096\nmode = 'direct'", "store `s3` has no mode `direct`"),
            (
                "store = 'local'\nsize = '{size}'\nmode = 'direct'",
                "a multiple of 4KiB in mode `direct`, not 100KB; the nearest that fit are \"96KiB\" and \"100KiB\"",
            ),
            (
                "store = 's3'\nsize = '1TB'",
                "1TB take 119210 parts of 8MiB; S3 takes 10000; give the store a `part_size` of at least \"96MiB\"",
            ),
        ] {
            let mut faults = no_faults();
            assert_eq!(resolve(&format!("{text}\nsteps = [{{ do = 'read' }}]"), &mut faults), None);
            let faults: Vec<String> = faults.into_diagnostics().iter().map(ToString::to_string).collect();
            assert!(matches!(faults.as_slice(), [fault] if fault.contains(what)), "{text}: {faults:?}");
        }
    }
}
