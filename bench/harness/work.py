"""What all tools are asked to do with objects."""

import re
from dataclasses import dataclass

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "GB": 10**9}


@dataclass(frozen=True)
class Work:
    """Objects that are kept, and how often each of them is written or read."""

    operation: str
    mode: str
    size: str
    block: str
    objects: int
    passes: int = 1

    @property
    def count(self):
        return self.objects * self.passes

    @property
    def bytes(self):
        return self.count * in_bytes(self.size)


def in_bytes(size):
    """Bytes of a size as it stands in a study."""
    count, unit = re.fullmatch(r"(\d+)(\w+)", size).groups()
    return int(count) * UNITS[unit]
