"""wrk: load for HTTP, in C."""

import re

from harness.peer import Count, Job, find, first_line

VERSION = "of the distribution"
INSTALL = [["apt-get", "install", "-y", "--no-install-recommends", "wrk"]]


def version():
    return " ".join(first_line([find("wrk"), "-v"]).split()[:2])


def kept_connections(address, connections, seconds, _folder):
    options = ["--threads", 1, "--connections", connections, "--duration", f"{seconds}s"]
    return Job([find("wrk"), *options, f"http://{address}/"], count)


def count(output):
    ok = int(re.search(r"(\d+) requests in", output)[1])
    sockets = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", output)
    status = re.search(r"Non-2xx or 3xx responses: (\d+)", output)
    bad = int(status[1]) if status else 0
    return Count(ok - bad, bad + sum(map(int, sockets.groups() if sockets else ())))
