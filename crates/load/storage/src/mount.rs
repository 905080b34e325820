//! Finds the file system of a directory in the kernel's list of mounts.

use plimsoll_model::storage::FileSystem;
use std::net::IpAddr;
use std::path::Path;

/// File systems that use a server, even if their source does not show it.
const NETWORK: [&str; 14] = [
    "9p",
    "afs",
    "ceph",
    "cifs",
    "fuse.gcsfuse",
    "fuse.glusterfs",
    "fuse.mount-s3",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
    "lustre",
    "nfs",
    "nfs4",
    "smb3",
];

/// The file system of `path`, which is absolute and without links, by the text of
/// `/proc/self/mountinfo`. Of two mounts at one place the later one hides the other.
pub(super) fn file_system(mountinfo: &str, path: &Path) -> Option<FileSystem> {
    let mounts = mountinfo.lines().filter_map(parsed);
    mounts.filter(|mount| path.starts_with(&mount.mount_point)).max_by_key(|mount| mount.mount_point.len())
}

/// True if its data is on this machine: no network file system, or one with a server at a loopback
/// address.
pub(super) fn on_this_machine(file_system: &FileSystem) -> bool {
    let named = [file_system.server.as_deref(), option(&file_system.options, "addr")];
    !file_system.network || named.into_iter().flatten().any(is_loopback)
}

/// Parses a line: id, parent, device, root, mount point, options, optional fields, `-`, type, source,
/// options of the file system.
fn parsed(line: &str) -> Option<FileSystem> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(4).map(unescaped);
    let mut file_system = file_system.split(' ').map(unescaped);
    let (mount_point, of_mount) = (mount.next()?, mount.next()?);
    let (kind, source) = (file_system.next()?, file_system.next()?);
    let options = joined(&of_mount, &file_system.next().unwrap_or_default());
    let network = NETWORK.contains(&kind.as_str()) || kind.starts_with("fuse.") && host(&source).is_some();
    let server = if network { server(&source, &options) } else { None };
    Some(FileSystem { kind, source, options, mount_point, network, server })
}

/// Joins both lists of options without duplicates.
fn joined(of_mount: &str, of_file_system: &str) -> String {
    let known: Vec<&str> = of_mount.split(',').collect();
    let new = of_file_system.split(',').filter(|option| !option.is_empty() && !known.contains(option));
    known.iter().copied().chain(new).collect::<Vec<&str>>().join(",")
}

/// The server in the source, or in the option `addr`. sshfs writes directories below its home as `host:x`.
fn server(source: &str, options: &str) -> Option<String> {
    let relative = || source.split_once(':').and_then(|(before, _)| bare_host(before));
    host(source).or_else(|| option(options, "addr")).or_else(relative).map(str::to_owned)
}

/// The host of `//host/share` and `user@host:/x`.
fn host(source: &str) -> Option<&str> {
    let named = match source.strip_prefix("//") {
        Some(share) => share.split('/').next(),
        None => source.split_once(":/").map(|(before, _)| before),
    };
    named.and_then(bare_host)
}

/// Removes the user, and the brackets of an IPv6 address. A path is no host.
fn bare_host(named: &str) -> Option<&str> {
    let host = named.rsplit('@').next()?.trim_matches(['[', ']']);
    (!host.is_empty() && !host.contains('/')).then_some(host)
}

fn option<'a>(options: &'a str, name: &str) -> Option<&'a str> {
    options.split(',').find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse().is_ok_and(|address: IpAddr| address.to_canonical().is_loopback())
}

/// Undoes the octal escapes of blanks and backslashes.
fn unescaped(field: &str) -> String {
    let mut parts = field.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.map_or('\\', char::from));
        plain.push_str(if code.is_some() { &part[3..] } else { part });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,discard,errors=remount-ro
30 22 0:40 / /mnt/nfs rw,relatime shared:7 - nfs4 files.example:/export/data rw,vers=4.2,rsize=1048576,hard,proto=tcp,addr=192.0.2.7
31 22 0:41 / /mnt/share rw,relatime - cifs //Files/team rw,vers=3.1.1,username=u,addr=192.0.2.9
32 22 0:42 / /mnt/ssh rw,nosuid,nodev,relatime - fuse.sshfs me@localhost:/srv rw,user_id=0,group_id=0
33 22 0:43 / /var/lib/x rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/c,workdir=/d
34 22 0:44 / /mnt/my\\040files rw,noatime master:2 propagate_from:1 - xfs /dev/disk\\134x rw
35 22 0:45 / /mnt/home rw - fuse.sshfs host.example:work rw
36 22 0:46 / /mnt/pool rw - fuse.mergerfs /a:/b rw
37 22 0:47 / /mnt/other rw - fuse.thing [2001:db8::1]:/x rw
38 22 0:48 / /mnt/tunnel rw,relatime - nfs4 alias:/ rw,vers=4.1,addr=127.0.0.1
39 22 0:49 / /mnt/guest rw - 9p share rw,trans=virtio
40 22 0:50 / /mnt/twice rw - ext4 /dev/sdb1 rw
41 40 0:51 / /mnt/twice rw - tmpfs scratch rw,size=1024k
a line of a kernel that we do not know
";

    fn of(path: &str) -> FileSystem {
        file_system(MOUNTS, Path::new(path)).expect("something is mounted at /")
    }

    #[test]
    fn the_longest_mount_point_above_a_path_decides_and_the_later_of_two() {
        for (path, kind, mount_point) in [
            ("/home/me", "ext4", "/"),
            ("/mnt/nfs", "nfs4", "/mnt/nfs"),
            ("/mnt/nfs/deep/down", "nfs4", "/mnt/nfs"),
            ("/mnt/nfsx", "ext4", "/"),
            ("/var/lib/x/y", "overlay", "/var/lib/x"),
            ("/mnt/my files/y", "xfs", "/mnt/my files"),
            ("/mnt/twice/y", "tmpfs", "/mnt/twice"),
        ] {
            let found = of(path);
            assert_eq!((found.kind.as_str(), found.mount_point.as_str()), (kind, mount_point), "{path}");
        }
        assert_eq!(file_system("", Path::new("/")), None);
    }

    #[test]
    fn servers_are_read_from_source_or_options() {
        for (path, network, server, here) in [
            ("/", false, None, true),
            ("/mnt/nfs", true, Some("files.example"), false),
            ("/mnt/share", true, Some("Files"), false),
            ("/mnt/ssh", true, Some("localhost"), true),
            ("/mnt/home", true, Some("host.example"), false),
            ("/mnt/pool", false, None, true),
            ("/mnt/other", true, Some("2001:db8::1"), false),
            ("/mnt/tunnel", true, Some("alias"), true),
            ("/mnt/guest", true, None, false),
        ] {
            let found = of(path);
            assert_eq!((found.network, found.server.as_deref()), (network, server), "{path}");
            assert_eq!(on_this_machine(&found), here, "{path}");
        }
    }

    #[test]
    fn options_of_mount_and_file_system_stand_together_once() {
        assert_eq!(of("/").options, "rw,relatime,discard,errors=remount-ro");
        assert_eq!(of("/mnt/my files").options, "rw,noatime");
        assert!(of("/mnt/nfs").options.ends_with("vers=4.2,rsize=1048576,hard,proto=tcp,addr=192.0.2.7"));
    }

    #[test]
    fn escapes_are_undone_and_nothing_else() {
        assert_eq!(of("/mnt/my files").source, "/dev/disk\\x");
        for (written, plain) in
            [("a\\011b\\012", "a\tb\n"), ("\\", "\\"), ("\\04", "\\04"), ("\\999", "\\999"), ("ü", "ü")]
        {
            assert_eq!(unescaped(written), plain);
        }
    }
}
