"""Judges how what came of a script in Plimsoll differs from what came of it in k6."""

import json
import re
from collections import Counter

# Differences that take nothing from a user of the script.
HARMLESS = {
    "form of objects on the console",
    "how often the script is loaded",
    "order of log lines",
    "texts of errors",
    "texts of warnings",
    "wording of the summary",
}
# What k6 says of scripts that cannot do without their test.
NEEDS = {
    "needs files that its test writes": re.compile(
        r"couldn't be found on local disk|no such file or directory|file does not exist"
    ),
    "uses what its test defines": re.compile(r"ReferenceError: (?!require)\w+ is not defined"),
}
# What Plimsoll says of what it does not do.
REFUSAL = re.compile(r"not supported|is not fetched|Plimsoll has no|all that Plimsoll has|in `--out`")


def judge(there, again, here):
    """The class of a script (equal, harmless, refused, wrong), and its differences. `there` and `again` are two runs
    in k6: where they differ from one another, nothing can be asked of Plimsoll."""
    if there["exit"] is None:
        return "left out", ["does not end in k6"]
    if needs := [need for need, pattern in NEEDS.items() if pattern.search(there["stderr"])]:
        return "left out", needs
    differences = sorted(set(differing(there, again, here)))
    if not differences:
        return "equal", []
    if all(difference in HARMLESS for difference in differences):
        return "harmless", differences
    if here["exit"] != there["exit"] and REFUSAL.search("\n".join(here["errors"])):
        return "refused", differences
    return "wrong", differences


def differing(there, again, here):
    if there["exit"] == again["exit"] and here["exit"] != there["exit"]:
        yield f"exit code {here['exit']} instead of {there['exit']}"
    yield from of_tables("checks", there, again, here)
    yield from of_tables("metrics", there, again, here)
    yield from of_tables("thresholds", there, again, here)
    yield from of_console(there["console"], again["console"], here["console"])
    yield from of_errors(there, here)
    if there["files"] != here["files"]:
        yield "files that it writes"
    if there["stdout"].strip() != here["stdout"].strip():
        shown = [without_times(outcome["stdout"]) for outcome in (there, again, here)]
        if shown[0] == shown[1] != shown[2]:
            yield "wording of the summary"


def of_tables(what, there, again, here):
    """Values by name."""
    if set(there[what]) == set(again[what]) != set(here[what]):
        missing, more = set(there[what]) - set(here[what]), set(here[what]) - set(there[what])
        yield f"names of {what}: " + ", ".join([*(f"-{name}" for name in missing), *(f"+{name}" for name in more)])
        return
    for name in there[what]:
        values = [outcome[what].get(name) for outcome in (there, again, here)]
        if values[0] == values[1] != values[2]:
            yield f"{what}: {name} {values[2]} instead of {values[0]}"


def of_console(there, again, here):
    """Lines of the console, compared as exactly as k6 repeats itself."""
    forms = [
        (lambda lines: lines, None),
        (sorted, "order of log lines"),
        (lambda lines: sorted(map(plain_objects, lines)), "form of objects on the console"),
    ]
    varying = [sorted, lambda lines: sorted(map(without_numbers, lines)), lambda lines: len(lines), lambda _lines: 0]
    if sorted(there) != sorted(again):
        form = next(form for form in varying if form(there) == form(again))
        if form([plain_objects(line) for line in there]) != form([plain_objects(line) for line in here]):
            yield "console"
        return
    for form, difference in forms:
        if form(there) == form(here):
            if difference and (difference != "order of log lines" or there == again):
                yield difference
            return
    yield "how often the script is loaded" if only_repeated(there, here) else "console"


def only_repeated(there, here):
    """Whether lines that come several times, as those of code outside of functions do, come more often in one."""
    counts = [Counter(lines) for lines in (there, here)]
    changed = [line for line in counts[0] | counts[1] if counts[0][line] != counts[1][line]]
    return all(min(count[line] for count in counts) >= 1 and counts[0][line] >= 2 for line in changed)


def of_errors(there, here):
    for what in ("errors", "warnings"):
        texts = [sorted({first_line(text) for text in outcome[what]}) for outcome in (there, here)]
        if bool(texts[0]) != bool(texts[1]) and what == "errors":
            yield "an error in one of them" if texts[0] else "an error here"
        elif texts[0] != texts[1]:
            yield f"texts of {what}"


def first_line(text):
    """The first line of an error, without the place where it was thrown."""
    line = re.split(r"\n|\tat ", text.strip())[0]
    return re.sub(r"\s*(?:\([^()]*:\d+:\d+\)|\bat \S+:\d+:\d+\S*)\s*$", "", line)


def plain_objects(line):
    """A line without what differs between JSON and the way that k6 shows objects."""
    return re.sub(r"[\s\"'{}\[\],:]", "", line)


def without_numbers(line):
    return re.sub(r"[0-9a-fA-F-]{8,}|\d+(\.\d+)?", "#", line)


def without_times(text):
    """A summary without numbers, their units and spaces, and without what is sampled once a second."""
    lines = [line for line in text.splitlines() if not re.match(r"\s*vus(_max)?\.*:", line)]
    return re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?\s*(µs|ns|ms|s|m|h|[kMG]?B)?\b", "#", "\n".join(lines))).strip()


def shown(outcome):
    """An outcome for people."""
    return json.dumps({key: value for key, value in outcome.items() if key != "stderr"}, indent=1, ensure_ascii=False)
