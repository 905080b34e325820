"""Where files are written that are measured, and what makes one run like the next there."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from harness.process import Failed, pinned

WARM_MOST = 2 << 30
REST, LONGEST_WAIT = 0.3, 20


def place(folder):
    """A new folder on a disk, whose own folders ext4 lays far apart.

    ext4 does not give a deleted file's inode to a new one for a minute or more, but passes it one
    by one: after a run that deleted thousands, creating files next to them takes ten times as long.
    """
    kind = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=True).stdout.strip()
    if kind in ("tmpfs", "ramfs"):
        raise Failed(f"{folder} lies in memory ({kind}): set TMPDIR to a folder on a disk")
    made = tempfile.mkdtemp(prefix="place-", dir=folder)
    subprocess.run(["chattr", "+T", made], capture_output=True, check=False)  # other file systems have no such flag
    return Path(made)


def get_ready(folder, size, cpu):
    """Before a run that keeps `size` bytes: nothing is left for the disk to do, and the kernel has as
    much memory at hand as it takes. A virtual machine may have given memory back to its host, and
    whoever asks for it first waits for it."""
    if shutil.disk_usage(folder).free < 3 * size:
        raise Failed(f"{folder} has less than {3 * size / 1e9:.0f} GB free: set TMPDIR to a folder that has more")
    os.sync()
    wait_for_rest(folder)
    file = Path(folder) / "warm"
    count = min(size, WARM_MOST) >> 20
    write = ["dd", "if=/dev/zero", f"of={file}", "bs=1M", f"count={count}", "status=none"]
    subprocess.run(pinned(write, cpu), check=True)
    file.unlink()


def wait_for_rest(folder):
    """Waits until the disk has done nothing for a while, or does not come to rest. Where deleting
    frees blocks of the disk, it is told so some time later, and everything else waits meanwhile."""
    device = os.stat(folder).st_dev
    counters = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
    before, limit = None, time.monotonic() + LONGEST_WAIT
    while counters.exists() and time.monotonic() < limit and before != (before := counters.read_text().split()[:15]):
        time.sleep(REST)
