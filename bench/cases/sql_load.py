"""The tables of TPC-C, loaded into PostgreSQL."""

import json
import os
import shutil
import time
from pathlib import Path

from harness import databases
from harness.case import Goal
from harness.process import run
from harness.suite import Figure, Part, Suite
from peers import go_tpc, plimsoll

LIMIT = 1800

STUDY = """
title    = "What loading takes"
question = "How long does it take to load the tables?"
repeats  = 1
design   = "trials"
noise_floor = false

[factors]
attempts = {{ levels = [1, 2], compare = true, baseline = 1 }}

[database.db]
server = "postgresql"

[workload]
protocol     = "sql"
database     = "db"
tpcc         = {{ warehouses = {warehouses}, waits = "zero" }}
retry        = {{ on = ["deadlock"], attempts = "{{attempts}}" }}
check_within = "0s"

[load]
users    = 1
warmup   = "0s"
duration = "1s"
"""


def by_plimsoll(warehouses, folder):
    """A study that loads, and is as good as over then. What it says of the data counts: from making the
    cluster to the snapshot that lies on the disk."""
    file, bundle = Path(folder) / "study.toml", Path(folder) / "bundle"
    shutil.rmtree(bundle, ignore_errors=True)
    file.write_text(STUDY.format(warehouses=warehouses))
    run_on_all([plimsoll.BINARY, "run", file, "--out", bundle], folder, (0, 4))
    events = map(json.loads, (bundle / "events.jsonl").read_text().splitlines())
    took = next(event["took"] for event in events if event["event"] == "data_ready")
    return took["secs"] + took["nanos"] / 1e9


def by_go_tpc(warehouses, folder):
    """Into a server that does not sync either while it is loaded."""
    with databases.unsynced_postgresql(cpus(), folder) as database:
        begun = time.monotonic()
        run_on_all(go_tpc.load(warehouses, database, folder).command, folder, (0,))
        return time.monotonic() - begun


def run_on_all(command, folder, exit_codes):
    return run(command, cpus(), LIMIT, folder, exit_codes)


def cpus():
    return ",".join(map(str, sorted(os.sched_getaffinity(0))))


def seconds(load, warehouses, _address, _settings, folder):
    return (load(warehouses, folder),)


CASE = Suite(
    name="sql-load",
    title="Loading the tables of TPC-C",
    parts=[Part("10 warehouses", 10, {"Plimsoll": by_plimsoll, "go-tpc": by_go_tpc})],
    figures=[Figure("s", (Goal(None, at_most=90), Goal("go-tpc", at_most=1.0)))],
    measure=seconds,
    rounds=3,
    on_all_processors=True,
    note="Into PostgreSQL on this machine's disk, which does not sync meanwhile; server and tools on all processors, as many "
    "connections as there are. Plimsoll's time has making the cluster, the indexes, the consistency conditions, VACUUM ANALYZE, a clean stop and syncing "
    "the files in it; go-tpc's has the rows alone, and tables that have their keys already.",
)
