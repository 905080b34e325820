"""The servers that all tools load: the counter of the gRPC study, nginx, and a gateway that serves a
directory by the API of S3."""

import contextlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.disk import place
from harness.peer import PEERS, find
from harness.process import Failed, free_port, server

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "studies" / "inputq-vs-mutex"
PROTO = STUDY / "counter.proto"
CALL = "counter.incrementCounter/increment"

NGINX_INSTALL = [["apt-get", "install", "-y", "--no-install-recommends", "nginx-light"]]
# What a flow takes a value from.
LOGIN = '{"user":{"id":4711,"name":"somebody"},"access_token":"0123456789abcdef","expires_in":3600}'
NGINX_CONF = """
daemon off;
worker_processes 1;
worker_rlimit_nofile 30000;
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 25000; }}
http {{
    access_log off;
    keepalive_timeout 1h;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{ default_type text/plain; return 200 "a short reply"; }}
        location /login {{ default_type application/json; return 200 '{LOGIN}'; }}
    }}
}}
"""


@contextlib.contextmanager
def counter(cpu, folder):
    """The study's Go server in mutex mode; gives its address."""
    program = Path(folder) / "counter"
    if not program.exists():
        build = ["go", "build", "-o", str(program), "."]
        subprocess.run(build, cwd=STUDY / "server", check=True)
    port = free_port()
    command = [program, "-mode", "mutex", "-listen", f"127.0.0.1:{port}"]
    with server(command, cpu, port, folder):
        yield f"127.0.0.1:{port}"


@contextlib.contextmanager
def nginx(cpu, folder):
    """nginx with one worker and a reply from memory; gives its address."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        raise Failed("nginx is not there: bench/install says how to get it")
    port = free_port()
    conf = Path(folder) / "nginx.conf"
    conf.write_text(NGINX_CONF.format(folder=folder, port=port, LOGIN=LOGIN))
    with server([program, "-p", folder, "-e", "stderr", "-c", conf], cpu, port, folder):
        yield f"127.0.0.1:{port}"


VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
VERSITYGW_INSTALL = [["env", f"GOBIN={PEERS}/bin", "go", "install", VERSITYGW]]
BUCKET = "bench"
ACCESS_KEY, SECRET_KEY = "bench", "known-to-all-who-read-this"


@dataclass(frozen=True)
class Bucket:
    """Where a bucket is served, and the folder that it lies in."""

    address: str
    folder: Path


def s3(cpu, folder):
    """versitygw over a folder on the disk."""
    return s3_over(place(folder), cpu, folder)


@contextlib.contextmanager
def s3_over(root, cpu, folder):
    """versitygw over this folder. Its answers end connections unless it is told to keep them."""
    port = free_port()
    bucket = root / BUCKET
    bucket.mkdir(parents=True)
    options = ["--keep-alive", "--quiet", "--port", f"127.0.0.1:{port}"]
    keys = ["--access", ACCESS_KEY, "--secret", SECRET_KEY]
    store = ["posix", "--data-integrity-etag", root]
    with server([find("versitygw"), *options, *keys, *store], cpu, port, folder):
        yield Bucket(f"127.0.0.1:{port}", bucket)
    shutil.rmtree(root)
