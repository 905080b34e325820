"""Database servers with data of their own, which sysbench has loaded."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from harness.peer import find
from harness.process import Failed, free_port, server

MARIADB_INSTALL = [["apt-get", "install", "-y", "--no-install-recommends", "mariadb-server-core", "mariadb-client-core"]]
POSTGRESQL_INSTALL = [["apt-get", "install", "-y", "--no-install-recommends", "postgresql-15"]]

USER, PASSWORD, DATABASE = "bench", "known-to-all-who-read-this", "bench"
TABLES, ROWS = 1, 100_000


@dataclass(frozen=True)
class Database:
    """A server that runs: `kind` is what sysbench calls its driver, `socket` the file."""

    kind: str
    port: int
    socket: Path


@contextlib.contextmanager
def mariadb(cpu, _folder):
    """As its package has it, with a buffer pool that holds the data."""
    with own_folder() as folder:
        data, socket, port = folder / "data", folder / "mariadb.sock", free_port()
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db"]
        as_owner([*install, "--auth-root-authentication-method=normal"], folder)
        first = folder / "first.sql"
        # One statement a line, as the server reads such a file.
        statements = [f"CREATE DATABASE {DATABASE};", f"CREATE USER {USER}@localhost IDENTIFIED BY '{PASSWORD}';"]
        first.write_text("\n".join([*statements, f"GRANT ALL ON *.* TO {USER}@localhost;\n"]))
        options = [f"--datadir={data}", f"--socket={socket}", f"--port={port}", "--bind-address=127.0.0.1"]
        options += [f"--init-file={first}", f"--pid-file={folder / 'pid'}", "--innodb-buffer-pool-size=512M"]
        command = [program("mariadbd", "/usr/sbin"), "--no-defaults", *options]
        with server(owned(command), cpu, port, folder):
            database = Database("mysql", port, socket)
            prepare(database)
            yield database


@contextlib.contextmanager
def postgresql(cpu, _folder):
    """As its package has it, with shared buffers that hold the data."""
    with started_postgresql(cpu) as database:
        prepare(database)
        yield database


@contextlib.contextmanager
def unsynced_postgresql(cpu, _folder):
    """Empty, and as fast as it can be loaded: what is lost with the machine can be loaded again."""
    fast = ["fsync=off", "full_page_writes=off", "synchronous_commit=off", "max_wal_size=8GB"]
    with started_postgresql(cpu, fast) as database:
        yield database


@contextlib.contextmanager
def started_postgresql(cpu, settings=()):
    with own_folder() as folder:
        data, port = folder / "data", free_port()
        programs = newest("/usr/lib/postgresql/*/bin")
        as_owner([programs / "initdb", "-D", data, "--auth=trust", f"--username={USER}", "--no-sync"], folder)
        settings = ["listen_addresses=127.0.0.1", f"unix_socket_directories={folder}", "shared_buffers=512MB", *settings]
        options = [word for setting in settings for word in ("-c", setting)]
        with server(owned([programs / "postgres", "-D", data, "-p", port, *options]), cpu, port, folder):
            where = ["-h", folder, "-p", str(port), "-U", USER]
            wait_until(["psql", *where, "-c", f"CREATE DATABASE {DATABASE}", "postgres"])
            yield Database("pgsql", port, folder / f".s.PGSQL.{port}")


def prepare(database):
    wait_until(sysbench(database, "oltp_read_write", "prepare"))


def sysbench(database, test, what):
    """A command of sysbench, with what all of them have."""
    where = [f"--mysql-socket={database.socket}", f"--mysql-user={USER}", f"--mysql-password={PASSWORD}"]
    where += [f"--mysql-db={DATABASE}"]
    if database.kind == "pgsql":
        where = [f"--pgsql-host={database.socket.parent}", f"--pgsql-port={database.port}", f"--pgsql-user={USER}"]
        where += [f"--pgsql-db={DATABASE}"]
    data = [f"--tables={TABLES}", f"--table-size={ROWS}"]
    return [find("sysbench"), test, f"--db-driver={database.kind}", *where, *data, what]


@contextlib.contextmanager
def own_folder():
    """A folder that the servers' user owns, on a disk."""
    folder = Path(tempfile.mkdtemp(prefix="bench-db-", dir="/var/tmp"))
    try:
        folder.chmod(0o755)
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody", "nogroup")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def owned(command):
    """Database servers do not run as root."""
    drop = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    return [*drop, *map(str, command)]


def as_owner(command, folder):
    done = subprocess.run(owned(command), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{command[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def wait_until(command, limit=60):
    """Runs `command` until it ends well: a server that opens its port may not be ready yet."""
    deadline = time.monotonic() + limit
    while (done := subprocess.run(command, capture_output=True, text=True, check=False)).returncode != 0:
        if time.monotonic() > deadline:
            raise Failed(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
        time.sleep(0.5)


def program(name, folder):
    found = shutil.which(name) or shutil.which(name, path=folder)
    if found is None:
        raise Failed(f"{name} is not there: bench/install says how to get it")
    return found


def newest(pattern):
    found = sorted(Path("/").glob(pattern.lstrip("/")))
    if not found:
        raise Failed(f"nothing is at {pattern}: bench/install says how to get it")
    return found[-1]
