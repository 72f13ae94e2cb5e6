"""Runs a real Alertmanager with the configuration of the compose file and with that of the chart: the alert of two gateways is
one notification to the receiver `page`, and another alert one to `ticket`.

    notifications.py

Only the addresses of the receivers and the wait for further alerts of a group are replaced.
"""

import contextlib
import http.server
import json
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request

import yaml

import compose
import manifests

# A notification that does not arrive fails the check.
PATIENCE = 60
ALERTS = [
    {"alertname": "ScoregateDown", "job": "scoregate", "instance": "gateway-1:9464", "severity": "page"},
    {"alertname": "ScoregateDown", "job": "scoregate", "instance": "gateway-2:9464", "severity": "page"},
    {"alertname": "ScoregatePanics", "job": "scoregate", "instance": "gateway-1:9464", "severity": "ticket"},
]
EXPECTED = {("/page", ("gateway-1:9464", "gateway-2:9464")), ("/ticket", ("gateway-1:9464",))}


class Receiver(http.server.BaseHTTPRequestHandler):
    """A receiver of webhooks."""

    def do_POST(self):
        alerts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["alerts"]
        self.server.received.put((self.path, tuple(sorted(alert["labels"]["instance"] for alert in alerts))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def receiver():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.received = queue.Queue()
    threading.Thread(target=server.serve_forever).start()
    yield server
    server.shutdown()


def configurations():
    """The configurations by name."""
    (file, _) = compose.read_by_compose(compose.FILE.read_text())
    service = file["services"]["alertmanager"]
    path = dict(word.split("=") for word in service["command"])["--config.file"]
    yield "compose", yaml.safe_load(compose.located(service, path).read_text())
    yield "chart", manifests.alertmanager(manifests.built("examples/production.yaml"))


def notified(configuration):
    """The notifications of the alerts."""
    with receiver() as server, tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "alertmanager.yml"
        file.write_text(yaml.safe_dump(configuration))
        subprocess.run(["amtool", "check-config", file], stdout=subprocess.DEVNULL, check=True)
        for one in configuration["receivers"]:
            one["webhook_configs"] = [{"url": f"http://127.0.0.1:{server.server_port}/{one['name']}"}]
        configuration["route"]["group_wait"] = "1s"
        file.write_text(yaml.safe_dump(configuration))
        arguments = [f"--config.file={file}", f"--storage.path={directory}/data", "--web.listen-address=127.0.0.1:0", "--cluster.listen-address="]
        process = subprocess.Popen(["prometheus-alertmanager", *arguments], stderr=subprocess.PIPE, text=True)
        try:
            log = iter(process.stderr.readline, "")
            address = next(found[1] for line in log if (found := re.search(r"address=(127\.0\.0\.1:\d+)", line)))
            threading.Thread(target=process.stderr.read).start()
            body = json.dumps([{"labels": labels} for labels in ALERTS]).encode()
            request = urllib.request.Request(f"http://{address}/api/v2/alerts", body, {"Content-Type": "application/json"})
            urllib.request.urlopen(request, timeout=PATIENCE).close()
            return {server.received.get(timeout=PATIENCE) for _ in EXPECTED}
        finally:
            process.terminate()
            process.wait()


def main():
    names = []
    for name, configuration in configurations():
        found = notified(configuration)
        if found != EXPECTED:
            sys.exit(f"{name}: the notifications are {found}")
        names.append(name)
    shutil.rmtree(manifests.packaged().parent)
    print(f"notifications: with the configurations of {' and '.join(names)}, {len(ALERTS)} alerts are {len(EXPECTED)} notifications")


if __name__ == "__main__":
    main()
