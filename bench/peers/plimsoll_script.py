"""Plimsoll's runner of k6 scripts, as a user of k6 would call it, and k6 with the same command line."""

import json
from pathlib import Path

from harness.peer import Count, Job, find
from peers.plimsoll import BINARY

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
SUMMARY = "script-summary.json"


def plimsoll_get(address, users, seconds, folder):
    return get(ours(), address, users, seconds, folder)


def k6_get(address, users, seconds, folder):
    return get(k6(), address, users, seconds, folder)


def plimsoll_rate(rate, address, users, seconds, folder):
    return at_rate(ours(), rate, address, users, seconds, folder)


def k6_rate(rate, address, users, seconds, folder):
    return at_rate(k6(), rate, address, users, seconds, folder)


def plimsoll_idle(address, users, seconds, folder):
    return idle(ours(), address, users, seconds, folder)


def k6_idle(address, users, seconds, folder):
    return idle(k6(), address, users, seconds, folder)


def ours():
    return [BINARY, "script", "run", "--threads", 1]


def k6():
    return [find("k6"), "run", "--no-usage-report"]


def get(command, address, users, seconds, folder):
    return script(command, "get.js", ["--vus", users, "--duration", f"{seconds}s"], {"TARGET": address}, folder)


def at_rate(command, rate, address, users, seconds, folder):
    settings = {"TARGET": address, "USERS": users, "SECONDS": seconds, "RATE": rate}
    return script(command, "rate.js", [], settings, folder)


def idle(command, address, users, seconds, folder):
    return script(command, "idle.js", [], {"TARGET": address, "USERS": users, "SECONDS": seconds}, folder)


def script(command, name, options, settings, folder):
    options = [*options, "--quiet", "--summary-export", SUMMARY]
    for key, value in settings.items():
        options += ["--env", f"{key}={value}"]
    return Job([*command, *options, SCRIPTS / name], lambda _output: count(Path(folder) / SUMMARY))


def count(summary):
    metrics = json.loads(summary.read_text())["metrics"]
    failed = metrics["http_req_failed"]["passes"]
    return Count(metrics["http_reqs"]["count"] - failed, failed)
