//! The operating system user that runs a server.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

/// The user that runs a server for root: servers refuse to run as root.
const NOBODY: &str = "nobody";

/// An operating system user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    uid: u32,
    gid: u32,
    /// True if it is not the user that runs Plimsoll.
    is_other: bool,
}

impl Account {
    /// The user that a study names; without one, the user that runs Plimsoll, or `nobody` if that is root.
    pub(crate) fn find(asked: Option<&str>) -> Result<Account, String> {
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        choose(asked, rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw(), &passwd)
    }

    /// The prefix of a command that runs it as this user. It also ties the command's life to the starting
    /// process again, which the kernel forgets when the user changes.
    pub(crate) fn prefix(&self) -> Vec<String> {
        if !self.is_other {
            return Vec::new();
        }
        let (uid, gid) = (format!("--reuid={}", self.uid), format!("--regid={}", self.gid));
        ["setpriv", &uid, &gid, "--clear-groups", "--pdeathsig=KILL", "--"].map(str::to_owned).to_vec()
    }

    /// Gives a file or folder to this user.
    pub(crate) fn give(&self, path: &Path) -> io::Result<()> {
        if self.is_other { chown(path, Some(self.uid), Some(self.gid)) } else { Ok(()) }
    }

    /// Makes a folder that belongs to this user.
    pub(crate) fn make_folder(&self, path: &Path, mode: u32) -> io::Result<()> {
        fs::create_dir(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        self.give(path)
    }

    /// Fails if the user may not enter `path`, or the existing part of it.
    pub(crate) fn check_can_enter(&self, path: &Path) -> Result<(), String> {
        let closed = |folder: &&Path| fs::metadata(folder).is_ok_and(|folder| !self.may_enter(&folder));
        match path.ancestors().find(closed) {
            Some(closed) if self.is_other => Err(format!(
                "the user `{}`, who runs the server, may not enter {}; name another folder or another `user`, or \
                 allow it with `chmod o+x`",
                self.name,
                closed.display()
            )),
            _ => Ok(()),
        }
    }

    fn may_enter(&self, folder: &fs::Metadata) -> bool {
        let who = match (folder.uid() == self.uid, folder.gid() == self.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        folder.mode() & who != 0
    }
}

fn choose(asked: Option<&str>, uid: u32, gid: u32, passwd: &str) -> Result<Account, String> {
    let own_name = || entries(passwd).find(|entry| entry.1 == uid).map_or(uid.to_string(), |entry| entry.0.to_owned());
    let Some(name) = asked.or((uid == 0).then_some(NOBODY)) else {
        return Ok(Account { name: own_name(), uid, gid, is_other: false });
    };
    let Some((_, their_uid, their_gid)) = entries(passwd).find(|entry| entry.0 == name) else {
        return Err(format!("the user `{name}`, who is to run the server, is not in /etc/passwd; correct `user`"));
    };
    if their_uid == 0 {
        return Err("a database cannot be run by root; name another `user`".to_owned());
    }
    if their_uid != uid && uid != 0 {
        return Err(format!(
            "the server is to be run by the user `{name}`, but only root can do that, and Plimsoll is run by `{}`; \
             leave `user` out, or run Plimsoll as root",
            own_name()
        ));
    }
    Ok(Account { name: name.to_owned(), uid: their_uid, gid: their_gid, is_other: their_uid != uid })
}

/// The names of users, with their user and group ids.
fn entries(passwd: &str) -> impl Iterator<Item = (&str, u32, u32)> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        Some((fields.next()?, fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1001::/home/ada:/bin/sh\n\
                          nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin\n";

    #[test]
    fn root_has_its_servers_run_by_nobody_and_others_run_them_themselves() {
        let of_root = choose(None, 0, 0, PASSWD).unwrap();
        assert_eq!((of_root.name.as_str(), of_root.uid, of_root.gid), ("nobody", 65534, 65533));
        assert_eq!(of_root.prefix()[1..3], ["--reuid=65534", "--regid=65533"]);
        let of_ada = choose(None, 1000, 1001, PASSWD).unwrap();
        assert_eq!((of_ada.name.as_str(), of_ada.prefix().len()), ("ada", 0));
        assert_eq!(choose(Some("ada"), 1000, 1001, PASSWD).unwrap(), of_ada);
        assert_eq!(choose(None, 1234, 1234, PASSWD).unwrap().name, "1234");
    }

    #[test]
    fn a_user_who_cannot_run_a_server_is_refused_with_the_reason() {
        let refused = |asked, uid| choose(Some(asked), uid, uid, PASSWD).unwrap_err();
        assert!(refused("eve", 0).contains("`eve`, who is to run the server, is not in /etc/passwd"));
        assert!(refused("root", 0).contains("cannot be run by root"));
        assert!(refused("nobody", 1000).contains("only root can do that, and Plimsoll is run by `ada`"));
    }

    #[test]
    fn a_folder_that_is_closed_to_the_user_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let stranger = Account { name: "eve".to_owned(), uid: 4242, gid: 4242, is_other: true };
        let said = stranger.check_can_enter(&folder.path().join("data/db")).unwrap_err();
        assert!(
            said.contains(&format!("`eve`, who runs the server, may not enter {}", folder.path().display())),
            "{said}"
        );
        assert_eq!(stranger.check_can_enter(Path::new("/usr/bin")), Ok(()));
    }
}
