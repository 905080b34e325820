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
LAST_USED = {}


def place(folder):
    """A new folder on a disk, as far as can be from those of the last runs.

    ext4 does not give a deleted file's inode to a new one for some minutes, but looks at it each time:
    creating files next to thousands that were deleted takes ten times as long. It lays the folders in
    one with the flag T far apart, by chance; of some, the one is taken whose neighbourhood has been
    left alone for longest.
    """
    kind = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=True).stdout.strip()
    if kind in ("tmpfs", "ramfs"):
        raise Failed(f"{folder} lies in memory ({kind}): set TMPDIR to a folder on a disk")
    apart = Path(folder) / "places"
    apart.mkdir(exist_ok=True)
    subprocess.run(["chattr", "+T", apart], capture_output=True, check=False)  # other file systems have no such flag
    made = [Path(tempfile.mkdtemp(dir=apart)) for _ in range(8)]
    made.sort(key=lambda path: LAST_USED.get(neighbourhood(path), 0))
    LAST_USED[neighbourhood(made[0])] = time.monotonic()
    for path in made[1:]:
        path.rmdir()
    return made[0]


def neighbourhood(path):
    """The group of block groups whose inodes stand together, as mke2fs makes them."""
    return path.stat().st_ino >> 17


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
