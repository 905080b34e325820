"""go-tpc: loads the tables of TPC-C, in Go."""

import os

from harness import databases
from harness.peer import PEERS, Job, find

VERSION = "v1.0.9"
MODULE = "github.com/pingcap/go-tpc"

# Built inside a module of its own, because `go install` wants to list the versions of what it installs.
BUILD = f"""
mkdir -p {PEERS}/go-tpc {PEERS}/bin && cd {PEERS}/go-tpc
printf 'module peers\\n\\ngo 1.24\\n\\nrequire {MODULE} {VERSION}\\n' > go.mod
printf '//go:build tools\\n\\npackage peers\\n\\nimport _ "{MODULE}/cmd/go-tpc"\\n' > tools.go
go mod tidy && go build -o {PEERS}/bin/go-tpc {MODULE}/cmd/go-tpc
"""
INSTALL = [["sh", "-c", BUILD]]


def version():
    find("go-tpc")
    return f"go-tpc {VERSION}"


def load(warehouses, database, _folder):
    """With as many threads as there are processors, as Plimsoll has."""
    where = ["-d", "postgres", "-H", "127.0.0.1", "-P", str(database.port), "-U", databases.USER, "-D", databases.DATABASE]
    where += ["--conn-params", "sslmode=disable"]
    command = [find("go-tpc"), "tpcc", "prepare", *where, "--warehouses", str(warehouses), "--no-check"]
    return Job([*command, "-T", str(len(os.sched_getaffinity(0)))], lambda _output: None)
