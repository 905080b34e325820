"""Runs one process on one processor and says what it cost; keeps a server for as long as it is
needed. Whatever is started here is ended here, by its own process id."""

import contextlib
import os
import re
import select
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

POLL_SECONDS = 0.2

# Programs that are run in place of others: of an earlier build, see harness/before.py.
replaced = {}


@dataclass(frozen=True)
class Usage:
    """What a process has used, and what it printed."""

    cpu_seconds: float
    seconds: float
    peak_bytes: int
    output: str


class Failed(Exception):
    """A process that did not do what it was started for."""


def run(command, cpu, limit, folder, exit_codes=(0,), after_load=None):
    """Runs `command` in `folder`, bound to processor `cpu`, for at most `limit` seconds.

    CPU time is user plus system time as the kernel hands it over at the end (wait4). Peak memory
    is VmHWM, read while it runs and until the file `after_load` is there: ru_maxrss would count the
    memory of this script, too, because it is carried over from fork to exec.
    """
    folder, begun = Path(folder), time.monotonic()
    with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
        process = subprocess.Popen(pinned(command, cpu), cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    peak = 0
    try:
        while not ends_within(POLL_SECONDS, process):
            if time.monotonic() > begun + limit:
                raise Failed(f"{command[0]} still ran after {limit:.0f} s")
            reached = peak_bytes(process.pid)
            # In this order: what was read before the file was there is of the load.
            if after_load is None or not after_load.exists():
                peak = max(peak, reached)
        seconds = time.monotonic() - begun
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        end(process, grace=0)
    if process.returncode not in exit_codes:
        tail = (folder / "stderr").read_text(errors="replace")[-2000:]
        raise Failed(f"{' '.join(map(str, command))}\nended with {process.returncode}:\n{tail}")
    output = (folder / "stdout").read_text(errors="replace")
    return Usage(used.ru_utime + used.ru_stime, seconds, peak, output)


def ends_within(seconds, process):
    """Waits for the end of `process`, and says whether it has come. It is left for wait4."""
    handle = os.pidfd_open(process.pid)
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


@contextlib.contextmanager
def server(command, cpu, port, folder):
    """Keeps `command` running on processor `cpu` while the block lasts; it must open `port`."""
    with open(Path(folder) / "server.log", "wb") as log:
        process = subprocess.Popen(pinned(command, cpu), cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_for(port, process)
        yield
    finally:
        end(process, grace=5)


def free_port():
    """A port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pinned(command, cpu):
    return ["taskset", "-c", str(cpu), *(replaced.get(str(part), str(part)) for part in command)]


def peak_bytes(pid):
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def wait_for(port, process, limit=10):
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Failed(f"{process.args} ended with {process.returncode} before it was ready")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise Failed(f"{process.args} did not open port {port} within {limit} s")


def end(process, grace):
    if process.returncode is not None:
        return
    if grace:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
            return
    process.kill()
    process.wait()
