"""An earlier build of Plimsoll beside the present one: what a change costs, or saves."""

import contextlib
from dataclasses import replace

from harness import process
from harness.case import Case, Goal
from peers.plimsoll import BINARY

# The name of the earlier build among the tools.
BEFORE = "before"

# Runs of so many seconds in so many turns a round: a virtual machine may change its speed between two runs.
SECONDS, TURNS = 4, 4

# Not measurably dearer, and no fewer transactions.
DEARER, FEWER = 1.05, 0.95


def beside(case):
    """The case with Plimsoll alone, in both builds."""
    if isinstance(case, Case):
        goals = [Goal(BEFORE, DEARER)]
        return replace(case, tools=both(case.tools), goals=goals, turns=TURNS, seconds=SECONDS, note="")
    parts = [replace(part, tools=both(part.tools)) for part in case.parts]
    figures = [replace(figure, goals=goals_of(figure)) for figure in case.figures]
    return replace(case, parts=parts, figures=figures, note="")


def both(tools):
    return {"Plimsoll": tools["Plimsoll"], BEFORE: tools["Plimsoll"]}


def goals_of(figure):
    bound = {"at_least": FEWER} if figure.unit.endswith("/s") else {"at_most": DEARER}
    return (Goal(BEFORE, **bound),)


@contextlib.contextmanager
def program_of(name, earlier):
    """Runs the earlier build while the block lasts, where `name` is its own."""
    process.replaced = {str(BINARY): str(earlier)} if name == BEFORE else {}
    try:
        yield
    finally:
        process.replaced = {}
