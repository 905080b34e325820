"""A flow of three steps with values in them and a capture, beside the bare driver."""

from harness.case import Case, Goal, cpu_per_call
from harness.servers import nginx
from peers import plimsoll_flow

CASE = Case(
    name="flow",
    title="A flow of three templated steps with a capture",
    unit="µs of CPU per iteration",
    server=nginx,
    tools={"Plimsoll": plimsoll_flow.flow, "Plimsoll (bare driver)": plimsoll_flow.plain},
    measure=cpu_per_call,
    goals=[Goal("Plimsoll (bare driver)", 1.5)],
    note="The bare driver sends the same three requests, of the same length, with nothing in them that varies.",
)
