"""Bounds how long a script runs."""

import json
import re
import subprocess

MOST_SECONDS = 12
MOST_USERS = 50
MOST_ITERATIONS = 1_000
SHORT = ["--vus", "2", "--iterations", "4"]

UNITS = {"h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def overrides(peer, placed):
    """Flags that make a script short, in both programs, if it is long by its own options."""
    command = [peer.path, "inspect", placed.main]
    told = subprocess.run(command, cwd=placed.cwd, capture_output=True, text=True, timeout=60, check=False)
    try:
        options = json.loads(told.stdout)
    except ValueError:
        return []
    loads = [options, *(options.get("scenarios") or {}).values()]
    flags = SHORT if any(map(is_long, loads)) else []
    return flags + (["--min-iteration-duration", "1s"] if read(options.get("minIterationDuration")) > 1 else [])


def is_long(load):
    return seconds(load) > MOST_SECONDS or users(load) > MOST_USERS or iterations(load) > MOST_ITERATIONS


def seconds(load):
    """How long an executor takes. Of those that count iterations it is unknown, and taken for short."""
    stages = sum(read(stage.get("duration")) for stage in load.get("stages") or [])
    return read(load.get("startTime")) + read(load.get("duration")) + stages


def users(load):
    stages = [stage.get("target") or 0 for stage in load.get("stages") or []]
    return max([load.get("vus") or 0, load.get("preAllocatedVUs") or 0, *stages])


def iterations(load):
    return load.get("iterations") or 0


def read(duration):
    if not isinstance(duration, str):
        return (duration or 0) / 1e3
    return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"([\d.]+)(h|ms|us|µs|ns|m|s)", duration))
