"""Plimsoll's storage, as a user runs it: objects that are written or read, one after the other."""

import csv
import shutil
from dataclasses import dataclass
from pathlib import Path

from harness.peer import Job, Moved
from harness.process import Failed
from harness.servers import ACCESS_KEY, BUCKET, SECRET_KEY
from peers.plimsoll import BINARY, count

STUDY = """
title    = "What an operation costs"
question = "How fast are objects written and read, and what does it cost?"
repeats  = 1
{design}

[factors]
{factor}

[store.place]
{store}

[workload]
protocol = "storage"
store    = "place"
size     = "{size}"
block    = "{block}"
mode     = "{mode}"
{sync}
objects  = {objects}
steps    = [{steps}]

[load]
users    = {users}
warmup   = "0s"
{load}
"""

# A given number of operations.
COUNTED = """
duration   = "10m"
iterations = {iterations}
drain      = "10m"
"""

# A given time, as two trials of half of it.
TIMED = """
duration = "{half}ms"

[generator]
threads = 1
"""
TWO_TRIALS = "noise_floor  = false\nspare_blocks = 0"
HALVES = 'half = { levels = ["first", "second"], compare = true, baseline = "first" }'

# A study compares something, and has the baseline twice. Here one trial is the work; the two that it
# is compared with are of one operation each, or of small objects.
FACTOR = '{name} = {{ levels = [{little}, {much}], compare = true, baseline = {little} }}'


def in_directory(place):
    return f'directory = "{place}"'


def in_bucket(address):
    return f's3 = "http://{address}"\nbucket = "{BUCKET}"'


def files(work, place):
    # fio cannot sync a directory, so Plimsoll does not do it either.
    sync = "sync_directory = false" if work.mode == "durable" else ""
    return study(work, in_directory(place), place, sync=sync)


def objects(work, address, folder):
    return study(work, in_bucket(address), folder)


def study(work, store, folder, sync=""):
    job = counted(work, store, folder, f'{{ do = "{work.operation}" }}', sync)
    return Job(job.command, lambda _output: moved(Path(folder) / "bundle", work), job.exit_codes)


def counted(work, store, folder, steps, sync=""):
    of_count = by_size(work) if work.count < 100 else by_count(work)
    load = COUNTED.format(iterations=of_count.pop("iterations"))
    return run(work, store, folder, steps=steps, users=1, load=load, design="", sync=sync, **of_count)


def files_for(work, place, users, seconds, folder):
    return timed(work, in_directory(place), users, seconds, folder)


def objects_for(work, address, users, seconds, folder):
    return timed(work, in_bucket(address), users, seconds, folder)


def timed(work, store, users, seconds, folder):
    step = f'{{ name = "{{half}} half", do = "{work.operation}" }}'
    texts = {"steps": step, "users": users, "load": TIMED.format(half=seconds * 500), "sync": ""}
    job = run(work, store, folder, factor=HALVES, size=work.size, design=TWO_TRIALS, **texts)
    return Job(job.command, lambda _output: count(Path(folder) / "bundle"), job.exit_codes)


def by_count(work):
    factor = FACTOR.format(name="count", little=1, much=work.count)
    return {"factor": factor, "size": work.size, "iterations": '"{count}"'}


def by_size(work):
    factor = FACTOR.format(name="size", little='"4KiB"', much=f'"{work.size}"')
    return {"factor": factor, "size": "{size}", "iterations": work.count}


def run(work, store, folder, **texts):
    file, bundle = Path(folder) / "study.toml", Path(folder) / "bundle"
    shutil.rmtree(bundle, ignore_errors=True)
    texts |= {"objects": work.objects, "block": work.block, "mode": work.mode, "store": store}
    file.write_text(STUDY.format(**texts))
    # 4: the trial is void, because the generator may be the limit where all is in a cache.
    keys = [f"AWS_ACCESS_KEY_ID={ACCESS_KEY}", f"AWS_SECRET_ACCESS_KEY={SECRET_KEY}"]
    return Job(["env", *keys, BINARY, "run", file, "--out", bundle], lambda _output: bundle, exit_codes=(0, 4))


def moved(bundle, work):
    """What the trial has done that does the work, which is the one that moves most."""
    trial = max((read(folder) for folder in bundle.glob("starts/*")), key=lambda trial: trial.bytes)
    if trial.iterations != work.count or trial.bytes < work.bytes:
        raise Failed(f"Plimsoll: expected {work.count} operations and {work.bytes} bytes, found {trial}")
    return Moved(work.bytes, trial.seconds)


@dataclass(frozen=True)
class Trial:
    """Iterations that went well, bytes, and how long operations took in all."""

    iterations: int
    bytes: int
    seconds: float


def read(trial):
    totals = rows(trial / "totals.csv")
    iterations = sum(int(row["count"]) - int(row["failed"]) for row in totals if row["subject"] == "iteration")
    moved = sum(int(row["bytes_out"]) + int(row["bytes_in"]) for row in totals)
    return Trial(iterations, moved, sum(int(row["total"]) for row in rows(trial / "ticks.csv")) / 1e9)


def rows(table):
    with open(table, newline="") as file:
        return list(csv.DictReader(file))
