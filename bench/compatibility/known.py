"""Differences that stay, each with a sentence of docs/scripts.md that says so."""

import json
import sys
from pathlib import Path

from compare import HARMLESS

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent.parent / "docs/scripts.md"


def read():
    """By the place of a script: its known difference, with its class, `harmless` or `documented`."""
    entries, docs = json.loads((HERE / "known.json").read_text()), DOCS.read_text()
    if missing := [entry["says"] for entry in entries if entry["says"] not in docs]:
        sys.exit("docs/scripts.md has no longer:\n" + "\n".join(missing))
    return {script: entry for entry in entries for script in entry["scripts"]}


KNOWN = read()


def judged(script, verdict, differences):
    """A verdict in view of what is known."""
    entry = KNOWN.get(script.id)
    if verdict != "wrong" or not entry:
        return verdict, differences
    others = [one for one in differences if one not in HARMLESS and not one.startswith(tuple(entry["what"]))]
    return ("wrong", others) if others else (entry["class"], [f"scripts.md: {entry['says']}"])
