"""What a tool is asked to do, and where it is found."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.process import Failed

PEERS = Path(__file__).resolve().parents[1] / ".peers"


@dataclass(frozen=True)
class Count:
    """Calls that a tool has completed, well and not."""

    ok: int
    failed: int


@dataclass(frozen=True)
class Moved:
    """Bytes that a tool has written or read, and how long it was inside operations for that."""

    bytes: int
    seconds: float


@dataclass(frozen=True)
class Job:
    """A command that sends load, how to read from its output what it completed, the exit codes that
    mean that it did, and a file that it writes when it turns from load to something else, if it does."""

    command: list
    count: Callable[[str], Count | Moved]
    exit_codes: tuple = (0,)
    after_load: Path | None = None


def find(program):
    """The path of `program`: as bench/install left it, or else from the PATH."""
    path = os.pathsep.join([str(PEERS / "bin"), os.environ.get("PATH", "")])
    found = shutil.which(program, path=path)
    if found is None:
        raise Failed(f"{program} is not there: run bench/install, or put it on the PATH")
    return found


def first_line(command):
    """The first line that `command` prints: a version."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return ((done.stdout or done.stderr).splitlines() or [""])[0].strip()
