"""A network of this process and of those that it starts, in which nothing else is: it takes root."""

import ctypes
import os
import subprocess

NEW_NETWORK = 0x40000000  # CLONE_NEWNET


def enter_own():
    """From now on there is only a loopback interface of our own.

    Raises PermissionError where that is not allowed.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_NETWORK) != 0:
        raise PermissionError(f"a network of its own takes root: unshare: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
