//! Against a server of somebody else's, and against one that follows a script.

use super::*;
use crate::Object;
use nfs3_client::nfs3_types::nfs3::{
    COMMIT3res, COMMIT3resok, CREATE3res, CREATE3resok, Nfs3Option, WRITE3res, WRITE3resok, stable_how, wcc_data,
    writeverf3,
};
use nfs3_client::nfs3_types::xdr_codec::Pack;
use plimsoll_model::storage::{NfsPorts, Payload, Store as Back};
use plimsoll_testkit::nfs::{ReplyMode, Server, Status};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use tempfile::TempDir;

const BLOCK: u64 = 64 << 10;
const SIZE: u64 = 200_000;

/// What no call needs, on however busy a machine.
const LONG: Duration = Duration::from_secs(30);

/// What a call gets whose answer does not come.
const SHORT: Duration = Duration::from_millis(200);

/// A store at this address, in this mode, and otherwise as `change` will have it.
fn store_at(address: SocketAddr, change: impl FnOnce(&mut Storage, &mut Nfs)) -> Result<NfsStore, String> {
    let ports = NfsPorts { nfs: Some(address.port()), mount: Some(address.port()) };
    let mut nfs = Nfs { host: "localhost".to_owned(), ports, export: "/".to_owned() };
    let mut storage = Storage {
        name: "nfs".to_owned(),
        store: Back::Nfs(nfs.clone()),
        mode: Mode::App,
        sync_directory: true,
        payload: Payload::Random,
        size: SIZE,
        block: BLOCK,
        objects: 4,
        overwrite: false,
        verify: true,
        actions: Vec::new(),
        steps: Vec::new(),
    };
    change(&mut storage, &mut nfs);
    let content = Arc::new(Content::new(storage.payload, storage.block, 1));
    NfsStore::new(&storage, &nfs, address, LONG, content)
}

/// A directory that is served, and a store in it whose trial is prepared.
fn given(change: impl FnOnce(&mut Storage, &mut Nfs)) -> (TempDir, Server, NfsStore) {
    let directory = tempfile::tempdir().expect("a directory for the server");
    let server = Server::start(directory.path()).expect("a port");
    let store = store_at(server.address(), change).expect("a mode that there is");
    store.prepare().expect("the server answers");
    (directory, server, store)
}

fn call() -> Call {
    Call::untimed(LONG)
}

fn object(number: u64, size: u64) -> Object {
    Object { name: format!("object-{number}"), number, size }
}

/// Where the server keeps an object of the first user.
fn kept(directory: &TempDir, object: &Object) -> PathBuf {
    let [trial] = &entries(directory.path())[..] else { panic!("one folder is made in {directory:?}") };
    trial.join(user_folder(0)).join(&object.name)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let listing = std::fs::read_dir(folder).expect("a folder");
    listing.map(|entry| entry.expect("an entry").path()).collect()
}

#[test]
fn what_is_written_is_read_again_in_every_mode() {
    for mode in [Mode::App, Mode::Durable, Mode::Cold] {
        let (_directory, server, store) = given(|storage, _| storage.mode = mode);
        let mut session = store.session(0).expect("a connection");
        for (number, size) in [1, 1000, BLOCK, BLOCK + 1, SIZE].into_iter().enumerate() {
            let object = object(number as u64, size);
            session.write(&object, &mut call()).expect("there is room");
            session.read(&object, &mut call()).expect("it is there");
        }
        assert_eq!(server.commits(), 5, "{mode}: once for each object");
    }
}

#[test]
fn the_commit_is_the_sync_of_a_durable_write_and_the_close_of_any_other() {
    for (mode, part, other) in [(Mode::Durable, "Sync", "Close"), (Mode::App, "Close", "Sync")] {
        let (_directory, _server, store) = given(|storage, _| storage.mode = mode);
        let mut call = call();
        store.session(0).expect("a connection").write(&object(1, SIZE), &mut call).expect("there is room");
        let parts = format!("{call:?}");
        assert!(parts.contains(&format!("part: {part}")), "{parts}");
        assert!(!parts.contains(&format!("part: {other}")), "{parts}");
        assert!(parts.contains(&format!("bytes_out: {SIZE}")), "{parts}");
    }
}

#[test]
fn users_do_not_see_each_others_objects() {
    let (_directory, _server, store) = given(|_, _| {});
    std::thread::scope(|scope| {
        for user in 0..8 {
            let store = &store;
            scope.spawn(move || {
                let mut session = store.session(user).expect("a connection");
                let objects = [object(user.into(), SIZE), object(1000, SIZE)];
                objects.iter().for_each(|object| session.write(object, &mut call()).expect("there is room"));
                objects.iter().for_each(|object| session.read(object, &mut call()).expect("it is there"));
                session.list(&(2..=2), &mut call()).expect("nothing but its own");
            });
        }
    });
    assert_eq!(store.clean_up(&Cleaning::default()), Vec::<String>::new());
}

#[test]
fn a_listing_knows_what_was_written_and_deleted() {
    let directory = tempfile::tempdir().expect("a directory for the server");
    let server = Server::with_transfers_of(10_000, directory.path()).expect("a port");
    let store = store_at(server.address(), |_, _| {}).expect("a mode that there is");
    store.prepare().expect("the server answers");
    let mut session = store.session(0).expect("a connection");
    session.list(&(0..=0), &mut call()).expect("an empty folder");
    // So many that they do not fit on one page.
    let name = |number| format!("{number:0200}");
    let objects: Vec<Object> = (0..400).map(|number| Object { name: name(number), ..object(number, 1) }).collect();
    objects.iter().for_each(|object| session.write(object, &mut call()).expect("there is room"));
    session.list(&(400..=400), &mut call()).expect("all of them");
    session.delete(&objects[7], &mut call()).expect("it is there");
    session.list(&(399..=399), &mut call()).expect("one less");
    assert_eq!(session.list(&(400..=400), &mut call()).unwrap_err().kind, ErrorKind::Check);
    let gone = session.read(&objects[7], &mut call()).unwrap_err();
    assert!(gone.detail.contains("LOOKUP 000") && gone.detail.contains("NFS3ERR_NOENT"), "{}", gone.detail);
    assert_eq!(store.clean_up(&Cleaning::default()), Vec::<String>::new());
}

#[test]
fn a_name_is_written_over_only_where_that_is_asked_for() {
    let (directory, _server, store) = given(|storage, _| storage.overwrite = true);
    let mut session = store.session(0).expect("a connection");
    let first = object(1, SIZE);
    let second = Object { number: 2, size: SIZE / 2, ..first.clone() };
    session.write(&first, &mut call()).expect("there is room");
    session.write(&second, &mut call()).expect("there is room");
    session.read(&second, &mut call()).expect("nothing of the first is left");
    assert_eq!(std::fs::metadata(kept(&directory, &second)).expect("a file").len(), second.size);

    let (_directory, _server, store) = given(|_, _| {});
    let mut session = store.session(0).expect("a connection");
    session.write(&first, &mut call()).expect("there is room");
    let failure = session.write(&second, &mut call()).unwrap_err();
    assert!(failure.detail.contains("NFS3ERR_EXIST"), "{}", failure.detail);
}

#[test]
fn an_object_that_changed_on_the_server_is_found() {
    let (directory, _server, store) = given(|_, _| {});
    let mut session = store.session(0).expect("a connection");
    let object = object(1, SIZE);
    session.write(&object, &mut call()).expect("there is room");
    let whole = std::fs::read(kept(&directory, &object)).expect("a file");
    let mut wrong = whole.clone();
    wrong[150_000] ^= 1;
    let longer = [&whole[..], b"x"].concat();
    for (bytes, found) in [
        (&whole[..100_000], "ends after 100000 bytes"),
        (&whole[..0], "ends after 0 bytes"),
        (&longer, "more than the 200000 bytes"),
        (&wrong, "at byte 150000"),
    ] {
        std::fs::write(kept(&directory, &object), bytes).expect("a file");
        let failure = session.read(&object, &mut call()).unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Check, "{found}");
        assert!(failure.detail.contains(found), "{}", failure.detail);
    }
}

#[test]
fn requests_are_as_long_as_block_and_server_allow() {
    let directory = tempfile::tempdir().expect("a directory for the server");
    let server = Server::with_transfers_of(10_000, directory.path()).expect("a port");
    let store = store_at(server.address(), |_, _| {}).expect("a mode that there is");
    store.prepare().expect("the server answers");
    let mut session = store.session(0).expect("a connection");
    session.write(&object(1, SIZE), &mut call()).expect("there is room");
    session.read(&object(1, SIZE), &mut call()).expect("it is there");
    let mut facts = StorageFacts::default();
    store.describe(&mut facts);
    assert!(facts.details.iter().any(|detail| detail.contains("reads of 10000, writes of 10000 bytes")), "{facts:?}");
    assert!(facts.place.starts_with("nfs://localhost/plimsoll-"), "{facts:?}");
    assert!(facts.on_this_machine && !facts.page_cache, "{facts:?}");
}

#[test]
fn refusals_are_told_apart() {
    let (_directory, server, store) = given(|_, _| {});
    let mut session = store.session(0).expect("a connection");
    for (status, kind) in [
        (Status::NFS3ERR_NOSPC, ErrorKind::Space),
        (Status::NFS3ERR_DQUOT, ErrorKind::Space),
        (Status::NFS3ERR_ACCES, ErrorKind::Denied),
        (Status::NFS3ERR_ROFS, ErrorKind::Denied),
        (Status::NFS3ERR_IO, ErrorKind::Io),
    ] {
        server.set_reply_mode(ReplyMode::Refuse(status));
        let failure = session.write(&object(1, SIZE), &mut call()).unwrap_err();
        assert_eq!(failure.kind, kind);
        assert!(failure.detail.starts_with("failed to CREATE object-1: "), "{}", failure.detail);
        assert!(failure.detail.contains(&status.to_string()), "{}", failure.detail);
    }
}

#[test]
fn a_server_that_stops_answering_is_a_time_out_and_is_reached_again_later() {
    let (_directory, server, store) = given(|_, _| {});
    let mut session = store.session(0).expect("a connection");
    session.write(&object(1, SIZE), &mut call()).expect("there is room");
    server.set_reply_mode(ReplyMode::Never);
    let failure = session.read(&object(1, SIZE), &mut Call::untimed(SHORT)).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Timeout, "{}", failure.detail);
    server.set_reply_mode(ReplyMode::Normal);
    session.read(&object(1, SIZE), &mut call()).expect("a new connection");
}

#[test]
fn a_server_that_cannot_be_used_is_named() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("a bound socket");
    let mut store = store_at(address, |_, _| {}).expect("a mode that there is");
    store.timeout = SHORT;
    let silent = store.prepare().unwrap_err();
    assert_eq!(silent.kind, ErrorKind::Timeout, "{}", silent.detail);
    drop(listener);
    let absent = store.prepare().unwrap_err();
    assert_eq!(absent.kind, ErrorKind::Connect, "{}", absent.detail);
    assert!(absent.detail.contains(&address.to_string()), "{}", absent.detail);

    let directory = tempfile::tempdir().expect("a directory for the server");
    let server = Server::start(directory.path()).expect("a port");
    let store = store_at(server.address(), |_, nfs| nfs.export = "/absent".to_owned()).expect("a mode that there is");
    let failure = store.prepare().unwrap_err();
    assert!(failure.detail.starts_with("failed to mount /absent of localhost: "), "{}", failure.detail);
    assert!(entries(directory.path()).is_empty());
    assert_eq!(store.clean_up(&Cleaning::default()), Vec::<String>::new());
}

#[test]
fn the_folder_of_a_trial_is_removed_and_nothing_else() {
    let (directory, _server, store) = given(|_, _| {});
    let other = store_at(store.address, |_, _| {}).expect("a mode that there is");
    other.prepare().expect("trials have names of their own");
    std::fs::write(directory.path().join("foreign"), "not ours").expect("a file");
    for user in 0..3 {
        let mut session = store.session(user).expect("a connection");
        (0..5).for_each(|number| session.write(&object(number, 1000), &mut call()).expect("there is room"));
    }
    assert_eq!(entries(directory.path()).len(), 3);
    assert_eq!(store.clean_up(&Cleaning::default()), Vec::<String>::new());
    assert_eq!(entries(directory.path()).len(), 2);
    assert_eq!(other.clean_up(&Cleaning::default()), Vec::<String>::new());
    assert_eq!(entries(directory.path()), [directory.path().join("foreign")]);
}

#[test]
fn what_cannot_be_removed_is_told() {
    let (directory, server, store) = given(|_, _| {});
    let object = object(1, 1000);
    store.session(0).expect("a connection").write(&object, &mut call()).expect("there is room");
    let path = kept(&directory, &object);
    std::fs::remove_file(&path).expect("a file");
    std::fs::create_dir_all(path.join("foreign")).expect("a folder");
    let [left] = &store.clean_up(&Cleaning::default())[..] else { panic!("one text for what is left") };
    assert!(left.contains("/plimsoll-") && left.contains("REMOVE object-1"), "{left}");
    drop(server);
    let [left] = &store.clean_up(&Cleaning::default())[..] else { panic!("one text for a server that is gone") };
    assert!(left.contains("failed to reach the NFS server"), "{left}");
}

#[test]
fn connections_come_from_reserved_ports_where_those_are_permitted() {
    let permitted = !TcpListener::bind((Ipv4Addr::LOCALHOST, 700))
        .is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("a bound socket");
    let _connection = stream::Dialer::new(&call()).connect_to(address).expect("somebody listens");
    let (_, client) = listener.accept().expect("a client");
    assert_eq!(client.port() < 1024, permitted, "{client}");
}

#[test]
fn past_a_page_cache_that_is_not_there_no_mode_leads() {
    let fault = store_at(([127, 0, 0, 1], 1).into(), |storage, _| storage.mode = Mode::Direct).unwrap_err();
    assert!(fault.contains("`durable`"), "{fault}");
}

/// A server of one connection that gives these answers, whatever it is asked.
fn scripted(answers: Vec<Vec<u8>>) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("a bound socket");
    let serve = move || {
        let (mut stream, _) = listener.accept().expect("a client");
        for answer in answers {
            let mut length = [0; 4];
            stream.read_exact(&mut length).expect("the head of a request");
            let mut request = vec![0; (u32::from_be_bytes(length) & 0x7fff_ffff) as usize];
            stream.read_exact(&mut request).expect("a request");
            // A reply that is accepted, with an empty verifier and success (RFC 5531, 9).
            let head: [u32; 5] = [1, 0, 0, 0, 0];
            let head: Vec<u8> = head.iter().flat_map(|word| word.to_be_bytes()).collect();
            let reply = [&request[..4], &head, &answer].concat();
            let length = reply.len() as u32 | 0x8000_0000;
            stream.write_all(&[&length.to_be_bytes()[..], &reply].concat()).expect("the client waits");
        }
    };
    (address, std::thread::spawn(serve))
}

fn packed(answer: &impl Pack) -> Vec<u8> {
    let mut bytes = Vec::new();
    answer.pack(&mut bytes).expect("memory");
    bytes
}

fn created() -> Vec<u8> {
    let obj = Nfs3Option::Some(nfs_fh3::default());
    let made = CREATE3resok { obj, obj_attributes: Nfs3Option::None, dir_wcc: wcc_data::default() };
    packed(&CREATE3res::Ok(made))
}

fn written(count: u32, committed: stable_how, run: u8) -> Vec<u8> {
    let verf = writeverf3([run; 8]);
    packed(&WRITE3res::Ok(WRITE3resok { file_wcc: wcc_data::default(), count, committed, verf }))
}

fn committed(run: u8) -> Vec<u8> {
    packed(&COMMIT3res::Ok(COMMIT3resok { file_wcc: wcc_data::default(), verf: writeverf3([run; 8]) }))
}

/// What becomes of an object of 1000 bytes that is written to a server with these answers.
fn write_to(answers: Vec<Vec<u8>>) -> Result<(), Failure> {
    let (address, server) = scripted(answers);
    let options = store_at(address, |_, _| {}).expect("a mode that there is").options;
    let client = Client::of(address, &call());
    let limits = Limits { read: 1000, write: 1000, page: 1000 };
    let mut session = NfsSession { client, folder: nfs_fh3::default(), options, limits };
    let outcome = session.write(&object(1, 1000), &mut call());
    drop(session);
    server.join().expect("the script was followed to its end");
    outcome
}

#[test]
fn what_a_server_did_not_take_is_sent_again() {
    let unstable = stable_how::UNSTABLE;
    let answers =
        vec![created(), written(400, unstable, 1), written(500, unstable, 1), written(100, unstable, 1), committed(1)];
    assert_eq!(write_to(answers), Ok(()));
    for count in [0, 1001] {
        let failure = write_to(vec![created(), written(count, unstable, 1)]).unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Protocol, "{}", failure.detail);
    }
}

#[test]
fn what_a_server_has_made_durable_is_not_committed_again() {
    assert_eq!(write_to(vec![created(), written(1000, stable_how::FILE_SYNC, 1)]), Ok(()));
}

#[test]
fn a_server_that_restarts_before_the_commit_has_lost_the_object() {
    let unstable = stable_how::UNSTABLE;
    for answers in [
        vec![created(), written(1000, unstable, 1), committed(2)],
        vec![created(), written(400, unstable, 1), written(600, unstable, 2)],
    ] {
        let failure = write_to(answers).unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Io);
        assert!(failure.detail.starts_with("the server restarted"), "{}", failure.detail);
    }
}

#[test]
fn a_connection_that_ends_is_told_from_a_server_that_hangs() {
    let failure = write_to(vec![created()]).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Closed, "{}", failure.detail);
}
