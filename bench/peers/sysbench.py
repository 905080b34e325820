"""sysbench: the reference for OLTP load, in C with tests in Lua."""

import re

from harness import databases
from harness.peer import Count, Job, find, first_line

INSTALL = [["apt-get", "install", "-y", "--no-install-recommends", "sysbench"]]


def version():
    return first_line([find("sysbench"), "--version"])


def transactions(test, database, connections, seconds):
    command = databases.sysbench(database, f"oltp_{test}", "run")
    command[2:2] = [f"--threads={connections}", f"--time={seconds}", "--rand-type=uniform"]
    return Job(command, count)


def count(output):
    """Transactions, and those whose errors were ignored."""
    ok = int(re.search(r"transactions:\s+(\d+)", output)[1])
    failed = int(re.search(r"ignored errors:\s+(\d+)", output)[1])
    return Count(ok, failed)
