"""Plimsoll itself, as a user runs it: a study with a server that already runs.

A study compares something, so this one compares a thing with itself: two trials of half the time."""

import csv
import shutil
import subprocess
from pathlib import Path

from harness.peer import Count, Job, first_line
from harness.process import Failed
from harness.servers import CALL, PROTO, ROOT

INSTALL = [["cargo", "build", "--release", "--manifest-path", ROOT / "Cargo.toml"]]
BINARY = ROOT / "target" / "release" / "plimsoll"

# Warm-up is as much part of the cost and of the count as the rest, so there is none.
STUDY = """
title    = "What an exchange costs"
question = "How much CPU time does the generator use per call?"
repeats  = 1
design   = "trials"
# Two trials and no more: those that are void, because the generator was the limit, are meant to be.
noise_floor  = false
spare_blocks = 0

[factors]
half = {{ levels = ["first", "second"], compare = true, baseline = "first" }}

[workload]
target  = "{address}"
connect = "{connect}"
{workload}

[load]
users    = {users}
think    = "{think}"
warmup   = "0s"
duration = "{half}ms"

[generator]
threads = 1
"""

GRPC = f"""
protocol = "grpc"
proto    = ["{PROTO}"]
steps    = [{{ name = "{{half}} half", call = "{CALL}", message = {{ value = 1 }} }}]
"""

HTTP = """
protocol = "http"
steps    = [{ name = "{half} half", get = "/", expect = { status = 200 } }]
"""


def version():
    """Raises Failed while there is no binary that can run a study."""
    if not BINARY.exists():
        raise Failed("Plimsoll is not built: cargo build --release")
    if not subprocess.run([BINARY, "run", "--help"], capture_output=True, check=False).stdout:
        raise Failed("this build of Plimsoll has no `run` yet")
    return first_line([BINARY, "--version"])


def grpc_kept(address, connections, seconds, folder):
    return study(GRPC, "per user", address, connections, seconds, folder)


def grpc_new(address, connections, seconds, folder):
    return study(GRPC, "every iteration", address, connections, seconds, folder)


def http_kept(address, connections, seconds, folder):
    return study(HTTP, "per user", address, connections, seconds, folder)


def http_idle(address, users, seconds, folder):
    return study(HTTP, "per user", address, users, seconds, folder, think="1h")


def study(workload, connect, address, users, seconds, folder, think="0s"):
    file, bundle = Path(folder) / "study.toml", Path(folder) / "bundle"
    shutil.rmtree(bundle, ignore_errors=True)
    settings = {"address": address, "connect": connect, "users": users, "think": think}
    file.write_text(STUDY.format(workload=workload, half=seconds * 500, **settings))
    # 4: the trial is void, because a generator that uses all of its processor is the limit. Here
    # it is meant to be.
    first = bundle / "starts" / "0001" / "start.json"  # memory of the report is not that of the load
    return Job([BINARY, "run", file, "--out", bundle], lambda _output: count(bundle), (0, 4), first)


def count(bundle):
    """All iterations of all trials, those that ended while draining included."""
    ok = failed = 0
    # Builds before bundles of format 3 call their folder `trials`.
    for table in sorted([*bundle.glob("starts/*/load.csv"), *bundle.glob("trials/*/load.csv")]):
        with open(table, newline="") as file:
            for row in csv.DictReader(file):
                if row["subject"] == "iteration":
                    failed += int(row["failed"])
                    ok += int(row["count"]) - int(row["failed"])
    return Count(ok, failed)
