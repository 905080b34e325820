"""Memory of a scripted user that sleeps."""

from harness.case import Case, Goal
from harness.servers import nginx
from cases.http_idle import load, per_user
from peers import plimsoll_script

FEW, MANY = 500, 4_500

CASE = Case(
    name="script-idle",
    title=f"Memory per scripted user after a GET, asleep, from {FEW:,} to {MANY:,} users",
    unit="bytes per user",
    server=nginx,
    tools={"Plimsoll": plimsoll_script.plimsoll_idle, "k6": plimsoll_script.k6_idle},
    measure=per_user(FEW, MANY),
    goals=[Goal("k6", 1.0)],
    load=load(FEW, MANY),
    note="`bench/scripts/idle.js` as it is, by both. The most memory that the process ever held counts.",
)
