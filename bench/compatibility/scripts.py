"""The scripts of k6's module: collected from its source, sorted out, and laid out in folders of their own."""

import hashlib
import json
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Hosts that stand for this machine in both programs; all others of a script are mapped to it.
OWN_HOSTS = re.compile(r"localhost|[\d.]+|.*\.invalid|")
HOST = re.compile(r"\b(?:https?|wss?)://(?:[^/@\s\"'`]*@)?([A-Za-z0-9.-]+)")
REMOTE = re.compile(r"""(?:from|import|require\()\s*["']https?://""")
BROWSER = re.compile(r"""["']k6/(?:experimental/)?browser["']""")
EXTENSION = re.compile(r"k6/x/|k6/experimental/redis")
# What a test or a template fills in.
GAP = re.compile(r"%(?:\[\d\])?[sdvq]\b|\{\{ *if ")
PAUSED = re.compile(r"\bpaused: true")
COMMAND = re.compile(r"// k6 run (.*) \S+$", re.MULTILINE)
CLOUD = re.compile(r"=cloud|CLOUD_SECRETS|--paused")

CONFIG = "config.json"

# Flags that say where log lines go, which the comparison reads, or wait for what only a test does.
LOG_FLAGS = {"--log-output": 1, "--log-format": 1, "-v": 0, "--verbose": 0, "--linger": 0, "--quiet": 0}


@dataclass(frozen=True)
class Script:
    """A script, with what it needs to run."""

    id: str
    main: str
    # By path; empty for a file of the module, which is copied with its neighbours.
    files: dict = field(default_factory=dict)
    flags: list = field(default_factory=list)
    env: dict = field(default_factory=dict)
    # Why it is not compared, if it is not.
    left_out: str = ""

    def text(self):
        return "\n".join(self.files.values())

    def digest(self):
        """Of all that it is run with."""
        parts = [self.id, self.main, self.files, self.flags, self.env]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def module(version):
    """The folder of k6's source in the cache of Go's modules, which it is downloaded into."""
    command = ["go", "mod", "download", "-json", f"go.k6.io/k6@{version}"]
    return Path(json.loads(subprocess.run(command, check=True, capture_output=True, cwd="/").stdout)["Dir"])


def collect(source):
    """All scripts of the source, each once, in the order of their ids."""
    command = ["go", "run", ".", str(source)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE / "collect").stdout
    scripts, known = [], set()
    for line in lines.splitlines():
        script = read(json.loads(line), source)
        identity = json.dumps([script.files or script.id, script.main, script.flags, script.env], sort_keys=True)
        if identity not in known:
            known.add(identity)
            scripts.append(script)
    return sorted(scripts, key=lambda script: natural(script.id))


def natural(text):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


def read(found, source):
    files = found.get("files", {})
    text = "\n".join(files.values()) if files else (source / found["id"]).read_text()
    flags = found.get("flags", []) or flags_of(text)
    env = {name: value for name, value in found.get("env", {}).items() if name.startswith("K6_")}
    left_out = found.get("needs", "") or unfit(text, found["id"], flags, env)
    return Script(found["id"], found["main"], files, kept_flags(flags), env, left_out)


def flags_of(text):
    """The flags that an example says it is run with, in its first line."""
    told = COMMAND.match(text)
    return shlex.split(told[1]) if told else []


def unfit(text, identity, flags, env):
    """Why a script is not compared; empty if it is."""
    if GAP.search(text):
        return "completed by its test (fmt.Sprintf)"
    if BROWSER.search(text) or "/browser/" in identity:
        return "browser"
    if EXTENSION.search(text):
        return "extension"
    if REMOTE.search(text):
        return "remote module, which is not fetched here"
    if CLOUD.search(" ".join([*without_cloud(flags), *env])) or PAUSED.search(text):
        return "cloud, or waits for its test"
    if "archive.tar" in flags:
        return "archive"
    if identity.startswith("examples/") and not re.search(r"\bexport\b|\bexports\b", text):
        return "no script: a module of another one"
    return ""


def kept_flags(flags):
    """Flags without those that both programs get here anyway, that wait for a test, or that send to a cloud."""
    kept, skip = [], 0
    for flag in without_cloud(flags):
        if skip:
            skip -= 1
            continue
        name, has_value, _ = flag.partition("=")
        if name in LOG_FLAGS:
            skip = 0 if has_value else LOG_FLAGS[name]
        elif flag != "-":
            kept.append(flag)
    return kept


def without_cloud(flags):
    joined = "\0".join(flags).replace("--out\0cloud", "--out=cloud").split("\0") if flags else []
    return [flag for flag in joined if flag not in ("--out=cloud", "--local-execution", "--no-archive-upload")]


@dataclass(frozen=True)
class Placed:
    """A script in its folder, which stands for the root of the file system in the script's paths."""

    root: Path
    # Where it is run, and its path from there.
    cwd: Path
    main: str
    config: Path
    # Hosts and addresses that it asks for.
    hosts: list


def place(script, source, replacements, folder):
    """Writes a script, its files and a config that maps its hosts to this machine."""
    root = folder / "root"
    root.mkdir()
    if script.files:
        texts = {path.lstrip("/"): replaced(text, replacements) for path, text in script.files.items()}
        tops = {path.split("/")[1] for path in script.files if path.startswith("/")}
        for path, text in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(below(root, tops, text))
        cwd, main, text = root, script.main.lstrip("/"), "\n".join(texts.values())
    else:
        copy_neighbours(script.id, source, root)
        at = root / script.id
        cwd, main, text = at.parent, at.name, at.read_text()
    hosts = {"example.com", "httpbin.local", *filter(None, HOST.findall(text))}
    mapped = {host: "127.0.0.1" for host in sorted(hosts) if not OWN_HOSTS.fullmatch(host)}
    config = {"hosts": mapped, "insecureSkipTLSVerify": True}
    (folder / CONFIG).write_text(json.dumps(config))
    return Placed(root, cwd, main, folder / CONFIG, sorted(hosts))


def below(root, tops, text):
    """A text whose absolute paths lead into its own root."""
    for top in tops:
        text = re.sub(rf"(?<=[\"'`])/{re.escape(top)}(?=[/\"'`])", f"{root}/{top}", text)
    return text


def replaced(text, replacements):
    names = sorted(replacements, key=len, reverse=True)
    return re.sub("|".join(names), lambda found: replacements[found[0]], text)


def copy_neighbours(identity, source, folder):
    """What a file of the module may read: the examples with the gRPC services that they call, or its own folder."""
    if identity.startswith("examples/"):
        # Examples look for the services in either place.
        services = "lib/testutils/grpcservice"
        for place in (services, f"internal/{services}"):
            shutil.copytree(source / "internal" / services, folder / place, copy_function=shutil.copyfile)
        parent = "examples"
    else:
        parent = str(Path(identity).parent)
    shutil.copytree(source / parent, folder / parent, copy_function=shutil.copyfile)
    subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
