"""oha: load for HTTP, in Rust."""

import json

from harness.peer import PEERS, Count, Job, find, first_line

VERSION = "1.16.0"
INSTALL = [["cargo", "install", "oha", "--locked", "--version", VERSION, "--root", PEERS]]


def version():
    return first_line([find("oha"), "--version"])


def kept_connections(address, connections, seconds, _folder):
    options = ["-z", f"{seconds}s", "-c", connections, "--no-tui", "--output-format", "json"]
    return Job([find("oha"), *options, f"http://{address}/"], count)


def count(output):
    result = json.loads(output)
    by_status = result["statusCodeDistribution"]
    failed = sum(n for status, n in by_status.items() if status != "200")
    # What is under way when the time is up counts as an error of this name.
    errors = {text: n for text, n in result["errorDistribution"].items() if "deadline" not in text}
    return Count(by_status.get("200", 0), failed + sum(errors.values()))
