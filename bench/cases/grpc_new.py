"""gRPC, a new connection for every iteration, as in the original study."""

from harness.case import Case, Goal, cpu_per_call
from harness.servers import counter
from peers import k6, plimsoll

CASE = Case(
    name="grpc-new",
    title="gRPC unary call, a new connection per iteration",
    unit="µs of CPU per call",
    server=counter,
    tools={"Plimsoll": plimsoll.grpc_new, "k6": k6.connection_per_iteration},
    measure=cpu_per_call,
    goals=[Goal("k6", 1 / 5)],
    note="Connecting and closing are part of the call's cost. ghz has no such mode.",
)
