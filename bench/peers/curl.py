"""curl: one transfer after the other over one connection, each with a signature of its own."""

import os
import subprocess
import time

from harness.peer import Job, Moved, find, first_line
from harness.process import Failed
from harness.servers import ACCESS_KEY, BUCKET, SECRET_KEY
from harness.work import in_bytes

INSTALL = [["apt-get", "install", "-y", "--no-install-recommends", "curl"]]


def version():
    return " ".join(first_line([find("curl"), "--version"]).split()[:2])


def objects(work, address, folder):
    """Keys are as deep as Plimsoll's. What is to be read is written before."""
    file = folder / f"body-{work.size}"
    if not file.exists():
        file.write_bytes(os.urandom(in_bytes(work.size)))
    urls = f"http://{address}/{BUCKET}/curl-{time.time_ns():x}/user-0/object-[1-{work.objects}]"
    command = put(file, urls)
    if work.operation == "read":
        subprocess.run(command, check=True, capture_output=True)
        command = [*transfer(), "-o", "/dev/null", urls]
    return Job(command, lambda output: count(output, work))


def put(file, urls):
    # Without the wait for a server that may not want the object.
    return [*transfer(), "-H", "Expect:", "-o", "/dev/null", "-T", file, urls]


def transfer():
    signing = ["--aws-sigv4", "aws:amz:us-east-1:s3", "-u", f"{ACCESS_KEY}:{SECRET_KEY}"]
    signing += ["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]
    return [find("curl"), "-sS", "--fail", *signing, "-w", r"%{time_total}\n"]


def count(output, work):
    """One line of output is the time of one transfer."""
    seconds = [float(line) for line in output.split()]
    if len(seconds) != work.count:
        raise Failed(f"curl: {len(seconds)} of {work.count} transfers")
    return Moved(work.bytes, sum(seconds))
