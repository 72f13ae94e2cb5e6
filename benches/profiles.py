#!/usr/bin/env python3
"""Compares the profiles of a build, and those of an earlier revision, in one run: wall-clock and CPU time of a cold build of the
program, time to the first answer of the demo, size of the file, and CPU time of a hit.

    benches/profiles.py [REVISION]      for example: benches/profiles.py 4f96a1c

Requires Linux, two idle cores, and up to 12 GB below TMPDIR. Builds use only one target directory each, so nothing is reused.
"""

import os
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROUNDS = 9
SECONDS = 2.0
CONNECTIONS = 16
PATH = "/api/v1/models?period=24h"
SETTINGS = """listen = "127.0.0.1:0"
admin.listen = "127.0.0.1:0"
data_dir = "{data}"
upstream = "built-in"
guard.per_minute = 100000000
freshness.probe = false
server.workers = 1
[tiers.load]
minute = 1000000000
day = 1000000000
paid = true
"""


def run(command, **options):
    """Runs a command; returns its wall-clock and CPU seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - start, cpu


def first_answer(binary):
    """Seconds from the start of the demo until its own curl command has an answer."""
    start = time.monotonic()
    command = [binary, "demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        for line in demo.stdout:
            if line.startswith("curl "):
                key, url = re.search(r"'Authorization: (.*?)' '(.*?)'", line).groups()
                request = urllib.request.Request(url, headers={"Authorization": key})
                with urllib.request.urlopen(request) as response:
                    assert b'"data"' in response.read()
                return time.monotonic() - start
    finally:
        demo.terminate()
        demo.wait()
    sys.exit(f"{binary}: the demo does not start")


def runs(path):
    """Writes runs of twenty models: a list of realistic size."""
    with open(path, "w", encoding="utf-8") as file:
        for model in range(10, 30):
            for hour in range(1, 4):
                at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - hour * 3600))
                scores = ", ".join(
                    f'"{name}": {value}'
                    for name, value in [("correctness", model / 100), ("spec", 0.8), ("codeQuality", 0.7), ("efficiency", 0.6),
                                        ("stability", 0.5), ("refusal", 1), ("recovery", 0.4)]
                )
                file.write(
                    f'{{"id": "{model}-{hour}", "model": {{"id": "model-{model}", "name": "Model {model}", '
                    f'"provider": "meridian", "priceInput": 1, "priceOutput": 4}}, "suite": "coding", "time": "{at}", '
                    f'"trials": [{{"scores": {{{scores}}}, "latencyMs": 900, "cost": 0.01}}]}}\n'
                )


class Gateway:
    """A running gateway on core 0, and connections to it."""

    def __init__(self, binary, directory):
        directory.mkdir()
        settings = directory / "scoregate.toml"
        settings.write_text(SETTINGS.format(data=directory / "data"), encoding="utf-8")
        runs(directory / "runs.jsonl")
        run([binary, "scoring", "import", directory / "runs.jsonl", "--config", settings])
        create = [binary, "keys", "create", "--name", "load", "--tier", "load", "--config", settings]
        self.key = subprocess.run(create, capture_output=True, text=True, check=True).stdout.strip()
        self.log = open(directory / "log", "w+", encoding="utf-8")
        serve = ["taskset", "-c", "0", binary, "serve", "--config", settings]
        self.process = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=self.log)
        address = self._address(directory / "log")
        self.sockets = [socket.create_connection(address) for _ in range(CONNECTIONS)]
        self.request = f"GET {PATH} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nX-API-Key: {self.key}\r\n\r\n".encode()

    def _address(self, log):
        for _ in range(600):
            found = re.search(r" public=(\S+):(\d+)", log.read_text(encoding="utf-8"))
            if found:
                return found[1], int(found[2])
            time.sleep(0.05)
        sys.exit(f"no gateway starts: {log.read_text(encoding='utf-8')}")

    def cpu(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def measure(self, seconds):
        """Microseconds of CPU time for a hit."""
        start, end, count = self.cpu(), time.monotonic() + seconds, 0
        while time.monotonic() < end:
            for connection in self.sockets:
                connection.sendall(self.request)
            for connection in self.sockets:
                self._receive(connection)
            count += CONNECTIONS
        return (self.cpu() - start) / count * 1e6

    @staticmethod
    def _receive(connection):
        reply = connection.recv(65536)
        assert reply.startswith(b"HTTP/1.1 200"), reply[:200]
        head = reply.index(b"\r\n\r\n") + 4
        at = reply.lower().index(b"content-length: ") + 16
        missing = head + int(reply[at : reply.index(b"\r", at)]) - len(reply)
        while missing:
            missing -= len(connection.recv(missing))

    def stop(self):
        self.process.terminate()
        self.process.wait()


def build(tree, profile, out):
    """Builds a profile from cold; returns its binary and the times."""
    target = out / "target"
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    environment.pop("CARGO_MANIFEST_DIR", None)
    environment.pop("JEMALLOC_OVERRIDE", None)
    if profile == "shipped":
        # The script has directories of its own.
        environment.pop("CARGO_TARGET_DIR")
        times = run([tree / "deploy/dist/build.sh"], cwd=tree, env=environment)
        built = tree / "target/dist/scoregate"
    else:
        options = ["--release"] if profile == "release" else []
        times = run(["cargo", "build", "--locked", "--bin", "scoregate", *options], cwd=tree, env=environment)
        built = target / ("release" if options else "debug") / "scoregate"
    binary = out / "scoregate"
    shutil.copy(built, binary)
    shutil.rmtree(target, ignore_errors=True)
    return binary, times


def main():
    revisions = [*sys.argv[1:2], "HEAD"]
    work = Path(tempfile.mkdtemp(prefix="profiles-"))
    rows, builds, gateways = [], [], []
    try:
        for revision in revisions:
            tree = work / revision
            subprocess.run(["git", "clone", "--quiet", ".", tree], check=True)
            subprocess.run(["git", "checkout", "--quiet", revision], cwd=tree, check=True)
            commit = subprocess.check_output(["git", "rev-parse", "--short=8", "HEAD"], cwd=tree, text=True).strip()
            subprocess.run(["cargo", "fetch", "--quiet", "--locked"], cwd=tree, check=True)
            for profile in ["development", "release", "shipped"]:
                if profile == "shipped" and not (tree / "deploy/dist/build.sh").exists():
                    continue
                out = work / f"{revision}-{profile}"
                out.mkdir()
                binary, (wall, cpu) = build(tree, profile, out)
                answer = statistics.median(first_answer(binary) for _ in range(5))
                rows.append([f"{commit} {profile}", wall, cpu, wall + answer, answer, binary.stat().st_size / 1e6])
                print(rows[-1], file=sys.stderr, flush=True)
                builds.append(binary)
        # Now, not before: idle connections are closed after a while.
        gateways = [Gateway(binary, binary.parent / "state") for binary in builds]
        os.sched_setaffinity(0, {1})
        for gateway in gateways:
            gateway.measure(1.0)
        hits = [[] for _ in gateways]
        for _ in range(ROUNDS):
            for gateway, measured in zip(gateways, hits):
                measured.append(gateway.measure(SECONDS))
    finally:
        for gateway in gateways:
            gateway.stop()
        shutil.rmtree(work, ignore_errors=True)
    print(f"$ benches/profiles.py {' '.join(sys.argv[1:])}    # {time.strftime('%Y-%m-%d')}, {os.cpu_count()} vCPU")
    print(f"cold builds of the program; {ROUNDS} interleaved rounds of {SECONDS:g} s of hits over {CONNECTIONS} connections\n")
    print(f"{'':24}{'build s':>9}{'CPU s':>9}{'first answer s':>16}{'demo alone s':>14}{'MB':>7}{'us CPU/hit':>12}  of rounds")
    for row, measured in zip(rows, hits):
        name, wall, cpu, first, demo, size = row
        of_rounds = " ".join(f"{value:.1f}" for value in sorted(measured))
        print(f"{name:24}{wall:9.1f}{cpu:9.1f}{first:16.1f}{demo:14.2f}{size:7.1f}{statistics.median(measured):12.2f}  {of_rounds}")


main()
