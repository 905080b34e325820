"""What the numbers depend on: the machine and the day."""

import datetime
import os
import platform
import re
import resource
from pathlib import Path


def describe():
    """The host, as the head of the results shows it."""
    memory = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[1]) / 2**20
    return {
        "Date": datetime.date.today().isoformat(),
        "Processor": f"{processor()}, {os.cpu_count()} logical processors",
        "Memory": f"{memory:.1f} GiB",
        "Kernel": f"{platform.system()} {platform.release()}",
        "Load before the start": f"{os.getloadavg()[0]:.2f} (one-minute average)",
    }


def processor():
    info = Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*:\s*(.+)", info)
    return model[1] if model else platform.machine()


def allow_open_files(wanted):
    """Raises this process's limit of open files, which those that it starts inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, enough), hard))
