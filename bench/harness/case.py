"""A case: one question about cost, put to several tools in the same way."""

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from harness.process import Failed, run


@dataclass(frozen=True)
class Settings:
    """What is the same for all tools."""

    rounds: int
    seconds: int
    connections: int
    server_cpu: int
    generator_cpu: int
    seed: int


@dataclass(frozen=True)
class Sample:
    """What one tool did in one round. `value` is what the case is about."""

    value: float
    per_second: float
    peak_bytes: int
    failed: int


@dataclass(frozen=True)
class Goal:
    """A bound of Plimsoll's median: so many times another tool's median, or so much, when there is
    no other tool."""

    against: str | None
    at_most: float | None = None
    at_least: float | None = None

    def is_met(self, ratio):
        return ratio <= self.at_most if self.at_least is None else ratio >= self.at_least


@dataclass(frozen=True)
class Case:
    """`tools` maps a name to what makes its job: (address, connections, seconds, folder) -> Job.
    `measure` takes one of those, an address, the settings and a folder. `load` says what it offers, where
    that is not the settings' seconds and connections. `shares_processor` puts the server where the tools are.

    In a round each tool has so many `turns` of so many `seconds` at the same server. Where there are
    several, ratios are taken within turns: a machine that changes its speed between two runs of one tool
    does so more rarely between two neighbours."""

    name: str
    title: str
    unit: str
    server: Callable
    tools: dict
    measure: Callable
    goals: list[Goal]
    note: str = ""
    load: str | None = None
    on_all_processors: bool = False
    shares_processor: bool = False
    turns: int = 1
    seconds: int | None = None

    def settings(self, settings):
        """Those of all cases, with what this one sets."""
        server_cpu = settings.generator_cpu if self.shares_processor else settings.server_cpu
        return replace(settings, seconds=self.seconds or settings.seconds, server_cpu=server_cpu)

    def conditions(self, settings):
        settings = self.settings(settings)
        load = self.load or f"{settings.seconds} s per tool, {settings.connections} connections"
        tools = "both processors" if self.on_all_processors else f"processor {settings.generator_cpu}"
        return (
            f"Rounds: {in_turns(settings.rounds, self.turns)}, {load}, order seed {settings.seed}; server on processor "
            f"{settings.server_cpu}, tools on {tools}; loopback"
        )


def in_turns(rounds, turns):
    """So many rounds, in words."""
    return rounds if turns == 1 else f"{rounds} of {turns} turns each"


def each_turn(order, tools, turns):
    """The tools in the order in which they run: all of them in each turn."""
    return [name for _ in range(turns) for name in order.sample(sorted(tools), len(tools))]


@dataclass
class Outcome:
    """The samples of a case: one per tool and round."""

    case: Case
    samples: dict[str, list[Sample]] = field(default_factory=dict)


def run_case(case, absent, settings, folder, say, program_of=lambda _name: contextlib.nullcontext()):
    """All rounds of `case`. In each, one server serves all tools, which follow one another in an
    order drawn anew from the seed. `program_of` gives the context in which a tool of this name runs."""
    tools = {name: job for name, job in case.tools.items() if name.split()[0] not in absent}
    outcome = Outcome(case, {name: [] for name in tools})
    settings = case.settings(settings)
    order = random.Random(f"{settings.seed} {case.name}")
    for number in range(1, settings.rounds + 1):
        with case.server(settings.server_cpu, folder) as address:
            for name in each_turn(order, tools, case.turns):
                with program_of(name):
                    sample = case.measure(tools[name], address, settings, folder)
                outcome.samples[name].append(sample)
                say(f"{case.name} round {number}/{settings.rounds}: {name} {sample.value:,.1f} {case.unit}")
    return outcome


def cpu_per_call(job_of, address, settings, folder):
    """User and system time of the generator's process per completed call, in microseconds.

    Two runs, one five times as long as the other; the difference of their CPU times over the
    difference of their calls leaves out what starting and ending cost.
    """
    short = once(job_of, address, settings.connections, max(1, settings.seconds // 5), settings, folder)
    long = once(job_of, address, settings.connections, settings.seconds, settings, folder)
    calls = long.calls - short.calls
    if calls <= 0:
        raise Failed("the longer run completed no more calls than the shorter one")
    value = (long.cpu_seconds - short.cpu_seconds) / calls * 1e6
    return Sample(value, long.calls / settings.seconds, long.peak_bytes, short.failed + long.failed)


@dataclass(frozen=True)
class Run:
    calls: int
    failed: int
    cpu_seconds: float
    peak_bytes: int


def once(job_of, address, connections, seconds, settings, folder):
    job = job_of(address, connections, seconds, folder)
    used = run(job.command, settings.generator_cpu, seconds + 60, folder, job.exit_codes, job.after_load)
    count = job.count(used.output)
    if count.failed > count.ok / 1000:
        raise Failed(f"{job.command[0]}: {count.failed} calls failed, {count.ok} did not")
    return Run(count.ok, count.failed, used.cpu_seconds, used.peak_bytes)
