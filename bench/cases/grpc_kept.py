"""gRPC, a connection per user, no think time."""

from harness.case import Case, Goal, cpu_per_call
from harness.servers import counter
from peers import ghz, k6, plimsoll

CASE = Case(
    name="grpc-kept",
    title="gRPC unary call over kept connections",
    unit="µs of CPU per call",
    server=counter,
    tools={"Plimsoll": plimsoll.grpc_kept, "ghz": ghz.kept_connections, "k6": k6.kept_connections},
    measure=cpu_per_call,
    goals=[Goal("ghz", 1 / 3), Goal("k6", 1 / 5)],
)
