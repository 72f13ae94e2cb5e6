"""Rules for the profile `fleet` of the compose file: three gateways on one database behind HAProxy.

`consistent(file)` yields pairs of a mistake and whether it is absent; `proxy_findings()` what HAProxy says about its file.
"""

import ipaddress
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "deploy/compose"
TIMES = {"m": 60, "s": 1}
# The most connections of one gateway to the database.
OPENING = (ROOT / "crates/store/src/postgres/connection/open_failure.rs").read_text()
CONNECTIONS = int(re.search(r"CONNECTIONS_PER_GATEWAY: u32 = (\d+);", OPENING)[1])
# Debian installs it outside the path of ordinary users.
HAPROXY = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")

# Planted mistakes: a part of the finding, a text of the compose file and its replacement.
PLANTED = (
    ("trust another address", "ipv4_address: 10.247.80.2", "ipv4_address: 10.247.80.3"),
    ("proxy's address", "ip_range: 10.247.80.8/29", "ip_range: 10.247.80.0/29"),
    ("share a data directory", "replica-3:/var/lib", "replica-2:/var/lib"),
    ("takes longer", "stop_grace_period: 75s\n  ulimits", "stop_grace_period: 60s\n  ulimits"),
    ("another database", "postgresql://scoregate_owner@database/scoregate", "postgresql://scoregate_owner@database/other"),
    ("role of the gateways", "postgresql://scoregate_owner@", "postgresql://gateway@"),
    ("do not wait", "    tables-upgrade:\n      condition", "    tables:\n      condition"),
    ("is reached by", "networks: [inside]\n    environment:\n      POSTGRES", "networks: [inside, outside]\n    environment:\n      POSTGRES"),
    ("does not reach Prometheus", "{aliases: [prometheus]}", "{aliases: [other]}"),
    ("another address", "127.0.0.1:9093:9093", "127.0.0.1:9093:9094"),
    ("those of another profile", "target: /etc/prometheus/targets.yml", "target: /etc/prometheus/other.yml"),
    ("has other secrets", "secrets: [admin-token, database-gateway-password]", "secrets: [admin-token]"),
)


def seconds(duration):
    return sum(int(number) * TIMES[unit] for number, unit in re.findall(r"(\d+)([ms])", duration))


def mounts(service):
    return {volume["target"]: volume for volume in service.get("volumes", [])}


def settings():
    return tomllib.loads((COMPOSE / "fleet.toml").read_text())


def replicas(file):
    return {name: service for name, service in file["services"].items() if re.fullmatch(r"gateway-\d", name)}


def consistent(file):
    services, gateways = file["services"], replicas(file)
    yield from of_gateways(file, gateways)
    yield from of_proxy(file, gateways)
    yield from of_database(services, gateways)
    published = [port["published"] for service in services.values() for port in service.get("ports", [])]
    yield "two services publish the same port", len(set(published)) == len(published)
    networks = {
        "proxy": {"outside", "front"},
        "database": {"inside"},
        "backend": {"inside"},
        "tables": {"inside"},
        "tables-upgrade": {"inside"},
    }
    networks |= {name: {"front", "inside", "monitoring"} for name in gateways}
    for name, expected in networks.items():
        found = set(services[name]["networks"])
        yield f"{name} is reached by the networks {sorted(found)}, expected {sorted(expected)}", found == expected
    for name in ("front", "inside"):
        yield f"the network {name} has access to the outside", file["networks"][name].get("internal") is True


def of_gateways(file, gateways):
    its = settings()
    dockerfile = (ROOT / "deploy/container/Dockerfile").read_text()
    path = re.search(r"SCOREGATE_CONFIG=(\S+)", dockerfile)[1]
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    yield "there are not three gateways", len(gateways) == 3
    yield "store.gateways is below the number of gateways", its["store"]["gateways"] >= len(gateways)
    own = [mounts(service)[its["data_dir"]] for service in gateways.values()]
    yield "gateways share a data directory", len({volume["source"] for volume in own}) == len(gateways)
    yield "a data directory is not a volume", all(volume["type"] == "volume" for volume in own)
    for name, service in gateways.items():
        yield f"{name} has other settings", mounts(service)[path]["source"] == str(COMPOSE / "fleet.toml")
        needed = 2 * seconds(its["server"].get("shutdown_timeout", "30s")) + 2 * seconds(its["store"].get("timeout", "2s")) + 5
        yield f"{name}: a graceful shutdown takes longer, up to {needed} s", seconds(service["stop_grace_period"]) >= needed
        secrets = {f"/run/secrets/{secret['source']}" for secret in service.get("secrets", [])}
        yield f"{name} has other secrets than its settings", secrets == {its["admin"]["token_file"], its["store"]["password_file"]}
        yield f"{name} publishes a port", "ports" not in service
        yield f"{name} has no health check", "healthcheck" not in service and "HEALTHCHECK" in dockerfile
        after = service["depends_on"]
        ready = after.get("tables-upgrade", {}).get("condition") == "service_completed_successfully"
        yield f"{name}: gateways do not wait for the tables", ready
    for name, service in file["services"].items():
        if service["image"].startswith("scoregate"):
            same = service["image"] == f"scoregate:{version}" and service["build"]["args"]["VERSION"] == version
            yield f"{name} has another version", same and service["build"]["dockerfile"] == "deploy/container/Dockerfile"


def of_proxy(file, gateways):
    its, proxy = settings(), file["services"]["proxy"]
    address = proxy["networks"]["front"]["ipv4_address"]
    yield "the gateways trust another address than the proxy's", its["proxies"]["trusted"] == [address]
    (pool,) = file["networks"]["front"]["ipam"]["config"]
    subnet, given = ipaddress.ip_network(pool["subnet"]), ipaddress.ip_network(pool["ip_range"])
    free = ipaddress.ip_address(address) in subnet and ipaddress.ip_address(address) not in given
    yield "another container may get the proxy's address", free
    (port,) = proxy["ports"]
    text = (COMPOSE / "haproxy.cfg").read_text()
    yield "the proxy listens on another port", f"bind :{port['target']}\n" in text
    public, side = (listen.rsplit(":")[-1] for listen in (its["listen"], its["admin"]["listen"]))
    servers = dict(re.findall(r"^    server (\S+) (\S+)$", text, re.MULTILINE))
    yield "the proxy has other servers", servers == {name: f"{name}:{public}" for name in gateways}
    yield "the proxy does not check the side port", f"check port {side} " in text and " uri /readyz " in text
    stop = seconds(re.search(r"hard-stop-after (\w+)", text)[1])
    yield "the proxy's stop takes longer", seconds(proxy["stop_grace_period"]) >= stop + 5
    mounted = mounts(proxy)["/usr/local/etc/haproxy/haproxy.cfg"]["source"]
    yield "the proxy has another configuration", mounted == str(COMPOSE / "haproxy.cfg")


def of_database(services, gateways):
    store, roles = settings()["store"], (COMPOSE / "roles.sql").read_text()
    user, address = re.fullmatch(r"postgresql://(\w+)@(.+)", store["url"]).groups()
    host, name = address.split("/")
    yield "the settings name another host", host == "database"
    yield "the script creates another database", f"CREATE DATABASE {name} " in roles
    limit = re.search(rf"CREATE ROLE {user} .* CONNECTION LIMIT (\d+);", roles)
    yield "the connection limit is too low for a restart", limit and int(limit[1]) >= 2 * CONNECTIONS * len(gateways)
    for service, command in (("tables", "init"), ("tables-upgrade", "upgrade")):
        environment = services[service]["environment"]
        owner, of_owner = re.fullmatch(r"postgresql://(\w+)@(.+)", environment["SCOREGATE_STORE_URL"]).groups()
        yield f"{service} uses another database", of_owner == address
        yield f"{service} has the role of the gateways", owner != user and f"CREATE ROLE {owner} " in roles
        yield f"{service} runs another command", services[service]["command"] == ["store", command, "--runtime-role", user]
        yield f"{service} is restarted without an end", services[service]["restart"].startswith("on-failure:")
    after = {name: services[name]["depends_on"] for name in ("tables", "tables-upgrade")}
    yield "the tables do not wait for the database", after["tables"]["database"]["condition"] == "service_healthy"
    yield "the upgrade comes first", after["tables-upgrade"]["tables"]["condition"] == "service_completed_successfully"
    database = services["database"]
    yield "the database's health is checked by its socket", "--host" in database["healthcheck"]["test"]
    yield "the database runs as root", database["user"] == "postgres"
    yield "the database's data is not on a volume", mounts(database)["/var/lib/postgresql/data"]["type"] == "volume"


def proxy_findings():
    """Yields the problems that HAProxy finds in its file, and whether it would miss a planted one."""
    text = (COMPOSE / "haproxy.cfg").read_text()

    def checked(text):
        with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
            file.write(text)
            file.flush()
            return subprocess.run([HAPROXY, "-c", "-f", file.name], capture_output=True, text=True)

    result = checked(text)
    # The names of the gateways exist only in the network of Compose.
    warnings = [line for line in result.stderr.splitlines() if "[WARNING]" in line and "could not resolve" not in line]
    if result.returncode or warnings:
        yield f"haproxy -c: {result.stderr}"
    if checked(text.replace("retry-on", "retry-onn")).returncode == 0:
        yield "haproxy -c does not detect an unknown keyword"
