"""Memory of a user that is connected and does nothing."""

from harness.case import Case, Goal, Sample, once
from harness.servers import nginx
from peers import plimsoll, wrk

FEW, MANY = 1_000, 11_000
SECONDS = 8


def bytes_per_user(job_of, address, settings, folder):
    """The difference in peak resident memory between many users and few, per user."""
    few = once(job_of, address, FEW, SECONDS, settings, folder)
    many = once(job_of, address, MANY, SECONDS, settings, folder)
    value = (many.peak_bytes - few.peak_bytes) / (MANY - FEW)
    return Sample(value, many.calls / SECONDS, many.peak_bytes, few.failed + many.failed)


CASE = Case(
    name="http-idle",
    title=f"Memory per idle HTTP user with its connection, from {FEW:,} to {MANY:,} users",
    unit="bytes per user",
    server=nginx,
    tools={"Plimsoll": plimsoll.http_idle, "wrk (busy)": wrk.kept_connections},
    measure=bytes_per_user,
    goals=[Goal(None, 8 * 1024)],
    note="Plimsoll's users send one request and think for an hour. wrk has no think time: its connections are busy.",
)
