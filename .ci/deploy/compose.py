"""Checks both profiles of the compose file as Docker Compose parses it: mounted files exist, the addresses for Prometheus and
Grafana are consistent, and the gateways' settings are valid. The rules of the profile with several gateways are in
`compose_fleet.py`.

    compose.py BINARY

Requires a Python with the packages of `tools.txt`, but no daemon. The images themselves are not tested.
"""

import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import tomllib

import yaml

import compose_fleet
from compose_fleet import COMPOSE, ROOT, mounts, seconds

FILE = COMPOSE / "compose.yaml"


def read_by_compose(text, *options):
    """Returns the parsed file, or the error of Docker Compose."""
    tool = pathlib.Path(sys.executable).with_name("docker-compose")
    arguments = [tool, "--project-directory", COMPOSE, "--file", "-", *options, "config", "--format", "json"]
    result = subprocess.run(arguments, input=text, capture_output=True, text=True)
    return (json.loads(result.stdout), "") if result.returncode == 0 else (None, result.stderr.strip())


def hardened(name, service):
    """Checks of every container."""
    yield f"{name}: its root is writable", service.get("read_only") is True
    yield f"{name}: it has capabilities", service.get("cap_drop") == ["ALL"] and "cap_add" not in service
    yield f"{name}: it may gain privileges", "no-new-privileges:true" in service.get("security_opt", []) and "privileged" not in service
    yield f"{name}: {service['image']} has no version", re.search(r":v?\d+(\.\d+)+$", service["image"])
    for port in service.get("ports", []):
        yield f"{name}: a port is not bound to loopback", port.get("host_ip") == "127.0.0.1"
        yield f"{name}: a privileged port", int(port["published"]) >= 1024
    for target, volume in mounts(service).items():
        if volume["type"] == "bind":
            yield f"{name}: {target} is writable", volume.get("read_only") is True
            yield f"{name}: {volume['source']} does not exist", pathlib.Path(volume["source"]).exists()


def consistent(file):
    """Checks of one gateway: addresses, paths and ports that must be equal in several files."""
    services = file["services"]
    gateway = services["gateway"]
    settings = tomllib.loads((COMPOSE / "scoregate.toml").read_text())
    dockerfile = (ROOT / gateway["build"]["dockerfile"]).read_text()

    public = settings["listen"]
    yield "a port other than the public one is published", [f"0.0.0.0:{port['target']}" for port in gateway["ports"]] == [public]
    yield "the data directory is not a volume", mounts(gateway)[settings["data_dir"]]["type"] == "volume"
    yield "the image's configuration file is not mounted", re.search(r"SCOREGATE_CONFIG=(\S+)", dockerfile)[1] in mounts(gateway)
    yield "the health check is disabled", "healthcheck" not in gateway and "HEALTHCHECK" in dockerfile
    grace = seconds(settings["server"].get("shutdown_timeout", "30s"))
    yield "a graceful shutdown takes longer than stop_grace_period", seconds(gateway["stop_grace_period"]) >= 2 * grace + 5
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    yield "the image has another version", gateway["image"] == f"scoregate:{version}" and gateway["build"]["args"]["VERSION"] == version

    yield from monitored(file, {"gateway"}, settings, "prometheus", ROOT / "deploy/prometheus/targets.yml")
    yield from secrets_of(file, {settings["admin"]["token_file"]})


def monitored(file, gateways, settings, prometheus, targets_file):
    """Checks of the way from the gateways' side ports through Prometheus to Grafana."""
    services = file["services"]
    prometheus, grafana = services[prometheus], services["grafana"]
    scraping = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    read = [name for job in scraping["scrape_configs"] for one in job["file_sd_configs"] for name in one["files"]]
    yield "Prometheus reads other targets", read == ["targets.yml"]
    replaced = mounts(prometheus).get("/etc/prometheus/targets.yml", {"source": str(ROOT / "deploy/prometheus/targets.yml")})
    yield "the targets of Prometheus are those of another profile", replaced["source"] == str(targets_file)
    targets = [target for group in yaml.safe_load(targets_file.read_text()) for target in group["targets"]]
    port = settings["admin"]["listen"].rsplit(":")[-1]
    yield "Prometheus does not scrape every side port", sorted(targets) == sorted(f"{name}:{port}" for name in gateways)
    yield "the side port refuses the host name that Prometheus uses", set(gateways) <= set(settings["admin"]["hosts"])
    alias = prometheus["networks"]["monitoring"] or {}
    yield "Grafana does not reach Prometheus", prometheus is services.get("prometheus") or "prometheus" in alias["aliases"]
    configured = next(word.split("=")[1] for word in prometheus["command"] if word.startswith("--config.file="))
    yield "Prometheus uses another configuration", located(prometheus, configured) == ROOT / "deploy/prometheus/prometheus.yml"
    yield "Prometheus loads no rules", scraping["rule_files"] == ["rules/*.yml"]
    storage = next(word.split("=")[1] for word in prometheus["command"] if word.startswith("--storage.tsdb.path="))
    yield "the storage of Prometheus is not a volume", mounts(prometheus)[storage]["type"] == "volume"

    manager = services["alertmanager"]
    sent_to = [target for group in yaml.safe_load((ROOT / "deploy/prometheus/alertmanagers.yml").read_text()) for target in group["targets"]]
    (port,) = manager["ports"]
    yield "Prometheus sends alerts to another address", sent_to == [f"alertmanager:{port['target']}"]
    options = dict(word.split("=") for word in manager["command"])
    yield "Alertmanager uses another configuration", located(manager, options["--config.file"]) == ROOT / "deploy/prometheus/alertmanager.yml"
    yield "the storage of Alertmanager is not a volume", mounts(manager)[options["--storage.path"]]["type"] == "volume"

    provisioning = ROOT / "grafana/provisioning"
    path = grafana["environment"]["GF_PATHS_PROVISIONING"]
    (target, mounted), = ((target, one) for target, one in mounts(grafana).items() if one["type"] == "bind")
    yield "Grafana uses another provisioning directory", f"{mounted['source']}{path.removeprefix(target)}" == str(provisioning)
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"]
    yield "Grafana uses another data source", source["url"] == "http://prometheus:9090" and source["uid"] == "prometheus"
    (provider,) = yaml.safe_load((provisioning / "dashboards/scoregate.yml").read_text())["providers"]
    shown = provider["options"]["path"]
    yield "Grafana uses other dashboards", shown.startswith(target) and f"{mounted['source']}{shown.removeprefix(target)}" == str(ROOT / "grafana/dashboards")
    common = [set(service["networks"]) for service in (prometheus, manager, grafana, *(services[name] for name in gateways))]
    yield "the services cannot reach each other", all("monitoring" in networks for networks in common) and file["networks"]["monitoring"]["internal"]


def located(service, path):
    """The file of the repository that a container has at this path."""
    directory, name = os.path.split(path)
    return pathlib.Path(mounts(service)[directory]["source"]) / name


def secrets_of(file, configured):
    """Checks that the mounted secrets are those that the settings name, and that the environment has none."""
    services = file["services"]
    named = {f"/run/secrets/{secret['source']}" for service in services.values() for secret in service.get("secrets", [])}
    variables = [(name, str(value)) for service in services.values() for name, value in service.get("environment", {}).items()]
    configured |= {value for name, value in variables if name.endswith("_FILE")}
    yield f"the mounted secrets are {sorted(named)}, the configured ones {sorted(configured)}", named == configured
    texts = [value for _, value in variables]
    yield "the environment contains a secret", not any(re.search("token|password", text) and "/run/secrets/" not in text for text in texts)


def secrets_and_settings(binary):
    """Runs the script that creates the secrets twice, and checks the settings with them by the program."""
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        script = directory / "secrets.sh"
        script.write_text((COMPOSE / "secrets.sh").read_text())
        created = []
        for _ in range(2):
            subprocess.run(["sh", script], check=True)
            created.append({file.name: file.read_text() for file in (directory / "secrets").iterdir()})
        yield "an existing secret is replaced", created[0] == created[1]
        yield "the created secrets are not those of the compose file", set(created[0]) == set(yaml.safe_load(FILE.read_text())["secrets"])
        yield "a secret is weak", len(set(created[0].values())) == len(created[0]) and all(re.fullmatch("[0-9a-f]{48}", text) for text in created[0].values())
        yield "other users can read the secrets", stat.S_IMODE((directory / "secrets").stat().st_mode) == 0o700
        for name in ("scoregate.toml", "fleet.toml"):
            settings = directory / name
            settings.write_text((COMPOSE / name).read_text().replace("/run/secrets", str(directory / "secrets")))
            result = subprocess.run([binary, "check", "--config", settings], env={}, capture_output=True, text=True)
            yield f"scoregate check of {name}: {result.stderr}", result.returncode == 0


def checks_of_fleet(fleet):
    yield from compose_fleet.consistent(fleet)
    settings = compose_fleet.settings()
    replicas = set(compose_fleet.replicas(fleet))
    yield from monitored(fleet, replicas, settings, "prometheus-fleet", COMPOSE / "targets.yml")
    # The scripts of the database's image read these, by path.
    read = set(re.findall(r"/run/secrets/[\w-]+", (COMPOSE / "roles.sql").read_text()))
    yield from secrets_of(fleet, read | {settings["admin"]["token_file"], settings["store"]["password_file"]})


def undetected(text):
    """Yields planted mistakes that are not detected, neither by Compose nor by the checks."""
    _, result = read_by_compose(text.replace("  read_only: true\n  cap", "  read_onlyy: true\n  cap"))
    if "read_onlyy" not in result:
        yield f"Docker Compose does not detect an unknown field: {result}"
    opened, _ = read_by_compose(text.replace("127.0.0.1:8080:8080", "8080:8080"))
    if all(is_so for _, is_so in hardened("gateway", opened["services"]["gateway"])):
        yield "a port outside loopback is not detected"
    for words, one, other in compose_fleet.PLANTED:
        assert one in text, one
        mistaken, result = read_by_compose(text.replace(one, other), "--profile", "fleet")
        found = [what for what, is_so in checks_of_fleet(mistaken) if not is_so] if mistaken else [result]
        if not any(words in what for what in found):
            yield f"a planted mistake is not detected: {words}: {found}"


def main():
    text, binary = FILE.read_text(), os.path.realpath(sys.argv[1])
    (single, result), (fleet, _) = read_by_compose(text), read_by_compose(text, "--profile", "fleet")
    if single is None:
        sys.exit(result)
    checks = [*consistent(single), *checks_of_fleet(fleet), *secrets_and_settings(binary)]
    services = single["services"] | fleet["services"]
    for name, service in services.items():
        checks += hardened(name, service)
    wrong = [*(what for what, is_so in checks if not is_so), *compose_fleet.proxy_findings(), *undetected(text)]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"compose: {len(services)} services in two profiles, {len(checks)} checks")


if __name__ == "__main__":
    main()
