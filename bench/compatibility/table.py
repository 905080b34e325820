"""The result of all scripts as a table in Markdown."""

from collections import Counter

CLASSES = ("equal", "harmless", "documented", "refused", "wrong")


def of(everything, results, version):
    """How many scripts there are of each class, what is harmless, and each one that is neither."""
    left_out = Counter(script.left_out for script in everything if script.left_out)
    kept = [(script, results.of(script)) for script in everything if not script.left_out]
    missing = sum(result is None for _, result in kept)
    classes = Counter(result["class"] for _, result in kept if result)
    left_out += Counter(result["differences"][0] for _, result in kept if result and result["class"] == "left out")
    compared = sum(classes[name] for name in CLASSES)
    good = classes["equal"] + classes["harmless"]
    lines = [f"k6 {version}: {len(everything)} scripts, {compared} compared", "", "| class | scripts |", "| --- | ---: |"]
    lines += [f"| {name} | {classes[name]} |" for name in CLASSES]
    lines += [f"| left out: {reason} | {count} |" for reason, count in left_out.most_common()]
    if missing:
        lines.append(f"| not run yet | {missing} |")
    if compared:
        lines += ["", f"equal or harmless: {good} of {compared}, {good / compared:.1%}"]
    harmless = Counter(
        difference for _, result in kept if result and result["class"] == "harmless" for difference in result["differences"]
    )
    lines += ["", *(f"- harmless: {difference}: {count}" for difference, count in harmless.most_common())]
    for name in ("documented", "refused", "wrong"):
        lines += [
            f"- {name}: {script.id}: {'; '.join(result['differences'])[:300]}"
            for script, result in kept if result and result["class"] == name
        ]
    return "\n".join(lines)
