"""Memory of a user of a flow that thinks."""

from cases.http_idle import FEW, MANY, load, per_user
from harness.case import Case, Goal
from harness.servers import nginx
from peers import plimsoll_flow

CASE = Case(
    name="flow-idle",
    title=f"Memory per idle user of a flow, with its connection and values, from {FEW:,} to {MANY:,} users",
    unit="bytes per user",
    server=nginx,
    tools={"Plimsoll": plimsoll_flow.idle},
    measure=per_user(FEW, MANY),
    goals=[Goal(None, 8 * 1024)],
    load=load(FEW, MANY),
    note="Users go once through the flow of `flow`, keep what they captured, and think for an hour.",
)
