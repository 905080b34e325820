"""Plimsoll's SQL driver, as a user runs it: a database that already runs."""

import shutil
from pathlib import Path

from harness import databases
from harness.peer import Job
from peers.plimsoll import BINARY, count

# A study compares something: here how often it may be tried again, which no transaction asks for.
STUDY = """
title    = "What a transaction costs"
question = "How much CPU time does the generator use per query?"
repeats  = 1
design   = "trials"
noise_floor = false

[factors]
attempts = {{ levels = [1, 2], compare = true, baseline = 1 }}

[database.db]
url       = "{url}"
may_write = true
{password}

[workload]
protocol = "sql"
database = "db"
oltp     = {{ test = "{test}", tables = {tables}, rows = {rows}, distribution = "uniform" }}
retry    = {{ on = ["deadlock"], attempts = "{{attempts}}" }}

[load]
users    = {users}
warmup   = "0s"
duration = "{half}ms"
"""

URL = "{scheme}://{user}@/{database}?socket={socket}"
SCHEMES = {"mysql": "mariadb", "pgsql": "postgresql"}


def transactions(test, database, connections, seconds, folder):
    file, bundle = Path(folder) / "study.toml", Path(folder) / "bundle"
    shutil.rmtree(bundle, ignore_errors=True)
    where = {"user": databases.USER, "database": databases.DATABASE, "socket": database.socket}
    url = URL.format(scheme=SCHEMES[database.kind], **where)
    password = 'password_env = "BENCH_PASSWORD"' if database.kind == "mysql" else ""
    settings = {"tables": databases.TABLES, "rows": databases.ROWS, "users": connections, "half": seconds * 500}
    file.write_text(STUDY.format(url=url, password=password, test=test, **settings))
    # 4: the trial may be void, because a generator that uses all of its processor is the limit.
    command = ["env", f"BENCH_PASSWORD={databases.PASSWORD}", BINARY, "run", file, "--out", bundle]
    return Job(command, lambda _output: count(bundle), exit_codes=(0, 4))
