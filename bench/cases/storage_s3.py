"""Objects behind the API of S3, beside curl in a loop."""

import shutil
from pathlib import Path

from cases.storage_files import LIMIT
from harness.case import Goal
from harness.disk import get_ready
from harness.process import run
from harness.servers import s3
from harness.suite import Figure, Part, Suite
from harness.work import Work, in_bytes
from peers import curl, plimsoll_storage


def speed(objects, work, server, settings, folder):
    """MB/s inside operations; memory in MiB."""
    folder = Path(folder)
    get_ready(folder, work.objects * in_bytes(work.size), settings.generator_cpu)
    job = objects(work, server.address, folder)
    used = run(job.command, settings.generator_cpu, LIMIT, folder, job.exit_codes)
    moved = job.count(used.output)
    for left in server.folder.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    return moved.bytes / moved.seconds / 1e6, used.peak_bytes / 2**20


def part(label, operation, size, objects):
    work = Work(operation, "app", size, "1MiB", objects)
    return Part(label, work, {"Plimsoll": plimsoll_storage.objects, "curl": curl.objects})


CASE = Suite(
    name="storage-s3",
    title="Objects written and read over S3",
    server=s3,
    parts=[
        part("100 KiB, PUT", "write", "100KiB", 3_000),
        part("100 KiB, GET", "read", "100KiB", 5_000),
        part("100 MiB, PUT", "write", "100MiB", 15),
        part("100 MiB, GET", "read", "100MiB", 20),
    ],
    figures=[Figure("MB/s", (Goal("curl", at_least=1.0),)), Figure("MiB of memory")],
    measure=speed,
    note="versitygw on the same disk, connections kept, ETags from a CRC, so that hashing weighs less. One connection.",
)
