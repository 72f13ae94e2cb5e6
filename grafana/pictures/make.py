#!/usr/bin/env python3
"""Makes the pictures of this folder from a real run: a backend, a gateway before it, callers of every kind, a Prometheus.

    make.py BINARY [--seconds 300] [--into DIR]

In the run the backend goes away for a while, an application asks far more than its minute allows, and somebody tries made-up
keys. Then each panel of each dashboard is asked for and drawn, and so is what `scoregate top` shows. It needs Python and
Prometheus, and asks loopback alone. Not for: drawing (`plot.py`), nor for whether queries are right (`tests/suite/monitoring/`).
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

TREE = pathlib.Path(__file__).resolve().parents[2]
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
# Panels about what did not happen in the run have nothing to show: a certificate, a panic.
MOST_EMPTY = 2
# Who asks: a tier, how many of them, and how often each asks a second.
CALLERS = [("free", 6, 0.2), ("pro", 4, 0.9), ("developer", 3, 1.8), ("teams", 2, 4.5), ("enterprise", 2, 14.0)]


class Started:
    """A program that ends with the run, and says where it is."""

    def __init__(self, *command, says, **more):
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, **more)
        self.found, said = None, []
        for line in self.process.stderr:
            said.append(line)
            self.found = re.search(says, line)
            if self.found:
                break
        if not self.found:
            raise SystemExit(f"{command[0]} did not start:\n{''.join(said)}")
        # What else it says must not fill the pipe.
        threading.Thread(target=lambda: [None for _ in self.process.stderr], daemon=True).start()

    def end(self):
        self.process.terminate()
        self.process.wait()


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def ask(address, key, every, during, seed):
    """One caller, who asks now and then while the run is in one of these parts."""
    dice, connection, tags = random.Random(seed), None, {}
    while not during.over():
        time.sleep(dice.expovariate(every))
        if not during.now():
            continue
        # Some are asked for first while the backend is away.
        path = dice.choice(PATHS).format(dice.randrange(1, 51))
        headers = {"X-API-Key": key or f"sg_live_madeup{dice.randrange(10**9)}", "Accept-Encoding": dice.choice(["gzip", "br", "identity"])}
        if path in tags and dice.random() < 0.4:
            headers["If-None-Match"] = tags[path]
        try:
            connection = connection or http.client.HTTPConnection(address, timeout=30)
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            answer.read()
            tags[path] = answer.getheader("ETag") or tags.get(path, '"none"')
        except (OSError, http.client.HTTPException):
            connection = None


class During:
    """A part of the run, from one share of its time to another."""

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
    arguments.add_argument("binary")
    arguments.add_argument("--seconds", type=int, default=300)
    arguments.add_argument("--into", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent)
    said = arguments.parse_args()
    binary, seconds = str(pathlib.Path(said.binary).resolve()), said.seconds
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as ends:
        place = pathlib.Path(place)
        archive, state = place / "runs.db", place / "state"
        runs = subprocess.run([TREE / ".ci/runs.py"], check=True, capture_output=True).stdout
        subprocess.run([binary, "scoring", "import", "-", "--archive", archive], input=runs, check=True, capture_output=True)
        backend = f"127.0.0.1:{free_port()}"

        def serve_backend():
            return Started(binary, "scoring", "serve", "--archive", archive, "--listen", backend, says=r"serving")

        scoring = serve_backend()
        ends.callback(lambda: scoring.end())
        settings = place / "scoregate.toml"
        settings.write_text(SETTINGS.format(state=state, backend=backend))
        gateway = Started(binary, "serve", "--config", settings, says=r"serving.*public=(\S+) side=(\S+)")
        ends.callback(gateway.end)
        address, side = gateway.found[1], gateway.found[2]

        def key(tier, name):
            made = [binary, "keys", "create", "--config", settings, "--tier", tier, "--name", name]
            return subprocess.run(made, check=True, capture_output=True, text=True).stdout.strip()

        keys = [(key(tier, f"{tier.title()} caller {number + 1}"), every) for tier, count, every in CALLERS for number in range(count)]
        greedy = key("pro", "Somebody's loop")
        subprocess.run([binary, "store", "backup", place / "backup.db", "--config", settings], check=True, capture_output=True)
        (place / "prometheus.yml").write_text(
            f'global: {{scrape_interval: 1s, evaluation_interval: 5s}}\nrule_files: ["{TREE}/deploy/prometheus/rules/*.yml"]\n'
            f'scrape_configs: [{{job_name: scoregate, static_configs: [{{targets: ["{side}"]}}]}}]\n')
        prometheus = f"127.0.0.1:{free_port()}"
        watching = Started("prometheus", f"--config.file={place}/prometheus.yml", f"--storage.tsdb.path={place}/data",
                           f"--web.listen-address={prometheus}", says="Server is ready")
        ends.callback(watching.end)

        begin = time.time()
        whole = During(begin, seconds)
        callers = [(secret, every, whole) for secret, every in keys]
        callers += [(greedy, 25.0, During(begin, seconds, (0.6, 0.8))), (None, 30.0, During(begin, seconds, (0.7, 0.9)))]
        threads = [threading.Thread(target=ask, args=(address, *caller, seed)) for seed, caller in enumerate(callers)]
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

        (said.into / "top.svg").write_text(plot.terminal(top))
        for file in sorted((TREE / "grafana/dashboards").glob("*.json")):
            drawn, empty = plot.draw(f"http://{prometheus}", json.loads(file.read_text()), begin, end, 10)
            (said.into / f"{file.stem}.svg").write_text(drawn)
            print(f"{file.stem}: {len(empty)} panels had nothing to show: {', '.join(empty) or 'none'}")
            if len(empty) > MOST_EMPTY:
                raise SystemExit(f"{file.stem} has more of them than it should")


if __name__ == "__main__":
    main()
