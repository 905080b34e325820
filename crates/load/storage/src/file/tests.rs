use super::*;
use crate::content::Content;
use plimsoll_model::storage::{Action, Operation, Payload, StorageStep, Store as StoreSpec};
use plimsoll_testkit::sshfs::SshfsMount;
use plimsoll_testkit::{Mounted, skipped};
use std::time::Duration;

const BLOCK: u64 = 64 << 10;

/// Two blocks and a half, so that the last one is short.
const SIZE: u64 = 160 << 10;

fn storage(mode: Mode) -> Storage {
    Storage {
        name: "disk".to_owned(),
        store: StoreSpec::Directory(PathBuf::new()),
        mode,
        sync_directory: true,
        payload: Payload::Random,
        size: SIZE,
        block: BLOCK,
        objects: 1,
        overwrite: false,
        verify: true,
        actions: vec![Action { weight: 1, steps: 0..1 }],
        steps: vec![StorageStep { name: "write".to_owned(), operation: Operation::Write }],
    }
}

fn store(path: &Path, storage: &Storage) -> DirectoryStore {
    let content = Arc::new(Content::new(storage.payload, storage.block, 1));
    DirectoryStore::new(storage, path.to_owned(), content).unwrap()
}

fn object(number: u64) -> Object {
    Object { name: format!("object-{number}"), number, size: SIZE }
}

fn call() -> Call {
    Call::untimed(Duration::from_secs(60))
}

/// What lies directly in a folder.
fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Writes, reads, lists and deletes below `path`, and leaves nothing.
fn round_trip(path: &Path, storage: &Storage) -> Result<(), Failure> {
    let before = names(path);
    let store = store(path, storage);
    store.prepare()?;
    let mut sessions = [store.session(0)?, store.session(1)?];
    for session in &mut sessions {
        session.write(&object(1), &mut call())?;
        session.write(&object(2), &mut call())?;
        for object in [object(2), object(1)] {
            let residency = session.before_read(&object)?;
            assert_eq!(residency.pages, SIZE.div_ceil(rustix::param::page_size() as u64));
            session.read(&object, &mut call())?;
        }
        session.list(&(2..=2), &mut call())?;
        session.delete(&object(1), &mut call())?;
        session.list(&(1..=1), &mut call())?;
    }
    assert_eq!(store.clean_up(&Cleaning::default()), Vec::<String>::new());
    assert_eq!(names(path), before);
    Ok(())
}

#[test]
fn objects_come_back_as_they_were_written_in_every_mode() {
    let folder = tempfile::tempdir().unwrap();
    for mode in [Mode::App, Mode::Durable, Mode::Cold, Mode::Direct] {
        match round_trip(folder.path(), &storage(mode)) {
            Err(failure) if failure.detail.contains("use another directory") || failure.detail.contains("refuses") => {
                skipped(format_args!("mode {mode}: {}", failure.detail));
            }
            done => done.unwrap_or_else(|failure| panic!("{mode}: {}", failure.detail)),
        }
    }
}

#[test]
fn the_directory_is_synced_unless_the_study_leaves_that_out() {
    let folder = tempfile::tempdir().unwrap();
    for sync_directory in [true, false] {
        let store = store(folder.path(), &Storage { sync_directory, ..storage(Mode::Durable) });
        store.prepare().unwrap();
        let mut session = store.begin(0).unwrap();
        // Such a descriptor does for looking up names, and cannot be synced.
        session.folder = openat(CWD, &session.path, OFlags::PATH | OFlags::DIRECTORY, Permissions::empty()).unwrap();
        let mut written = call();
        let results = [session.write(&object(1), &mut written), session.delete(&object(1), &mut call())];
        for result in results {
            let fault = result.err().map_or(String::new(), |failure| failure.detail);
            assert_eq!(fault.contains("failed to sync"), sync_directory, "{fault}");
        }
        assert!(format!("{written:?}").contains("Sync"), "the file is synced either way: {written:?}");
        assert_eq!(store.clean_up(&Cleaning::default()), Vec::<String>::new());
    }
}

#[test]
fn bytes_are_counted_and_only_the_bytes_of_objects() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), &storage(Mode::Durable));
    store.prepare().unwrap();
    let mut session = store.session(0).unwrap();
    let (mut write, mut read) = (call(), call());
    session.write(&object(1), &mut write).unwrap();
    session.read(&object(1), &mut read).unwrap();
    for (call, out, back, begun) in [(write, SIZE, 0, false), (read, 0, SIZE, true)] {
        let text = format!("{call:?}");
        assert!(text.contains(&format!("bytes_out: {out}, bytes_in: {back}")), "{text}");
        assert_eq!(text.contains("first_byte: Some"), begun, "{text}");
    }
    store.clean_up(&Cleaning::default());
}

#[test]
fn an_object_is_written_over_another_where_the_study_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for mode in [Mode::App, Mode::Durable] {
        let store = store(folder.path(), &Storage { overwrite: true, ..storage(mode) });
        store.prepare().unwrap();
        let mut session = store.session(0).unwrap();
        session.write(&object(1), &mut call()).unwrap();
        let shorter = Object { size: SIZE / 3, number: 2, ..object(1) };
        session.write(&shorter, &mut call()).unwrap();
        session.read(&shorter, &mut call()).unwrap();
        session.list(&(1..=1), &mut call()).unwrap();
        assert_eq!(store.clean_up(&Cleaning::default()), Vec::<String>::new());
    }
}

#[test]
fn a_name_that_is_taken_is_not_written_over_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), &storage(Mode::App));
    store.prepare().unwrap();
    let mut session = store.session(0).unwrap();
    session.write(&object(1), &mut call()).unwrap();
    let failure = session.write(&object(1), &mut call()).unwrap_err();
    assert!(failure.detail.contains("failed to create") && failure.detail.contains("object-1"), "{}", failure.detail);
}

#[test]
fn what_was_changed_between_write_and_read_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), &storage(Mode::App));
    store.prepare().unwrap();
    let mut session = store.session(3).unwrap();
    let path = store.trial().join("user-3").join("object-1");
    session.write(&object(1), &mut call()).unwrap();
    let written = fs::read(&path).unwrap();
    let mut corrupt = written.clone();
    corrupt[100_000] ^= 1;
    let longer = [&written[..], b"x"].concat();
    for (found, kind, says) in [
        (&corrupt[..], ErrorKind::Check, "object-1 differs from what was written at byte 100000"),
        (&written[..100_000], ErrorKind::Closed, "found 100000"),
        (&written[..BLOCK as usize], ErrorKind::Closed, "found 65536"),
        (&[], ErrorKind::Closed, "found 0"),
        (&longer, ErrorKind::Check, "found more"),
    ] {
        fs::write(&path, found).unwrap();
        let failure = session.read(&object(1), &mut call()).unwrap_err();
        assert_eq!(failure.kind, kind, "{}", failure.detail);
        assert!(failure.detail.contains(says), "{}", failure.detail);
    }
    fs::write(&path, &written).unwrap();
    assert_eq!(session.read(&object(1), &mut call()), Ok(()));
    fs::remove_file(&path).unwrap();
    assert_eq!(session.read(&object(1), &mut call()).unwrap_err().kind, ErrorKind::Io);
    assert_eq!(session.list(&(1..=1), &mut call()).unwrap_err().kind, ErrorKind::Check);
}

#[test]
fn only_what_a_trial_wrote_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("theirs"), "x").unwrap();
    fs::create_dir_all(folder.path().join("plimsoll-1-2/user-0")).unwrap();
    let made = folder.path().join("made");
    let (one, other) = (store(folder.path(), &storage(Mode::App)), store(&made, &storage(Mode::App)));
    for store in [&one, &other] {
        store.prepare().unwrap();
        store.session(0).unwrap().write(&object(1), &mut call()).unwrap();
    }
    assert_eq!(one.clean_up(&Cleaning::default()), Vec::<String>::new());
    assert_eq!(names(&made).len(), 1, "another trial's folder stays");
    fs::write(made.join("theirs"), "x").unwrap();
    assert_eq!(other.clean_up(&Cleaning::default()), Vec::<String>::new());
    assert_eq!(names(&made), ["theirs"], "a directory that somebody uses by now stays");
    let mut left = names(folder.path());
    left.sort();
    assert_eq!(left, ["made", "plimsoll-1-2", "theirs"]);
}

#[test]
fn a_directory_that_was_made_is_removed_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder.path().join("made"), &storage(Mode::Durable));
    store.prepare().unwrap();
    assert!(store.free_space().unwrap() > 0);
    store.clean_up(&Cleaning::default());
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_full_disk_is_named_and_nothing_stays() {
    let Some(mounted) = Mounted::new("tmpfs", "size=1m") else { return };
    let store = store(mounted.path(), &storage(Mode::App));
    store.prepare().unwrap();
    assert!(store.free_space().unwrap() <= 1 << 20);
    let mut session = store.session(0).unwrap();
    let failures = (0..10).filter_map(|number| session.write(&object(number), &mut call()).err());
    let kinds: Vec<ErrorKind> = failures.map(|failure| failure.kind).collect();
    assert!(kinds.len() >= 4, "{kinds:?}: 1 MiB holds six objects");
    assert!(kinds.iter().all(|kind| *kind == ErrorKind::Space), "{kinds:?}");
    drop(session);
    assert_eq!(store.clean_up(&Cleaning::default()), Vec::<String>::new());
    assert!(names(mounted.path()).is_empty());
}

#[test]
fn a_directory_that_may_not_be_written_is_named() {
    let Some(mounted) = Mounted::new("tmpfs", "ro") else { return };
    let failure = store(mounted.path(), &storage(Mode::App)).prepare().unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Denied);
    assert!(failure.detail.contains(&format!("failed to make {}", mounted.path().display())), "{}", failure.detail);
}

#[test]
fn a_path_that_is_no_directory_or_has_no_parent_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    for path in [file, folder.path().join("missing/deeper")] {
        let failure = store(&path, &storage(Mode::App)).prepare().unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Io);
        assert!(failure.detail.contains(path.to_str().unwrap()), "{}", failure.detail);
    }
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn a_file_system_that_refuses_to_go_past_the_cache_is_named_and_left_as_it_was() {
    let Some(mounted) = Mounted::new("ramfs", "mode=700") else { return };
    let failure = store(mounted.path(), &storage(Mode::Direct)).prepare().unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Io);
    assert!(failure.detail.contains("with O_DIRECT: its file system refuses that"), "{}", failure.detail);
    assert!(names(mounted.path()).is_empty());
}

#[test]
fn pages_that_stay_in_the_cache_are_named() {
    let Some(mounted) = Mounted::new("tmpfs", "size=1m") else { return };
    let store = store(mounted.path(), &storage(Mode::Cold));
    store.prepare().unwrap();
    let mut session = store.session(0).unwrap();
    session.write(&object(1), &mut call()).unwrap();
    let failure = session.before_read(&object(1)).unwrap_err();
    let pages = SIZE / rustix::param::page_size() as u64;
    assert!(failure.detail.contains(&format!("{pages} of {pages} pages stayed")), "{}", failure.detail);
}

#[test]
fn pages_under_an_overlay_are_seen() {
    let below = tempfile::tempdir().unwrap();
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| below.path().join(name));
    [&lower, &upper, &work].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let options = format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
    let Some(mounted) = Mounted::new("overlay", &options) else { return };
    let store = store(mounted.path(), &storage(Mode::App));
    store.prepare().unwrap();
    let mut session = store.session(0).unwrap();
    session.write(&object(1), &mut call()).unwrap();
    assert_eq!(session.before_read(&object(1)).unwrap().share(), Some(1.0));
}

#[test]
fn lengths_that_do_not_fit_past_the_cache_are_named_with_those_that_do() {
    let direct = storage(Mode::Direct);
    for (size, block, says) in [
        (100_000, 4096, "for each object, as O_DIRECT wants it, found 100000; use 98304 or 102400"),
        (1 << 20, 10_000, "for each block, as O_DIRECT wants it, found 10000; use 8192 or 12288"),
    ] {
        let fault = check_lengths(&Storage { size, block, ..direct.clone() }, 4096).unwrap_err();
        assert!(fault.contains(says), "{fault}");
    }
    for (size, block) in [(8192, 4096), (8192, 10_000), (1 << 20, 1 << 20)] {
        assert_eq!(check_lengths(&Storage { size, block, ..direct.clone() }, 4096), Ok(()));
    }
    let content = Arc::new(Content::new(Payload::Zeros, BLOCK, 1));
    let odd = Storage { size: 1000, ..direct };
    assert!(DirectoryStore::new(&odd, PathBuf::from("/"), content).unwrap_err().contains("multiple of 512"));
}

#[test]
fn files_that_a_file_system_puts_aside_are_no_objects() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), &storage(Mode::App));
    store.prepare().unwrap();
    let mut session = store.session(0).unwrap();
    session.write(&object(1), &mut call()).unwrap();
    let inside = folder.path().join(&names(folder.path())[0]).join("user-0");
    for name in [".fuse_hidden0000000200000001", ".nfs000000000000a1b200000001"] {
        fs::write(inside.join(name), "deleted, and still open").unwrap();
    }
    session.list(&(1..=1), &mut call()).unwrap();
    fs::write(inside.join(".other"), "nobody's").unwrap();
    let failure = session.list(&(1..=1), &mut call()).unwrap_err();
    assert!(failure.detail.contains("expected 1 objects") && failure.detail.ends_with("found 2"), "{}", failure.detail);
}

#[test]
fn a_local_directory_is_described() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), &storage(Mode::App));
    store.prepare().unwrap();
    let mut facts = StorageFacts::default();
    store.describe(&mut facts);
    assert_eq!((facts.kind.as_str(), facts.place), ("directory", folder.path().display().to_string()));
    let file_system = facts.file_system.expect("something is mounted at /");
    assert_eq!((facts.page_cache, facts.on_this_machine), (true, !file_system.network));
    assert!(folder.path().canonicalize().unwrap().starts_with(&file_system.mount_point));
    store.clean_up(&Cleaning::default());
}

#[test]
fn a_network_file_system_is_used_and_described() {
    let served = tempfile::tempdir().unwrap();
    let mounted = match SshfsMount::start(served.path()) {
        Ok(mounted) => mounted,
        Err(reason) => return skipped(format_args!("no network file system: {reason}")),
    };
    for mode in [Mode::App, Mode::Durable, Mode::Cold] {
        round_trip(mounted.path(), &storage(mode)).unwrap_or_else(|failure| panic!("{mode}: {}", failure.detail));
    }
    assert!(names(served.path()).is_empty());

    let store = store(mounted.path(), &storage(Mode::App));
    store.prepare().unwrap();
    let mut facts = StorageFacts::default();
    store.describe(&mut facts);
    assert!(facts.on_this_machine && facts.page_cache);
    assert!(facts.details[0].contains("loopback"), "{:?}", facts.details);
    let file_system = facts.file_system.expect("it is mounted");
    assert_eq!((file_system.kind.as_str(), file_system.network), ("fuse.sshfs", true));
    assert_eq!(file_system.server.as_deref(), Some("localhost"));
    assert_eq!(file_system.source, format!("localhost:{}", served.path().display()));
    assert_eq!(names(served.path()).len(), 1, "what is made here is there");
    assert_eq!(store.clean_up(&Cleaning::default()), Vec::<String>::new());
}
