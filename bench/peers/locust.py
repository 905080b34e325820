"""Locust: load scripted in Python, with its faster HTTP client."""

import json
from pathlib import Path

from harness.peer import PEERS, Count, Job, find, first_line

VERSION = "2.47.0"
FOLDER = PEERS / "locust"
INSTALL = [["python3", "-m", "venv", FOLDER], [FOLDER / "bin" / "pip", "install", "-q", f"locust=={VERSION}"]]

USER = """
from locust import FastHttpUser, task

class User(FastHttpUser):
    @task
    def get(self):
        self.client.get("/")
"""


def program():
    return find(str(FOLDER / "bin" / "locust"))


def version():
    return first_line([program(), "--version"]).split(" from ")[0]


def get(address, connections, seconds, folder):
    file = Path(folder) / "locustfile.py"
    file.write_text(USER)
    options = ["--headless", "--only-summary", "--json", "--host", f"http://{address}", "-f", file]
    options += ["--users", connections, "--spawn-rate", connections, "--run-time", f"{seconds}s"]
    return Job([program(), *options], count)


def count(output):
    rows = json.loads(output[output.index("[") :])
    failed = sum(row["num_failures"] for row in rows)
    return Count(sum(row["num_requests"] for row in rows) - failed, failed)
