#!/usr/bin/env python3
"""Makes the fixture of a release: make.py PROGRAM DIRECTORY [DAY], with libfaketime and sqlite3.

PROGRAM is the program of the release. DIRECTORY has its `scoregate.toml`, `environment`, `mapping.toml` and `commands`, and gets the rest.
The server runs at noon of the day before DAY and of DAY, before a backend of the same program. Without DAY it runs now: the
release 5844e98 ignores libfaketime. `clean.sql` is the store after a stop, `killed.sql` after more requests and a kill, `runs.sql` the archive, `documents.json` the stored documents, and
`expected.json` what the release said about them.
"""

import atexit
import base64
import calendar
import glob
import hashlib
import html
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

PROGRAM, DIRECTORY, DAY = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
START = calendar.timegm(time.strptime(DAY[0], "%Y-%m-%d")) + 43_200 if DAY else int(time.time())
FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")[0]
VARIABLES = dict(line.split("=", 1) for line in (DIRECTORY / "environment").read_text().split("\n") if line)
SIGN_UP = "sign_up = true" in (DIRECTORY / "scoregate.toml").read_text()
PLACE = pathlib.Path(tempfile.mkdtemp())
DATA, BACKEND = PLACE / "data", ("127.0.0.9", 4000)
TARGET = "/api/v1/models?period=24h"
moment = START


def environment():
    offset = moment - int(time.time())
    clock = {"LD_PRELOAD": FAKETIME, "FAKETIME": f"{offset:+}", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    return {**(clock if DAY else {}), **VARIABLES, "PATH": os.environ["PATH"]}


def run(*arguments, data=None):
    done = subprocess.run([PROGRAM, *arguments], env=environment(), input=data, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def keys(*arguments, data=None):
    place = ["--data-dir", str(DATA), "--config", str(DIRECTORY / "scoregate.toml"), "--json"]
    return json.loads(run("keys", *arguments, *place, data=data))


def instant(at):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def started(*arguments, address):
    with open(PLACE / "log", "ab") as log:
        program = subprocess.Popen([PROGRAM, *arguments], env=environment(), stdout=log, stderr=log)
    atexit.register(program.kill)
    for _ in range(200):
        try:
            socket.create_connection(address).close()
            return program
        except OSError:
            assert program.poll() is None, (PLACE / "log").read_text()
            time.sleep(0.1)
    raise SystemExit("it does not accept connections")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


class Server:
    def __init__(self):
        self.address = ("127.0.0.1", free_port())
        side = f"127.0.0.1:{free_port()}"
        place = ["--listen", "127.0.0.1:%d" % self.address[1], "--admin-listen", side, "--data-dir", str(DATA)]
        config = ["--config", str(DIRECTORY / "scoregate.toml")]
        self.program = started("serve", *config, *place, address=self.address)
        self.side = ("127.0.0.1", int(side.rsplit(":")[-1]))
        self.cookies = {}

    def request(self, method, target, headers={}, body=None, address=None):
        connection = http.client.HTTPConnection(*(address or self.address), timeout=30)
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        return response, response.read()

    def status(self, key, target=TARGET):
        return self.request("GET", target, {"X-API-Key": key})[0].status

    def spend(self, key, times):
        statuses = [self.status(key) for _ in range(times)]
        assert statuses == [200] * times, statuses

    def settings(self):
        bearer = {"Authorization": "Bearer a token of a fixture"}
        response, body = self.request("GET", "/v1/settings", bearer, address=self.side)
        assert response.status == 200, body
        return json.loads(body)["settings"]

    def page(self, method, target, fields=None):
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        if fields is not None:
            hidden = [name for name in ("csrf", "existing") if f'name="{name}"' in self.text]
            fields = {**fields, **{name: self.hidden(name) for name in hidden}}
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        response, body = self.request(method, target, headers, fields and urllib.parse.urlencode(fields))
        for line in response.headers.get_all("set-cookie") or []:
            self.cookies.update([line.split(";")[0].split("=", 1)])
        self.text = body.decode()
        return response

    def hidden(self, name):
        tag = next(tag for tag in re.findall("<input [^>]*>", self.text) if f'name="{name}"' in tag)
        return html.unescape(re.search('value="([^"]*)"', tag)[1])

    def sign_up(self, email):
        self.page("GET", "/account/sign-in")
        assert self.page("POST", "/account/sign-in", {"email": email}).status == 200
        [mail] = sql(DATA / "scoregate.db", "SELECT text FROM mail_queue")
        token = re.search(r"/account/confirm\?token=([^\s]+)", mail)[1]
        self.page("GET", f"/account/confirm?token={token}")
        terms = {"accept_terms": "yes", "terms_version": self.hidden("terms_version")}
        assert self.page("POST", "/account/confirm", {"token": token, **terms}).status == 303
        self.page("GET", "/account")
        assert self.page("POST", "/account/applications", {"name": "Dashboard"}).status == 200
        return re.search("sg_test_[A-Za-z0-9]+", self.text)[0]

    def end(self, how):
        self.program.send_signal(how)
        self.program.wait()


def sql(file, statement):
    done = subprocess.run(["sqlite3", str(file), statement], capture_output=True, text=True, check=True)
    return [done.stdout]


def dump(file, to):
    numbers = [f"PRAGMA {name} = {sql(file, 'PRAGMA ' + name)[0].strip()};\n" for name in ("application_id", "user_version")]
    (DIRECTORY / to).write_text("".join(numbers) + sql(file, ".dump")[0])


def runs():
    for day in (START - 86_400, START):
        for model in ("atlas", "boreas"):
            for number, suite in enumerate(("coding", "reasoning", "tooling")):
                for hour in range(2, 5):
                    at = instant(day - hour * 3_600 + number)
                    axes = ["correctness", "spec", "codeQuality", "efficiency", "stability", "refusal", "recovery"]
                    scores = {axis: round(0.5 + (hour * 7 + index + len(model)) % 10 / 25, 2) for index, axis in enumerate(axes)}
                    trial = {"scores": scores, "latencyMs": 1_000 + hour, "cost": 0.03}
                    description = {"id": model, "name": model.title(), "provider": "meridian", "priceInput": 5, "priceOutput": 20}
                    name = f"{model}-{suite}-{at}"
                    yield json.dumps({"id": name, "model": description, "suite": suite, "time": at, "trials": [trial]})


def listed():
    """The applications, without the field that only a running server knows."""
    applications = keys("list")["applications"]
    return [{name: value for name, value in one.items() if name != "used_today"} for one in applications]


def create(name, tier, *more):
    issued = keys("create", "--name", name, "--tier", tier, *more)
    return issued["key"], issued["application"]["id"]


DATA.mkdir(mode=0o700)
run("scoring", "import", "-", "--archive", str(DATA / "runs.db"), data="\n".join(runs()))
moment = START - 86_400
serving = ["scoring", "serve", "--archive", str(DATA / "runs.db"), "--listen", "127.0.0.9:4000"]
backend = started(*serving, address=BACKEND)
server = Server()
weather, weather_id = create("Weather site", "pro", "--contact", "ops@example.org")
own, own_id = create("Own limits", "free")
keys("set-limits", own_id, "--minute", "100", "--day", "20")
rotated, rotated_id = create("Rotated", "pro", "--note", "a note")
revoked, revoked_id = create("Revoked", "teams")
expired, _ = create("Expired", "pro", "--expires-at", instant(START + 600))
moved, moved_id = create("Moved", "free")
foreign = "key-of-another-system"
line = {"sha256": hashlib.sha256(foreign.encode()).hexdigest(), "name": "Imported", "tier": "pro"}
keys("import", "-", "--format", "jsonl", data=json.dumps(line) + "\n")
before = {weather: 5, own: 2, revoked: 1}
for key, times in before.items():
    server.spend(key, times)
server.end(signal.SIGTERM)
backend.terminate()

moment = START
backend.wait()
backend = started(*serving, address=BACKEND)
server = Server()
newer = keys("rotate", rotated_id, "--overlap-hours", "24")["key"]
replaced, newest = moved, keys("rotate", moved_id, "--overlap-hours", "0")["key"]
keys("set-tier", moved_id, "teams")
keys("revoke", revoked_id)
spent = {weather: 7, own: 13, rotated: 3, newer: 2, newest: 4, foreign: 1, expired: 2}
account = None
if SIGN_UP:
    spent[server.sign_up("ann@example.org")] = 6
    account = {"cookies": server.cookies, "email": "ann@example.org"}
for key, times in spent.items():
    server.spend(key, times)
for target in ("/api/v1/models/atlas", "/api/v1/index"):
    assert server.status(weather, target) == 200
spent[weather] += 2
if not DAY:
    spent = {key: times + before.get(key, 0) for key, times in spent.items()}
settings = [one for one in server.settings() if one["from"] != "flag"]
# Stored documents are written in the background, and so is the last use of keys.
time.sleep(35)
server.end(signal.SIGTERM)
dump(DATA / "scoregate.db", "clean.sql")
dump(DATA / "runs.db", "runs.sql")
exported = run("scoring", "export", "--archive", str(DATA / "runs.db"))
documents = {file.name: base64.b64encode(file.read_bytes()).decode() for file in (DATA / "documents").iterdir()}
(DIRECTORY / "documents.json").write_text(json.dumps(documents, indent=0, sort_keys=True) + "\n")
clean = listed()
audit = keys("audit")["records"]

moment = START + 300
server = Server()
server.spend(weather, 3)
server.end(signal.SIGKILL)
shutil.copytree(DATA, PLACE / "copy", ignore=shutil.ignore_patterns("*.sock"))
dump(PLACE / "copy" / "scoregate.db", "killed.sql")
killed = listed()
backend.terminate()

refused = {replaced: "invalid_api_key", revoked: "invalid_api_key", expired: "invalid_api_key"}
expected = {
    "at": instant(START + 3_600),
    "spent": spent,
    "refused": refused,
    "account": account,
    "clean": clean,
    "killed": killed,
    "audit": audit,
    "runs": [json.loads(line) for line in exported.splitlines()],
    "settings": settings,
}
(DIRECTORY / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
backend.wait()
shutil.rmtree(PLACE)
