"""A script that sends GET requests at a rate that all tools reach: what scripting costs where none of them waits for the
server, and none finds replies waiting."""

from functools import partial

from harness.case import Case, Goal, cpu_per_call
from harness.servers import nginx
from peers import plimsoll_script

RATE = 10_000

CASE = Case(
    name="script-rate",
    title=f"Scripted HTTP GET, {RATE:,} requests a second",
    unit="µs of CPU per request",
    server=nginx,
    tools={"Plimsoll": partial(plimsoll_script.plimsoll_rate, RATE), "k6": partial(plimsoll_script.k6_rate, RATE)},
    measure=cpu_per_call,
    turns=4,
    seconds=5,
    goals=[Goal("k6", 1.0)],
    note="`bench/scripts/rate.js` as it is, by both: the same requests at the same instants, for up to 50 users. The process "
    "sleeps before each request and before each reply, and what the kernel takes for that is the same for both. Runs of 5 s in "
    "turns; the ratio is the median of those within a turn.",
)
