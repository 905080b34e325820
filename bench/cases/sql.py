"""sysbench's tests by Plimsoll, beside sysbench: the same statements, connections and server."""

from dataclasses import dataclass

from harness import databases
from harness.case import Goal, once
from harness.process import Failed
from harness.suite import Figure, Part, Suite
from peers import plimsoll_sql, sysbench

CONNECTIONS = 8

# Short runs in turns: a virtual machine may change its speed every 10 to 45 seconds, for all tools.
SHORT, LONG = 1, 3
ROUNDS, TURNS = 3, 5

# Statements of a transaction, BEGIN and COMMIT included.
QUERIES = {"point_select": 1, "read_only": 16, "read_write": 20}


@dataclass(frozen=True)
class Work:
    """A test of sysbench."""

    test: str


def job_of(tool, work, database):
    """What `once` asks for: a job for so many connections and seconds."""
    if tool is sysbench:
        return lambda _address, connections, seconds, _folder: sysbench.transactions(work.test, database, connections, seconds)
    return lambda _address, connections, seconds, folder: plimsoll_sql.transactions(work.test, database, connections, seconds, folder)


def cost(tool, work, database, settings, folder):
    """Transactions per second; CPU time of the generator per query, without what starting and ending cost."""
    job = job_of(tool, work, database)
    short = once(job, None, CONNECTIONS, SHORT, settings, folder)
    long = once(job, None, CONNECTIONS, LONG, settings, folder)
    transactions = long.calls - short.calls
    if transactions <= 0:
        raise Failed("the longer run made no more transactions than the shorter one")
    microseconds = (long.cpu_seconds - short.cpu_seconds) * 1e6
    return long.calls / LONG, microseconds / (transactions * QUERIES[work.test]), long.peak_bytes / 2**20


def part(test):
    return Part(test, Work(test), {"Plimsoll": plimsoll_sql, "sysbench": sysbench})


def suite(name, title, server):
    return Suite(
        name=name,
        title=title,
        server=server,
        parts=[part(test) for test in QUERIES],
        figures=[
            Figure("transactions/s", (Goal("sysbench", at_least=0.98),)),
            Figure("µs of CPU per query", (Goal("sysbench", at_most=1.5),)),
            Figure("MiB of memory"),
        ],
        measure=cost,
        rounds=ROUNDS,
        turns=TURNS,
        note=f"{CONNECTIONS} connections by the server's UNIX socket, one transaction at a time on each; one table of "
        f"{databases.ROWS:,} rows, loaded anew by sysbench for each round; rows drawn evenly. Statements are prepared. Runs of "
        f"{LONG} s in turns; the ratio is the median of those within a turn.",
    )


MARIADB = suite("sql-mariadb", "Transactions on MariaDB", databases.mariadb)
POSTGRESQL = suite("sql-postgresql", "Transactions on PostgreSQL", databases.postgresql)
