"""Memory of a user that is connected and does nothing."""

from harness.case import Case, Goal, Sample, once
from harness.servers import nginx
from peers import plimsoll, wrk

FEW, MANY = 1_000, 11_000
SECONDS = 8


def per_user(few, many):
    """The difference in peak resident memory between many users and few, per user."""

    def bytes_per_user(job_of, address, settings, folder):
        small = once(job_of, address, few, SECONDS, settings, folder)
        large = once(job_of, address, many, SECONDS, settings, folder)
        value = (large.peak_bytes - small.peak_bytes) / (many - few)
        return Sample(value, large.calls / SECONDS, large.peak_bytes, small.failed + large.failed)

    return bytes_per_user


def load(few, many):
    return f"{few:,} and {many:,} users for {SECONDS} s each"


CASE = Case(
    name="http-idle",
    title=f"Memory per idle HTTP user with its connection, from {FEW:,} to {MANY:,} users",
    unit="bytes per user",
    server=nginx,
    tools={"Plimsoll": plimsoll.http_idle, "wrk (busy)": wrk.kept_connections},
    measure=per_user(FEW, MANY),
    goals=[Goal(None, 8 * 1024)],
    load=load(FEW, MANY),
    note="Plimsoll's users send one request and think for an hour. wrk has no think time: its connections are busy.",
)
