"""How late scripted users are, when there are very many of them."""

import csv
import shutil
from pathlib import Path

from harness.case import Case, Goal, Sample
from harness.peer import Job
from harness.process import Failed, run
from harness.servers import nginx
from peers.plimsoll import BINARY, count
from peers.plimsoll_script import SCRIPTS

USERS, THINK = 10_000, 5
WARMUP, SECONDS = 10, 15

# A study compares something, so this one compares the number of users with itself.
STUDY = """
title    = "How late scripted users are"
question = "Does the generator keep time with very many scripted users?"
repeats  = 1
design   = "trials"
noise_floor = false

[factors]
half = {{ levels = ["first", "second"], compare = true, baseline = "first" }}

[workload]
script = "{script}"
env    = {{ TARGET = "{address}", HALF = "{{half}}" }}

[load]
users    = {users}
think    = {{ exponential = "{think}s" }}
warmup   = "{warmup}s"
duration = "{seconds}s"

[generator]
threads = 2
"""


def study(address, folder):
    file, bundle = Path(folder) / "study.toml", Path(folder) / "bundle"
    shutil.rmtree(bundle, ignore_errors=True)
    settings = {"users": USERS, "think": THINK, "warmup": WARMUP, "seconds": SECONDS}
    file.write_text(STUDY.format(script=SCRIPTS / "get.js", address=address, **settings))
    return Job([BINARY, "run", file, "--out", bundle], lambda _output: count(bundle), exit_codes=(0, 1, 4))


def lateness(job_of, address, settings, folder):
    """The 99th percentile of lateness in the worst second of the measure phase, in milliseconds."""
    job = job_of(address, folder)
    processors = f"{settings.server_cpu},{settings.generator_cpu}"
    used = run(job.command, processors, 4 * (WARMUP + SECONDS) + 60, folder, job.exit_codes)
    done = job.count(used.output)
    rows = [row for table in Path(folder).glob("bundle/starts/*/generator.csv") for row in measured(table)]
    if not rows:
        raise Failed("the study has left no second of a measure phase")
    worst = max(float(row["lateness_p99"]) for row in rows) / 1e6
    return Sample(worst, done.ok / (2 * (WARMUP + SECONDS)), used.peak_bytes, done.failed)


def measured(table):
    with open(table, newline="") as file:
        return [row for row in csv.DictReader(file) if 0 <= int(row["second"]) < SECONDS]


CASE = Case(
    name="script-pace",
    title=f"Lateness of {USERS:,} scripted users that think for {THINK} s, {USERS // THINK:,} requests a second",
    unit="ms of lateness, p99 of the worst second",
    server=nginx,
    tools={"Plimsoll": study},
    measure=lateness,
    goals=[Goal(None, 10)],
    load=f"two trials of {WARMUP} s of warm-up and {SECONDS} s measured",
    on_all_processors=True,
    note="Plimsoll has both processors, and shares them with the server. Seconds of warm-up are left out.",
)
