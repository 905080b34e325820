"""A script that sends GET requests: what scripting costs."""

from dataclasses import replace

from harness.case import Case, Goal, cpu_per_call
from harness.servers import nginx
from peers import locust, plimsoll, plimsoll_script, wrk

CASE = Case(
    name="script-http",
    title="Scripted HTTP GET",
    unit="µs of CPU per request",
    server=nginx,
    tools={
        "Plimsoll": plimsoll_script.plimsoll_get,
        "Plimsoll (no script)": plimsoll.http_kept,
        "k6": plimsoll_script.k6_get,
        "Locust": locust.get,
        "wrk (no script)": wrk.kept_connections,
    },
    measure=cpu_per_call,
    turns=4,
    seconds=5,
    goals=[Goal("k6", 1 / 5), Goal("k6", 1 / 8), Goal("Locust", 1 / 8)],
    note="`bench/scripts/get.js` as it is, by `plimsoll script run` and by `k6 run`; Locust with FastHttpUser. "
    "wrk is C and knows nothing of users: what it takes is nearly all the kernel's. Runs of 5 s in turns; the ratio is the median of those within a turn.",
)

SHARED = replace(
    CASE,
    name="script-http-shared",
    title="Scripted HTTP GET, server and tool on one processor",
    shares_processor=True,
    note="The same where the server has no processor of its own, as on most machines that a script is first tried on. Nothing "
    "moves from one processor's cache to another's, so the two speeds of a virtual machine are hardly to be seen.",
)
