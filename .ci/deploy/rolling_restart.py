"""Replays rolling restarts with real processes: three gateways on a PostgreSQL server behind HAProxy, under load, with the
files, signals and timings of the compose file and of the Helm chart. No request may fail, each gateway must stop
within its grace period, and the units granted for the day must be those that callers got.

    rolling_restart.py BINARY

- Compose sends SIGTERM to one gateway after the other, and HAProxy runs with its file, in which addresses are replaced.
- Kubernetes starts a new pod with an empty data directory, then deletes an old one and waits for the preStop sleep before
  SIGTERM. The load balancer notices the deletion only in the middle of the sleep, and repeats no request.
- The same without the sleep must fail requests: otherwise this would prove nothing.
"""

import collections
import contextlib
import csv
import datetime
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
import threading
import time

import compose
import compose_fleet
import manifests
from manifest_rules import one_of

COMPOSE = compose_fleet.COMPOSE
CALLERS = 6
# Pause between the requests of a caller: the load is steady, and does not use up the machine.
PAUSE = 0.01
# Requests on one connection, so that new ones are opened all the time.
PER_CONNECTION = 20
# Limit of waits that have no limit of their own, in seconds.
PATIENCE = 60
NOBODY = "65534"


def until(what, condition):
    """Waits until the condition holds, and returns its value."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.02)
    return value


def run(arguments, **options):
    done = subprocess.run([str(one) for one in arguments], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{arguments}: {done.stdout}{done.stderr}")
    return done.stdout


class Process:
    """A process with a log, killed at the end."""

    def __init__(self, stack, log, arguments, **options):
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen([str(one) for one in arguments], stdout=subprocess.DEVNULL, stderr=output, **options)
        stack.callback(self.kill)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def logged(self, pattern, start=0):
        def found():
            if self.process.poll() is not None:
                sys.exit(f"{self.process.args} ended:\n{self.log.read_text()[start:]}")
            return re.search(pattern, self.log.read_text()[start:])

        return until(f"{pattern} in {self.log}", found)

    def stop(self, name, within):
        """Sends SIGTERM and waits for the end, which must be orderly. Returns the seconds."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            sys.exit(f"{name} did not stop within {within} s")
        if code:
            sys.exit(f"{name} exited with code {code}:\n{self.log.read_text()}")
        return time.monotonic() - start


class Site:
    """The services of the profile `fleet`, on loopback and Unix sockets."""

    def __init__(self, binary, directory, stack):
        self.binary, self.directory, self.stack = binary, directory, stack
        self.secrets = directory / "secrets"
        (directory / "secrets.sh").write_text((COMPOSE / "secrets.sh").read_text())
        run(["sh", directory / "secrets.sh"])
        self.start_database()
        self.start_backend()
        self.keys = [self.create(tier) for tier in ("pro", "teams")]
        self.gateways = {name: Gateway(self, name) for name in ("gateway-1", "gateway-2", "gateway-3")}
        # The pod of the surge. It has its addresses from now on.
        self.surge = Gateway(self, "gateway-4")
        self.surge.running.stop("gateway-4", self.grace)

    def start_database(self):
        """The database as its image starts it: a superuser with a password, and the script that creates the roles."""
        (versions,) = [sorted(pathlib.Path("/usr/lib/postgresql").iterdir(), key=lambda path: int(path.name))]
        binaries, home = versions[-1] / "bin", self.directory / "database"
        home.mkdir()
        password = self.secrets / "database-password"
        (home / "password").write_text(password.read_text())
        user = []
        if os.getuid() == 0:
            run(["chown", "-R", NOBODY, home])
            user = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
        options = ["--auth=scram-sha-256", "--username=postgres", f"--pwfile={home}/password", "--no-sync", "-D", home / "data"]
        run([*user, binaries / "initdb", *options], cwd="/")
        settings = ["-c", "listen_addresses=", "-k", home, "-c", "fsync=off"]
        server = Process(self.stack, self.directory / "database.log", [*user, binaries / "postgres", "-D", home / "data", *settings], cwd="/")
        server.logged("ready to accept connections")
        self.psql = [binaries / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", home, "-U", "postgres"]
        self.superuser = {"PATH": os.environ["PATH"], "PGPASSWORD": password.read_text()}
        roles = (COMPOSE / "roles.sql").read_text().replace("/run/secrets", str(self.secrets))
        run(self.psql, input=roles, env=self.superuser)
        self.host = str(home).replace("/", "%2F")
        (fleet, _) = compose.read_by_compose(compose.FILE.read_text(), "--profile", "fleet")
        for name in ("tables", "tables-upgrade"):
            service = fleet["services"][name]
            environment = {name: self.located(value) for name, value in service["environment"].items()}
            run([self.binary, *service["command"]], env=environment)
        self.grace = compose_fleet.seconds(fleet["services"]["gateway-1"]["stop_grace_period"])

    def start_backend(self):
        """The built-in backend, with a day of runs."""
        scores = dict.fromkeys(["correctness", "spec", "codeQuality", "efficiency", "stability", "refusal", "recovery"], 0.9)
        trials = [{"scores": scores, "latencyMs": 4200, "cost": 0.031}]
        model = {"id": "atlas", "name": "Atlas", "provider": "meridian", "priceInput": 5, "priceOutput": 20}
        now = datetime.datetime.now(datetime.timezone.utc)
        times = [now - datetime.timedelta(hours=hours) for hours in range(2, 26)]
        runs = [
            {"id": f"r-{number}", "model": model, "suite": "coding", "time": f"{at:%Y-%m-%dT%H:%M:%SZ}", "trials": trials}
            for number, at in enumerate(times)
        ]
        archive = ["--archive", self.directory / "runs.db"]
        run([self.binary, "scoring", "import", "-", *archive], input="\n".join(map(json.dumps, runs)))
        command = [self.binary, "scoring", "serve", *archive, "--listen", "127.0.0.1:0"]
        served = Process(self.stack, self.directory / "backend.log", command).logged(r"serving.*?127\.0\.0\.1:(\d+)")
        self.backend = f"http://127.0.0.1:{served[1]}/api/v1"

    def located(self, text):
        return text.replace("/run/secrets", str(self.secrets)).replace("@database/", f"@{self.host}/")

    def environment(self):
        """The settings that differ: addresses, and the path of the secrets."""
        its = compose_fleet.settings()
        return {
            "SCOREGATE_CONFIG": str(COMPOSE / "fleet.toml"),
            "SCOREGATE_STORE_URL": self.located(its["store"]["url"]),
            "SCOREGATE_STORE_PASSWORD_FILE": self.located(its["store"]["password_file"]),
            "SCOREGATE_ADMIN_TOKEN_FILE": self.located(its["admin"]["token_file"]),
            "SCOREGATE_UPSTREAM_URL": self.backend,
            "SCOREGATE_PROXIES_TRUSTED": "127.0.0.1",
        }

    def create(self, tier):
        limits = ["--minute", "1000000", "--day", "1000000"]
        created = run([self.binary, "keys", "create", "--name", tier, "--tier", tier, *limits, "--json"], env=self.environment())
        return json.loads(created)["key"]

    def number(self, query):
        return int(run([*self.psql, "scoregate"], input=query, env=self.superuser))

    def granted(self):
        """Units granted and not returned, for all days."""
        return self.number("SELECT sum(granted) FROM scoregate.ledger_days")

    def connections(self):
        return self.number("SELECT count(*) FROM pg_stat_activity WHERE usename = 'gateway'")


def lasting_address(stack):
    """An address that no other program gets until the end: a socket that does not listen keeps the port."""
    reserved = stack.enter_context(socket.socket())
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return f"127.0.0.1:{reserved.getsockname()[1]}"


class Gateway:
    """One gateway, with the same addresses after a restart."""

    def __init__(self, site, name):
        self.site, self.name = site, name
        self.public, self.side = lasting_address(site.stack), lasting_address(site.stack)
        self.start()

    def start(self, is_new=False):
        if is_new:
            shutil.rmtree(self.site.directory / self.name)
        own = {
            "SCOREGATE_LISTEN": self.public,
            "SCOREGATE_ADMIN_LISTEN": self.side,
            "SCOREGATE_DATA_DIR": str(self.site.directory / self.name),
        }
        log = self.site.directory / f"{self.name}.log"
        before = log.stat().st_size if log.exists() else 0
        self.running = Process(self.site.stack, log, [self.site.binary, "serve"], env=self.site.environment() | own)
        line = self.running.logged(r'.*"serving".*\n', before)[0]
        self.public, self.side = (re.search(rf'"{name}":"([^"]+)"', line)[1] for name in ("public", "side"))


class Proxy:
    """HAProxy with its file in deploy/, on the addresses here. `repeats`: whether requests without a response are repeated."""

    def __init__(self, site, name, repeats=True):
        text = (COMPOSE / "haproxy.cfg").read_text()
        self.socket = site.directory / f"{name}.sock"
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        site.stack.callback(listener.close)
        self.port = listener.getsockname()[1]
        text = text.replace("bind :8080", f"bind fd@{listener.fileno()}")
        text = text.replace("global\n", f"global\n    stats socket {self.socket} level admin\n", 1)
        text = re.sub("    server .*\n", "", text)
        for gateway in (*site.gateways.values(), site.surge):
            text += f"    server {gateway.name} {gateway.public} port {gateway.side.rsplit(':')[-1]}\n"
        if not repeats:
            text = re.sub(r"retries \d+", "retries 0", re.sub(r" *(retry-on|option redispatch|http-request disable-l7).*\n", "", text))
        file = site.directory / f"{name}.cfg"
        file.write_text(text)
        Process(site.stack, site.directory / f"{name}.log", [compose_fleet.HAPROXY, "-db", "-f", file], pass_fds=[listener.fileno()])
        until("HAProxy", self.socket.exists)
        for gateway in site.gateways:
            self.reports(gateway, "UP")
        # Until its first checks HAProxy assumes that every server is up.
        self.reports(site.surge.name, "DOWN")

    def ask(self, command):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.socket))
            connection.sendall(f"{command}\n".encode())
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()

    def reports(self, name, state):
        """Waits until the health checks of the gateway have this result."""

        def found():
            servers = csv.DictReader(self.ask("show stat").removeprefix("# ").splitlines())
            return [server["status"] for server in servers if (server["pxname"], server["svname"]) == ("gateways", name)] == [state]

        until(f"{name} is {state}", found)


class Load:
    """Callers that send requests until the end of the block, and count statuses and errors."""

    def __init__(self, proxy, keys):
        self.port, self.keys, self.counts, self.stopped = proxy.port, keys, collections.Counter(), threading.Event()
        self.refusals = []

    def __enter__(self):
        self.threads = [threading.Thread(target=self.call, args=(self.keys[n % len(self.keys)],)) for n in range(CALLERS)]
        for thread in self.threads:
            thread.start()
        until("requests are answered", lambda: self.counts[200] > 50)
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join()

    def call(self, key):
        while not self.stopped.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            for _ in range(PER_CONNECTION):
                try:
                    connection.request("GET", "/api/v1/models", headers={"X-API-Key": key})
                    response = connection.getresponse()
                    body = response.read()
                    self.counts[response.status] += 1
                    if response.status != 200:
                        self.refusals.append(f"{response.status}: {body.decode()}")
                except (OSError, http.client.HTTPException) as error:
                    self.counts[type(error).__name__] += 1
                    break
                if self.stopped.wait(PAUSE):
                    break
            connection.close()

    def failed(self):
        return {what: count for what, count in self.counts.items() if what != 200}


def restart_as_compose(site, proxy):
    """SIGTERM without notice. The new process starts only after the proxy has found out that the old one stopped."""
    longest = 0
    for gateway in site.gateways.values():
        longest = max(longest, gateway.running.stop(gateway.name, site.grace))
        proxy.reports(gateway.name, "DOWN")
        gateway.start()
        proxy.reports(gateway.name, "UP")
    return longest


def restart_as_kubernetes(site, proxy, pod):
    """A rollout with a surge of one pod, which then takes the place of the next one."""
    pause, grace = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"], pod["terminationGracePeriodSeconds"]
    longest, spare = 0, site.surge
    for gateway in site.gateways.values():
        spare.start(is_new=True)
        proxy.ask(f"set server gateways/{spare.name} state ready")
        proxy.reports(spare.name, "UP")
        time.sleep(pause / 2)
        proxy.ask(f"set server gateways/{gateway.name} state drain")
        time.sleep(pause / 2)
        longest, spare = max(longest, pause + gateway.running.stop(gateway.name, grace - pause)), gateway
    site.gateways = {one.name: one for one in (*site.gateways.values(), site.surge) if one is not spare}
    return longest


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    pod = one_of(manifests.built("examples/production.yaml"), "Deployment")["spec"]["template"]["spec"]
    wrong = []
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        directory = pathlib.Path(directory)
        directory.chmod(0o755)
        site = Site(binary, directory, stack)
        if (used := site.connections()) > compose_fleet.CONNECTIONS * len(site.gateways):
            wrong.append(f"{len(site.gateways)} gateways have {used} connections to the database")
        proxy = Proxy(site, "proxy")
        with Load(proxy, site.keys) as first:
            of_compose = restart_as_compose(site, proxy)
        direct = Proxy(site, "direct", repeats=False)
        with Load(direct, site.keys) as second:
            of_kubernetes = restart_as_kubernetes(site, direct, pod)
        with Load(direct, site.keys) as unprepared:
            restart_as_compose(site, direct)
        for name, load in (("compose", first), ("kubernetes", second)):
            wrong += [f"{name}: {load.counts}; {load.refusals[:3]}"] if load.failed() else []
        if not unprepared.failed():
            wrong.append("a stop without notice fails no request")
        delivered = sum(load.counts[200] for load in (first, second, unprepared))
        for gateway in site.gateways.values():
            gateway.running.stop(gateway.name, site.grace)
        if site.granted() != delivered:
            wrong.append(f"callers got {delivered} units, the database has granted {site.granted()}")
    if wrong:
        sys.exit("\n".join(wrong))
    print(
        f"rolling restarts: none of {first.counts[200]} requests failed in that of compose (longest stop {of_compose:.1f} s), "
        f"none of {second.counts[200]} in that of Kubernetes ({of_kubernetes:.1f} s with the preStop sleep), "
        f"{sum(unprepared.failed().values())} without notice; {delivered} units granted and delivered"
    )


if __name__ == "__main__":
    main()
