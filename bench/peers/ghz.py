"""ghz: load for gRPC, in Go."""

import json

from harness.peer import PEERS, Count, Job, find
from harness.servers import CALL, PROTO

VERSION = "v0.121.0"
INSTALL = [["env", f"GOBIN={PEERS}/bin", "go", "install", f"github.com/bojand/ghz/cmd/ghz@{VERSION}"]]


def version():
    find("ghz")
    return f"ghz {VERSION}"  # built by `go install`, it calls itself "dev"


def kept_connections(address, connections, seconds, _folder):
    """Every connection carries one call at a time. Templates in the message are off: they would
    triple the cost of a call, and the message has none."""
    options = ["--insecure", "--proto", PROTO, "--call", CALL, "--data", '{"value": 1}']
    options += ["--disable-template-functions", "--disable-template-data", "--cpus", 1]
    options += ["--concurrency", connections, "--connections", connections]
    options += ["--duration", f"{seconds}s", "--duration-stop", "wait", "--format", "json"]
    return Job([find("ghz"), *options, address], count)


def count(output):
    by_status = json.loads(output)["statusCodeDistribution"]
    ok = by_status.get("OK", 0)
    return Count(ok, sum(by_status.values()) - ok)
