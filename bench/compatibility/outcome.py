"""Runs a script in one of the two programs, and reads what came of it."""

import contextlib
import json
import os
import re
import signal
import subprocess
from pathlib import Path

SUMMARY = "summary.json"
LIMIT_SECONDS = 40

# Trends and counters whose values are never the same twice.
TIMED = re.compile(r"(http_req|ws|grpc|group|iteration)\w*_(duration|blocked|connecting|tls_handshaking|sending|waiting|"
                   r"receiving|session_duration|ping)|data_(sent|received)|ws_ping|ws_connecting")
# Sampled once a second, which a short run may not last.
SAMPLED = re.compile(r"vus(_max)?")


def run(program, script, placed, overrides):
    """What came of a script, as plain data."""
    flags = ["--no-usage-report", "--quiet", "--config", str(placed.config)]
    flags += ["--summary-export", SUMMARY, "--log-format", "json", *script.flags, *overrides]
    env = {name: value for name, value in os.environ.items() if not name.startswith("K6_")} | script.env
    before = files_in(placed)
    command = [*program.command(placed), *flags, placed.main]
    ended, stdout, stderr = finish(command, placed.cwd, env)
    created = sorted(files_in(placed) - before - {str((placed.cwd / SUMMARY).relative_to(placed.root))})
    outcome = {"exit": ended, "stdout": stdout[:20_000], "stderr": stderr[:20_000], "files": created}
    return outcome | logged(stderr) | summed_up(placed.cwd / SUMMARY)


def finish(command, cwd, env):
    """Runs a process to its end, and ends its whole group where it takes too long: then it has no exit code."""
    process = subprocess.Popen(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=LIMIT_SECONDS)
        ended = process.returncode
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        ended = None
    return ended, stdout.decode(errors="replace"), stderr.decode(errors="replace")


def files_in(placed):
    return {str(path.relative_to(placed.root)) for path in placed.root.rglob("*") if path.is_file()}


def logged(stderr):
    """The lines of the script's console, and those of the program at the levels of errors and warnings."""
    found = {"console": [], "errors": [], "warnings": []}
    for line in stderr.splitlines():
        try:
            entry = json.loads(line)
            level, text = entry["level"], entry["msg"]
        except (ValueError, TypeError, KeyError):
            if line.strip():
                found["errors"].append(line)
            continue
        # k6 hides secrets in the names of fields too, and one of them may be the word `source`.
        if "console" in (entry.get("source"), entry.get("***SECRET_REDACTED***")):
            found["console"].append(f"{level}: {text}")
        elif level in ("error", "fatal"):
            found["errors"].append(text)
        elif level == "warning":
            found["warnings"].append(text + (f" ({entry['error']})" if "error" in entry else ""))
    return found


def summed_up(path):
    """The summary: checks, metrics and thresholds, without what is never the same twice."""
    try:
        summary = json.loads(Path(path).read_text())
    except (OSError, ValueError):
        return {"checks": {}, "metrics": {}, "thresholds": {}}
    path.unlink()
    metrics, thresholds = {}, {}
    for name, metric in summary["metrics"].items():
        if SAMPLED.fullmatch(name):
            continue
        if "thresholds" in metric:
            thresholds[name] = metric.pop("thresholds")
        metrics[name] = values(name, metric)
    return {"checks": checks(summary.get("root_group", {})), "metrics": metrics, "thresholds": thresholds}


def values(name, metric):
    """The values of a metric, of which those that depend on time are left out."""
    if TIMED.fullmatch(name.partition("{")[0]):
        return sorted(metric)
    return {key: float(f"{value:.3g}") for key, value in metric.items() if key != "rate" and not key.startswith("p(")}


def checks(group):
    found = {check["path"]: [check["passes"], check["fails"]] for check in group.get("checks", {}).values()}
    for inner in group.get("groups", {}).values():
        found |= {inner["path"]: "group"} | checks(inner)
    return found
