"""RESULTS.md: medians, ratios of medians, their spread, goals beside what was measured."""

import statistics

MEASURED = "Plimsoll"


# What stands from this heading on was measured by other programs: it is kept.
ELSEWHERE = "\n# Measured by other programs\n"


def write(path, outcomes, settings, host, versions):
    sections = [head(settings, host, versions)]
    sections += [section(outcome) for outcome in outcomes]
    path.write_text("\n".join(sections) + kept(path))


def kept(path):
    _, heading, rest = (path.read_text() if path.exists() else "").partition(ELSEWHERE)
    return heading + rest


def head(settings, host, versions):
    lines = ["# Cost of generating load, side by side", ""]
    lines += ["Written by `bench/run`. README.md says how the numbers come about.", ""]
    lines += [f"- {name}: {value}" for name, value in host.items()]
    lines.append(f"- Tools: {'; '.join(versions)}")
    lines.append(
        f"- {settings.rounds} rounds of {settings.seconds} s per tool, {settings.connections} connections, "
        f"order seed {settings.seed}; server on processor {settings.server_cpu}, generator on processor "
        f"{settings.generator_cpu}, for all tools alike; loopback"
    )
    return "\n".join(lines) + "\n"


def section(outcome):
    case = outcome.case
    lines = [f"## {case.title}", ""]
    if case.note:
        lines += [case.note, ""]
    lines += tools_table(case, outcome.samples)
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
    lines = ["| goal | at most | measured | over the rounds | met |", "| --- | ---: | ---: | ---: | --- |"]
    for goal in case.goals:
        lines.append(goal_row(case, goal, by_tool))
    return lines


def goal_row(case, goal, by_tool):
    ours = [sample.value for sample in by_tool.get(MEASURED, [])]
    if goal.against is None:
        what, theirs = f"{MEASURED}, {case.unit}", [1.0] * len(ours)
    else:
        what = f"{MEASURED} / {goal.against}"
        theirs = [sample.value for sample in by_tool.get(goal.against, [])]
    if not ours or not theirs:
        return f"| {what} | {number(goal.at_most)} | not measured | | |"
    ratio = statistics.median(ours) / statistics.median(theirs)
    each = [mine / other for mine, other in zip(ours, theirs)]
    met = "yes" if ratio <= goal.at_most else "no"
    spread = f"{number(min(each))} to {number(max(each))}"
    return f"| {what} | {number(goal.at_most)} | {number(ratio)} | {spread} | {met} |"


def number(value):
    """Three significant digits, or whole from 1,000 on."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
