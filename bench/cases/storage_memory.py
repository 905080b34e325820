"""Memory while an object moves that is larger than it."""

from cases.storage_files import LIMIT
from harness.case import Goal
from harness.disk import get_ready, place
from harness.process import run
from harness.servers import BUCKET, s3
from harness.suite import Figure, Part, Suite
from harness.work import Work
from peers import plimsoll_storage

# Written, then read.
WORK = Work("write", "app", "10GB", "1MiB", 1)
STEPS = '{ do = "write" }, { do = "read" }'


def memory(store, work, server, settings, folder):
    """The largest resident memory in MiB; how long it took."""
    where = place(folder)
    get_ready(where, work.bytes, settings.generator_cpu)
    job = plimsoll_storage.counted(work, store(server, where), where, STEPS)
    used = run(job.command, settings.generator_cpu, LIMIT, where, job.exit_codes)
    plimsoll_storage.moved(where / "bundle", work)
    return used.peak_bytes / 2**20, used.seconds


def directory(_server, place):
    return f'directory = "{place}"'


def bucket(server, _place):
    return f's3 = "http://{server.address}"\nbucket = "{BUCKET}"\nupload = "multipart serial"\npart_size = "64MiB"'


CASE = Suite(
    name="storage-memory",
    title="Memory while 10 GB move",
    server=s3,
    parts=[
        Part("10 GB file, written and read", WORK, {"Plimsoll": directory}),
        Part("10 GB object, PUT in parts of 64 MiB and GET", WORK, {"Plimsoll": bucket}),
    ],
    figures=[Figure("MiB of memory", (Goal(None, at_most=64),)), Figure("s")],
    measure=memory,
    rounds=1,
)
