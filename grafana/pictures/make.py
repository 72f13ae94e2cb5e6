#!/usr/bin/env python3
"""Makes the pictures of this folder from a real run: a backend, a gateway in front of it, callers of every tier, a Prometheus.

    make.py BINARY [--seconds 300] [--into DIR]   makes them
    make.py BINARY [--seconds 300] --compare      makes them elsewhere, and fails if those of this folder show something else
    make.py --check                               fails if a picture of this folder is older than its dashboard

During the run the backend fails for a while, an application exceeds its minute limit, and a client tries invented keys. Then
each panel of each dashboard is queried and drawn, and the output of `scoregate top` too. Requires Python and Prometheus, and
uses loopback only. Drawing is in `plot.py`; the queries are tested in `tests/suite/telemetry/monitoring/`.
"""

import argparse
import contextlib
import http.client
import json
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import plot

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[1]
DASHBOARDS = sorted((TREE / "grafana/dashboards").glob("*.json"))
PATHS = ["/api/v1/models", "/api/v1/models?period=24h&sortBy=reasoning", "/api/v1/index", "/api/v1/alerts", "/api/v1/providers",
         "/api/v1/models/atlas-2", "/api/v1/models/kestrel-70b", "/api/v1/models/basalt-3/history?period=7d", "/api/v1/incidents",
         "/api/v1/drift/atlas-2", "/api/v1/me", "/api/v1/models/nobody", "/api/v1/incidents?limit={}"]
SETTINGS = """
listen = "127.0.0.1:0"
data_dir = "{state}"
[admin]
listen = "127.0.0.1:0"
[upstream]
url = "http://{backend}/api/v1"
[freshness]
refresh_interval = "1h"
[freshness.models]
ttl = "8s"
[freshness.alerts]
ttl = "5s"
[freshness.index]
ttl = "6s"
"""
# Maximum number of panels without data, since some events do not occur in the run: a certificate, a panic.
MAX_EMPTY = 2
# Callers: tier, number, and requests per second of each.
CALLERS = [("free", 6, 0.2), ("pro", 4, 0.9), ("developer", 3, 1.8), ("teams", 2, 4.5), ("enterprise", 2, 14.0)]


class Process:
    """A program that runs until the end of the run, and logs its address."""

    def __init__(self, *command, ready, **more):
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, **more)
        self.found, log = None, []
        for line in self.process.stderr:
            log.append(line)
            self.found = re.search(ready, line)
            if self.found:
                break
        if not self.found:
            raise SystemExit(f"{command[0]} did not start:\n{''.join(log)}")
        # The rest of its log must not fill the pipe.
        threading.Thread(target=lambda: [None for _ in self.process.stderr], daemon=True).start()

    def end(self):
        self.process.terminate()
        self.process.wait()


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def send_requests(address, key, rate, part, seed):
    """One caller, which sends requests at random times during this part of the run."""
    rng, connection, tags = random.Random(seed), None, {}
    while not part.over():
        time.sleep(rng.expovariate(rate))
        if not part.now():
            continue
        # Some documents are first requested while the backend is down.
        path = rng.choice(PATHS).format(rng.randrange(1, 51))
        headers = {"X-API-Key": key or f"sg_live_madeup{rng.randrange(10**9)}", "Accept-Encoding": rng.choice(["gzip", "br", "identity"])}
        if path in tags and rng.random() < 0.4:
            headers["If-None-Match"] = tags[path]
        try:
            connection = connection or http.client.HTTPConnection(address, timeout=30)
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            response.read()
            tags[path] = response.getheader("ETag") or tags.get(path, '"none"')
        except (OSError, http.client.HTTPException):
            connection = None


class Part:
    """A part of the run, from one fraction of its duration to another."""

    def __init__(self, begin, seconds, part=(0.0, 1.0)):
        self.start, self.stop, self.end = begin + seconds * part[0], begin + seconds * part[1], begin + seconds

    def now(self):
        return self.start <= time.time() < self.stop

    def over(self):
        return time.time() >= self.end


def until(moment):
    time.sleep(max(0.0, moment - time.time()))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("binary", nargs="?")
    arguments.add_argument("--seconds", type=int, default=300)
    arguments.add_argument("--into", type=pathlib.Path, default=HERE)
    arguments.add_argument("--compare", action="store_true")
    arguments.add_argument("--check", action="store_true")
    options = arguments.parse_args()
    if options.check:
        compare({file.stem: plot.digest_of_dashboard(json.loads(file.read_text())) for file in DASHBOARDS})
    elif not options.binary:
        arguments.error("the binary is missing")
    elif options.compare:
        with tempfile.TemporaryDirectory() as pictures:
            make(options.binary, options.seconds, pathlib.Path(pictures))
            compare({file.stem: plot.digest_in(file.read_text()) for file in pathlib.Path(pictures).glob("*.svg")})
    else:
        make(options.binary, options.seconds, options.into)


def compare(expected):
    """Fails if a picture of this folder has another digest. What depends on the run is not compared: values and series."""
    found = {name: plot.digest_in((HERE / f"{name}.svg").read_text()) for name in expected}
    stale = ", ".join(f"{name}.svg" for name in sorted(expected) if expected[name] != found[name])
    if stale:
        raise SystemExit(f"pictures of an earlier dashboard or program: {stale}; run grafana/pictures/make.py BINARY")


def make(program, seconds, into):
    binary = str(pathlib.Path(program).resolve())
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as cleanup:
        directory = pathlib.Path(directory)
        archive, state = directory / "runs.db", directory / "state"
        runs = subprocess.run([TREE / ".ci/runs.py"], check=True, capture_output=True).stdout
        subprocess.run([binary, "scoring", "import", "-", "--archive", archive], input=runs, check=True, capture_output=True)
        backend = f"127.0.0.1:{free_port()}"

        def serve_backend():
            return Process(binary, "scoring", "serve", "--archive", archive, "--listen", backend, ready=r"serving")

        scoring = serve_backend()
        cleanup.callback(lambda: scoring.end())
        settings = directory / "scoregate.toml"
        settings.write_text(SETTINGS.format(state=state, backend=backend))
        gateway = Process(binary, "serve", "--config", settings, ready=r"serving.*public=(\S+) side=(\S+)")
        cleanup.callback(gateway.end)
        address, side = gateway.found[1], gateway.found[2]

        def key(tier, name):
            create = [binary, "keys", "create", "--config", settings, "--tier", tier, "--name", name]
            return subprocess.run(create, check=True, capture_output=True, text=True).stdout.strip()

        keys = [(key(tier, f"{tier.title()} caller {number + 1}"), rate) for tier, count, rate in CALLERS for number in range(count)]
        looping = key("pro", "Client in a loop")
        subprocess.run([binary, "store", "backup", directory / "backup.db", "--config", settings], check=True, capture_output=True)
        (directory / "prometheus.yml").write_text(
            f'global: {{scrape_interval: 1s, evaluation_interval: 5s}}\nrule_files: ["{TREE}/deploy/prometheus/rules/*.yml"]\n'
            f'scrape_configs: [{{job_name: scoregate, static_configs: [{{targets: ["{side}"]}}]}}]\n')
        prometheus = f"127.0.0.1:{free_port()}"
        monitoring = Process("prometheus", f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data",
                             f"--web.listen-address={prometheus}", ready="Server is ready")
        cleanup.callback(monitoring.end)

        begin = time.time()
        whole = Part(begin, seconds)
        callers = [(secret, rate, whole) for secret, rate in keys]
        callers += [(looping, 25.0, Part(begin, seconds, (0.6, 0.8))), (None, 30.0, Part(begin, seconds, (0.7, 0.9)))]
        threads = [threading.Thread(target=send_requests, args=(address, *caller, seed)) for seed, caller in enumerate(callers)]
        for thread in threads:
            thread.start()
        until(begin + seconds * 0.3)
        scoring.end()
        until(begin + seconds * 0.5)
        scoring = serve_backend()
        until(begin + seconds * 0.75)
        top = subprocess.run([binary, "top", "--once", "--config", settings], check=True, capture_output=True, text=True).stdout
        for thread in threads:
            thread.join()
        end = time.time()

        (into / "top.svg").write_text(plot.terminal(top))
        for file in DASHBOARDS:
            drawn, empty = plot.draw(f"http://{prometheus}", json.loads(file.read_text()), begin, end, 10)
            (into / f"{file.stem}.svg").write_text(drawn)
            print(f"{file.stem}: {len(empty)} panels without data: {', '.join(empty) or 'none'}")
            if len(empty) > MAX_EMPTY:
                raise SystemExit(f"{file.stem}: too many panels without data")


if __name__ == "__main__":
    main()
