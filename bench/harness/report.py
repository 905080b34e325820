"""RESULTS.md: medians, ratios of medians, their spread, goals beside what was measured."""

import re
import statistics

MEASURED = "Plimsoll"

HEAD = """# Cost of generating load, side by side

Written by `bench/run`, each section by the last run of its case. README.md says how the numbers come about.
"""

# What stands from this heading on was measured by other programs: it is kept.
ELSEWHERE = "\n# Measured by other programs\n"


def write(path, title, text):
    """Puts one section in the place of the last one of this title; all others stay."""
    before, elsewhere, rest = (path.read_text() if path.exists() else "").partition(ELSEWHERE)
    sections = dict(re.findall(r"^## (.+)\n\n((?:(?!## ).*\n?)*)", before, re.MULTILINE))
    sections[title] = text
    whole = [HEAD, *(f"## {title}\n\n{text.strip()}\n" for title, text in sections.items())]
    path.write_text("\n".join(whole) + elsewhere + rest)


def section(case, conditions, host, versions, numbers):
    """What stands below the title of `case`: what it is, where it was measured, and `numbers`."""
    where = f"{host['Date']}: {host['Processor']}, {host['Memory']}, {host['Kernel']}, load before the start "
    where += f"{host['Load before the start']}. {'; '.join(versions)}. {conditions}."
    return "\n\n".join(filter(None, [case.note, where, numbers]))


def numbers(outcome):
    case = outcome.case
    lines = tools_table(case, outcome.samples)
    lines += ["", *goals_table(case, outcome.samples)]
    lines += ["", f"Every round, in {case.unit}:", ""]
    for name, samples in outcome.samples.items():
        lines.append(f"- {name}: {', '.join(number(sample.value) for sample in samples)}")
    return "\n".join(lines) + "\n"


def tools_table(case, by_tool):
    lines = [
        f"| tool | {case.unit}: median | least to most | calls/s, median | peak memory, median | failed calls |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, samples in by_tool.items():
        values = [sample.value for sample in samples]
        per_second = statistics.median(sample.per_second for sample in samples)
        peak = statistics.median(sample.peak_bytes for sample in samples) / 2**20
        failed = sum(sample.failed for sample in samples)
        lines.append(
            f"| {name} | {number(statistics.median(values))} | {number(min(values))} to {number(max(values))} "
            f"| {per_second:,.0f} | {peak:,.1f} MiB | {failed} |"
        )
    return lines


def goals_table(case, by_tool):
    values = {name: [sample.value for sample in samples] for name, samples in by_tool.items()}
    lines = ["| goal | bound | measured | over the rounds | met |", "| --- | ---: | ---: | ---: | --- |"]
    return lines + [f"| {conclusion(goal, case.unit, values, within_turns=case.turns > 1)} |" for goal in case.goals]


def conclusion(goal, unit, by_tool, within_turns=False):
    """The cells of a row: the goal, its bound, the ratio of the medians (or the median of the ratios
    within turns), that of each round or turn, and whether the goal is met."""
    ours = by_tool.get(MEASURED, [])
    theirs = [1.0] * len(ours) if goal.against is None else by_tool.get(goal.against, [])
    what = f"{MEASURED}, {unit}" if goal.against is None else f"{unit}: {MEASURED} / {goal.against}"
    bound = f"at most {number(goal.at_most)}" if goal.at_least is None else f"at least {number(goal.at_least)}"
    if not ours or not theirs:
        return f"{what} | {bound} | not measured | | "
    each = [mine / other for mine, other in zip(ours, theirs)]
    ratio = statistics.median(each) if within_turns else statistics.median(ours) / statistics.median(theirs)
    met = "yes" if goal.is_met(ratio) else "no"
    return f"{what} | {bound} | {number(ratio)} | {number(min(each))} to {number(max(each))} | {met}"


def number(value):
    """Three significant digits, or whole from 1,000 on."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
