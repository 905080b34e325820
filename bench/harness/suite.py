"""A suite: one question, put for several sizes and modes, and answered by several numbers each."""

import contextlib
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from harness.case import Goal, each_turn, in_turns
from harness.report import conclusion, number


@dataclass(frozen=True)
class Figure:
    """One of the numbers that a measurement gives."""

    unit: str
    goals: tuple[Goal, ...] = ()


@dataclass(frozen=True)
class Part:
    """One size, one mode: `work` is what every tool is asked to do, `tools` maps a name to what
    makes its job of it."""

    label: str
    work: object
    tools: dict


@contextlib.contextmanager
def no_server(_cpu, _folder):
    yield None


@dataclass(frozen=True)
class Suite:
    """`measure` takes what makes a tool's job, the work, an address, the settings and a folder, and
    gives a value for each of the figures. `turns` are those of a case."""

    name: str
    title: str
    parts: list[Part]
    figures: list[Figure]
    measure: Callable
    server: Callable = no_server
    rounds: int | None = None
    turns: int = 1
    on_all_processors: bool = False
    note: str = ""

    def conditions(self, settings):
        server = "" if self.server is no_server else f"; server on processor {settings.server_cpu}, on loopback"
        rounds = in_turns(self.rounds or settings.rounds, self.turns)
        tools = "on all processors" if self.on_all_processors else f"on processor {settings.generator_cpu}"
        return f"Rounds: {rounds}, order seed {settings.seed}; tools {tools}{server}"


def run_suite(suite, absent, settings, folder, say, program_of=lambda _name: contextlib.nullcontext()):
    """All rounds of all parts: for each part, the values of each tool, one tuple per round."""
    outcome = {}
    rounds = suite.rounds or settings.rounds
    for part in suite.parts:
        tools = {name: job for name, job in part.tools.items() if name not in absent}
        outcome[part.label] = values = {name: [] for name in tools}
        order = random.Random(f"{settings.seed} {suite.name} {part.label}")
        for number_of_round in range(1, rounds + 1):
            with suite.server(settings.server_cpu, folder) as address:
                for name in each_turn(order, tools, suite.turns):
                    with program_of(name):
                        values[name].append(suite.measure(tools[name], part.work, address, settings, folder))
                    say(f"{suite.name} {part.label} {number_of_round}/{rounds}: {name} {in_words(suite, values[name][-1])}")
    return outcome


def in_words(suite, values):
    return ", ".join(f"{number(value)} {figure.unit}" for figure, value in zip(suite.figures, values))


def section(suite, outcome):
    """What stands in RESULTS.md below the title: goals first, then all that was measured."""
    lines = ["| objects | goal | bound | measured | over the rounds | met |", "| --- | --- | ---: | ---: | ---: | --- |"]
    for label, by_tool in outcome.items():
        for index, figure in enumerate(suite.figures):
            by_figure = {name: [values[index] for values in rounds] for name, rounds in by_tool.items()}
            lines += [f"| {label} | {conclusion(goal, figure.unit, by_figure, within_turns=suite.turns > 1)} |" for goal in figure.goals]
    heads = "".join(f" {figure.unit}: median | least to most |" for figure in suite.figures)
    lines += ["", f"| objects | tool |{heads}", "| --- | --- |" + " ---: | ---: |" * len(suite.figures)]
    for label, by_tool in outcome.items():
        for name, rounds in by_tool.items():
            cells = "".join(spread(values) for values in zip(*rounds))
            lines.append(f"| {label} | {name} |{cells}")
    lines += ["", f"Every round, in {' / '.join(figure.unit for figure in suite.figures)}:", ""]
    for label, by_tool in outcome.items():
        for name, rounds in by_tool.items():
            each = "; ".join(" / ".join(map(number, values)) for values in rounds)
            lines.append(f"- {label}, {name}: {each}")
    return "\n".join(lines) + "\n"


def spread(values):
    return f" {number(statistics.median(values))} | {number(min(values))} to {number(max(values))} |"
