"""One module per tool: its version, how to install it, its command for each case, its count."""

from peers import curl, fio, ghz, go_tpc, k6, locust, oha, plimsoll, sysbench, wrk

TOOLS = {"Plimsoll": plimsoll, "ghz": ghz, "k6": k6, "Locust": locust, "oha": oha, "wrk": wrk, "fio": fio, "curl": curl}
TOOLS |= {"sysbench": sysbench, "go-tpc": go_tpc}
