"""HTTP/1.1 GET over kept connections."""

from harness.case import Case, Goal, cpu_per_call
from harness.servers import nginx
from peers import oha, plimsoll, wrk

CASE = Case(
    name="http-kept",
    title="HTTP/1.1 GET over kept connections",
    unit="µs of CPU per call",
    server=nginx,
    tools={"Plimsoll": plimsoll.http_kept, "oha": oha.kept_connections, "wrk": wrk.kept_connections},
    measure=cpu_per_call,
    goals=[Goal("oha", 1.0), Goal("wrk", 1.0)],
    note="Against oha it is a goal, against wrk an aim.",
)
