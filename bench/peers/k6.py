"""k6: load scripted in JavaScript, in Go."""

import json
from pathlib import Path

from harness.peer import PEERS, Count, Job, find, first_line
from harness.servers import STUDY

VERSION = "v1.8.1"
INSTALL = [["env", f"GOBIN={PEERS}/bin", "go", "install", f"go.k6.io/k6@{VERSION}"]]

SCRIPT = STUDY / "script.js"
SUMMARY = "k6-summary.json"


def version():
    return first_line([find("k6"), "version"])


def kept_connections(address, connections, seconds, folder):
    return script("per user", address, connections, seconds, folder)


def connection_per_iteration(address, connections, seconds, folder):
    return script("every iteration", address, connections, seconds, folder)


def script(connect, address, users, seconds, folder):
    """The study's own script, without its log lines and its pause."""
    settings = {"TARGET": address, "CONNECT": connect, "LOG": "off", "SLEEP": "0"}
    options = ["--quiet", "--no-usage-report", "--no-thresholds", "--summary-export", SUMMARY]
    options += ["--vus", users, "--duration", f"{seconds}s"]
    for name, value in settings.items():
        options += ["--env", f"{name}={value}"]
    return Job([find("k6"), "run", *options, SCRIPT], lambda _output: count(Path(folder) / SUMMARY))


def count(summary):
    metrics = json.loads(summary.read_text())["metrics"]
    failed = metrics.get("failed_calls", {"count": 0})["count"]
    return Count(metrics["iterations"]["count"] - failed, failed)
