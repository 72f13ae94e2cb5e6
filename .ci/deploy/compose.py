"""Checks the compose file as Docker Compose parses it: mounted files exist, the addresses for Prometheus and Grafana are
consistent, and the gateway's settings are valid.

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

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "deploy/compose"
FILE = COMPOSE / "compose.yaml"
TIMES = {"m": 60, "s": 1}


def read_by_compose(text):
    """Returns the parsed file, or the error of Docker Compose."""
    tool = pathlib.Path(sys.executable).with_name("docker-compose")
    arguments = [tool, "--project-directory", COMPOSE, "--file", "-", "config", "--format", "json"]
    result = subprocess.run(arguments, input=text, capture_output=True, text=True)
    return (json.loads(result.stdout), "") if result.returncode == 0 else (None, result.stderr.strip())


def seconds(duration):
    return sum(int(number) * TIMES[unit] for number, unit in re.findall(r"(\d+)([ms])", duration))


def mounts(service):
    return {volume["target"]: volume for volume in service["volumes"]}


def hardened(name, service):
    """Checks of every container."""
    yield f"{name}: its root is writable", service.get("read_only") is True
    yield f"{name}: it has capabilities", service.get("cap_drop") == ["ALL"] and "cap_add" not in service
    yield f"{name}: it may gain privileges", "no-new-privileges:true" in service.get("security_opt", []) and "privileged" not in service
    yield f"{name}: {service['image']} has no version", re.search(r":v?\d+\.\d+\.\d+$", service["image"])
    for port in service["ports"]:
        yield f"{name}: a port is not bound to loopback", port.get("host_ip") == "127.0.0.1"
        yield f"{name}: a privileged port", int(port["published"]) >= 1024
    for target, volume in mounts(service).items():
        if volume["type"] == "bind":
            yield f"{name}: {target} is writable", volume.get("read_only") is True
            yield f"{name}: {volume['source']} does not exist", pathlib.Path(volume["source"]).exists()


def consistent(file):
    """Checks of addresses, paths and ports that must be equal in several files."""
    services = file["services"]
    gateway, prometheus, grafana = (services[name] for name in ("gateway", "prometheus", "grafana"))
    settings = tomllib.loads((COMPOSE / "scoregate.toml").read_text())
    dockerfile = (ROOT / gateway["build"]["dockerfile"]).read_text()

    public, side = (settings["listen"], settings["admin"]["listen"])
    yield "a port other than the public one is published", [f"0.0.0.0:{port['target']}" for port in gateway["ports"]] == [public]
    yield "the data directory is not a volume", mounts(gateway)[settings["data_dir"]]["type"] == "volume"
    yield "the image's configuration file is not mounted", re.search(r"SCOREGATE_CONFIG=(\S+)", dockerfile)[1] in mounts(gateway)
    yield "the health check is disabled", "healthcheck" not in gateway and "HEALTHCHECK" in dockerfile
    grace = seconds(settings["server"].get("shutdown_timeout", "30s"))
    yield "a graceful shutdown takes longer than stop_grace_period", seconds(gateway["stop_grace_period"]) >= 2 * grace + 5
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["version"]
    yield "the image has another version", gateway["image"] == f"scoregate:{version}" and gateway["build"]["args"]["VERSION"] == version

    scraping = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    targets = [target for job in scraping["scrape_configs"] for one in job["static_configs"] for target in one["targets"]]
    yield "Prometheus does not scrape the side port", f"gateway:{side.rsplit(':')[-1]}" in targets
    hosts = {target.rsplit(":", 1)[0] for target in targets}
    yield "the side port refuses the host name that Prometheus uses", hosts <= set(settings["admin"]["hosts"])
    configured = next(word.split("=")[1] for word in prometheus["command"] if word.startswith("--config.file="))
    yield "Prometheus uses another configuration", mounts(prometheus)[os.path.dirname(configured)]["source"] == str(ROOT / "deploy/prometheus")
    yield "Prometheus loads no rules", scraping["rule_files"] == ["rules/*.yml"]
    storage = next(word.split("=")[1] for word in prometheus["command"] if word.startswith("--storage.tsdb.path="))
    yield "the storage of Prometheus is not a volume", mounts(prometheus)[storage]["type"] == "volume"

    provisioning = ROOT / "grafana/provisioning"
    path = grafana["environment"]["GF_PATHS_PROVISIONING"]
    (target, mounted), = ((target, one) for target, one in mounts(grafana).items() if one["type"] == "bind")
    yield "Grafana uses another provisioning directory", f"{mounted['source']}{path.removeprefix(target)}" == str(provisioning)
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"]
    yield "Grafana uses another data source", source["url"] == "http://prometheus:9090" and source["uid"] == "prometheus"
    (provider,) = yaml.safe_load((provisioning / "dashboards/scoregate.yml").read_text())["providers"]
    shown = provider["options"]["path"]
    yield "Grafana uses other dashboards", shown.startswith(target) and f"{mounted['source']}{shown.removeprefix(target)}" == str(ROOT / "grafana/dashboards")
    common = [set(service["networks"]) for service in (gateway, prometheus, grafana)]
    yield "the services cannot reach each other", all("monitoring" in networks for networks in common) and file["networks"]["monitoring"]["internal"]

    named = {f"/run/secrets/{secret['source']}" for service in services.values() for secret in service.get("secrets", [])}
    configured_secrets = {settings["admin"]["token_file"], grafana["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"]}
    yield "mounted, configured and declared secrets differ", named == configured_secrets == {f"/run/secrets/{name}" for name in file["secrets"]}
    texts = [str(value) for service in services.values() for value in service.get("environment", {}).values()]
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
        yield "a secret is weak", len(set(created[0].values())) == 2 and all(re.fullmatch("[0-9a-f]{48}", text) for text in created[0].values())
        yield "other users can read the secrets", stat.S_IMODE((directory / "secrets").stat().st_mode) == 0o700
        settings = directory / "scoregate.toml"
        settings.write_text((COMPOSE / "scoregate.toml").read_text().replace("/run/secrets", str(directory / "secrets")))
        result = subprocess.run([binary, "check", "--config", settings], env={}, capture_output=True, text=True)
        yield f"scoregate check: {result.stderr}", result.returncode == 0


def main():
    text, binary = FILE.read_text(), os.path.realpath(sys.argv[1])
    file, result = read_by_compose(text)
    if file is None:
        sys.exit(result)
    checks = [*consistent(file), *secrets_and_settings(binary)]
    for name, service in file["services"].items():
        checks += hardened(name, service)
    wrong = [what for what, is_so in checks if not is_so]

    # Planted mistakes must be detected by Compose and by the checks.
    _, result = read_by_compose(text.replace("  read_only: true\n  cap", "  read_onlyy: true\n  cap"))
    if "read_onlyy" not in result:
        wrong.append(f"Docker Compose does not detect an unknown field: {result}")
    opened, _ = read_by_compose(text.replace("127.0.0.1:8080:8080", "8080:8080"))
    if all(is_so for _, is_so in hardened("gateway", opened["services"]["gateway"])):
        wrong.append("a port outside loopback is not detected")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"compose: {len(file['services'])} services, {len(checks)} checks")


if __name__ == "__main__":
    main()
