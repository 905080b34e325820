"""fio: the reference for input and output of files, in C."""

import json
import os

from harness.peer import Job, Moved, find, first_line
from harness.process import Failed
from harness.work import in_bytes

INSTALL = [["apt-get", "install", "-y", "--no-install-recommends", "fio"]]


def version():
    return first_line([find("fio"), "--version"])


def files(work, place):
    """What would cost fio more than the work itself is off: a process of its own, advice to the kernel,
    changes to each buffer."""
    options = ["--name=job", f"--directory={place}", "--output-format=json", "--ioengine=psync"]
    options += [f"--nrfiles={work.objects}", f"--filesize={in_bytes(work.size)}", f"--bs={in_bytes(work.block)}"]
    options += ["--thread=1", "--openfiles=1", "--file_service_type=sequential", "--fallocate=none"]
    options += ["--invalidate=0", "--fadvise_hint=0", "--scramble_buffers=0", "--unlink=1"]
    options += written(work) if work.operation == "write" else read(work, place)
    return Job([find("fio"), *options], lambda output: count(output, work))


def written(work):
    """Files are made when they are opened, one after the other."""
    options = ["--rw=write", "--create_on_open=1"]
    if work.mode == "durable":
        # Not fsync_on_close, which would sync every file a second time in the end. The last file is
        # not synced by this; where there are few, it matters.
        options.append(f"--fsync={in_bytes(work.size) // in_bytes(work.block)}")
        options += ["--end_fsync=1"] if work.objects < 10 else []
    return options


def read(work, place):
    """The files are there before: what fio lays out itself, it drops from the page cache in part."""
    block = os.urandom(in_bytes(work.block))
    for index in range(work.objects):
        with open(place / f"job.0.{index}", "wb") as file:
            for _ in range(in_bytes(work.size) // len(block)):
                file.write(block)
    return ["--rw=read", f"--loops={work.passes}"]


def count(output, work):
    done = json.loads(output)["jobs"][0][work.operation]
    if done["io_bytes"] != work.bytes:
        raise Failed(f"fio: {done['io_bytes']} of {work.bytes} bytes")
    return Moved(work.bytes, done["runtime"] / 1e3)
