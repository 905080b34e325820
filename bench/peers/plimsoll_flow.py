"""Plimsoll's flows beside its bare driver: the same three requests, with values in them and without."""

from peers.plimsoll import study

# The plain requests are those that the flow sends.
FLOW = """
protocol = "http"
draw     = { page = "10 to 99" }
steps    = [
    { name = "{half} log in", get = "/login?page={$page}", capture = { token = { json = "$.access_token" } } },
    { name = "{half} look", get = "/plan/{$token}?page={$page}" },
    { name = "{half} work", method = "POST", path = "/plan/{$token}", headers = { X-Token = "{$token}" }, json = { id = "{$token}", page = "{$page}" } },
]
"""
PLAIN = """
protocol = "http"
steps    = [
    { name = "{half} log in", get = "/login?page=42" },
    { name = "{half} look", get = "/plan/0123456789abcdef?page=42" },
    { name = "{half} work", method = "POST", path = "/plan/0123456789abcdef", headers = { X-Token = "0123456789abcdef", Content-Type = "application/json" }, body = '{{"id":"0123456789abcdef","page":"42"}}' },
]
"""


def flow(address, connections, seconds, folder):
    return study(FLOW, "per user", address, connections, seconds, folder)


def plain(address, connections, seconds, folder):
    return study(PLAIN, "per user", address, connections, seconds, folder)


def idle(address, users, seconds, folder):
    return study(FLOW, "per user", address, users, seconds, folder, think="1h")
