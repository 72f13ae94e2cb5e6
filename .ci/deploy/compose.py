"""The compose file, as Docker Compose itself reads it, and what it wires: files that are mounted are there, what Prometheus
asks and Grafana shows has an address that leads somewhere, the gateway's settings are the program's.

    compose.py BINARY

It has to be run by a Python that has what `tools.txt` lists; no daemon is asked. Not for: what the images do with it.
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
    """The file as Docker Compose understands it, or what it says against it."""
    tool = pathlib.Path(sys.executable).with_name("docker-compose")
    arguments = [tool, "--project-directory", COMPOSE, "--file", "-", "config", "--format", "json"]
    result = subprocess.run(arguments, input=text, capture_output=True, text=True)
    return (json.loads(result.stdout), "") if result.returncode == 0 else (None, result.stderr.strip())


def seconds(written):
    return sum(int(number) * TIMES[unit] for number, unit in re.findall(r"(\d+)([ms])", written))


def mounts(service):
    return {volume["target"]: volume for volume in service["volumes"]}


def sealed(name, service):
    """What every container of ours holds to."""
    yield f"{name}: its root can be written", service.get("read_only") is True
    yield f"{name}: it has capabilities", service.get("cap_drop") == ["ALL"] and "cap_add" not in service
    yield f"{name}: it may gain privileges", "no-new-privileges:true" in service.get("security_opt", []) and "privileged" not in service
    yield f"{name}: {service['image']} says no version", re.search(r":v?\d+\.\d+\.\d+$", service["image"])
    for port in service["ports"]:
        yield f"{name}: a port for everybody", port.get("host_ip") == "127.0.0.1"
        yield f"{name}: a privileged port", int(port["published"]) >= 1024
    for target, volume in mounts(service).items():
        if volume["type"] == "bind":
            yield f"{name}: {target} can be written", volume.get("read_only") is True
            yield f"{name}: there is no {volume['source']}", pathlib.Path(volume["source"]).exists()


def wired(file):
    """Addresses, paths and ports that have to be the same in several files."""
    services = file["services"]
    gateway, prometheus, grafana = (services[name] for name in ("gateway", "prometheus", "grafana"))
    settings = tomllib.loads((COMPOSE / "scoregate.toml").read_text())
    dockerfile = (ROOT / gateway["build"]["dockerfile"]).read_text()

    public, side = (settings["listen"], settings["admin"]["listen"])
    yield "another port than the public one is published", [f"0.0.0.0:{port['target']}" for port in gateway["ports"]] == [public]
    yield "the state is not kept", mounts(gateway)[settings["data_dir"]]["type"] == "volume"
    yield "the settings are not those of the image's command", re.search(r"SCOREGATE_CONFIG=(\S+)", dockerfile)[1] in mounts(gateway)
    yield "the health check is off", "healthcheck" not in gateway and "HEALTHCHECK" in dockerfile
    grace = seconds(settings["server"].get("shutdown_timeout", "30s"))
    yield "a stop in order takes longer", seconds(gateway["stop_grace_period"]) >= 2 * grace + 5
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["version"]
    yield "the image is another version", gateway["image"] == f"scoregate:{version}" and gateway["build"]["args"]["VERSION"] == version

    asks = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    targets = [target for job in asks["scrape_configs"] for one in job["static_configs"] for target in one["targets"]]
    yield "Prometheus asks somebody else", f"gateway:{side.rsplit(':')[-1]}" in targets
    hosts = {target.rsplit(":", 1)[0] for target in targets}
    yield "the side port refuses the name by which Prometheus asks", hosts <= set(settings["admin"]["hosts"])
    configured = next(word.split("=")[1] for word in prometheus["command"] if word.startswith("--config.file="))
    yield "Prometheus reads another file", mounts(prometheus)[os.path.dirname(configured)]["source"] == str(ROOT / "deploy/prometheus")
    yield "Prometheus follows no rules", asks["rule_files"] == ["rules/*.yml"]
    kept = next(word.split("=")[1] for word in prometheus["command"] if word.startswith("--storage.tsdb.path="))
    yield "what Prometheus keeps is lost", mounts(prometheus)[kept]["type"] == "volume"

    provisioning = ROOT / "grafana/provisioning"
    place = grafana["environment"]["GF_PATHS_PROVISIONING"]
    (target, mounted), = ((target, one) for target, one in mounts(grafana).items() if one["type"] == "bind")
    yield "Grafana is provisioned from elsewhere", f"{mounted['source']}{place.removeprefix(target)}" == str(provisioning)
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"]
    yield "Grafana asks somebody else", source["url"] == "http://prometheus:9090" and source["uid"] == "prometheus"
    (provider,) = yaml.safe_load((provisioning / "dashboards/scoregate.yml").read_text())["providers"]
    shown = provider["options"]["path"]
    yield "Grafana shows other dashboards", shown.startswith(target) and f"{mounted['source']}{shown.removeprefix(target)}" == str(ROOT / "grafana/dashboards")
    common = [set(service["networks"]) for service in (gateway, prometheus, grafana)]
    yield "they cannot reach each other", all("monitoring" in networks for networks in common) and file["networks"]["monitoring"]["internal"]

    named = {f"/run/secrets/{secret['source']}" for service in services.values() for secret in service.get("secrets", [])}
    looked_for = {settings["admin"]["token_file"], grafana["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"]}
    yield "the secrets are others", named == looked_for == {f"/run/secrets/{name}" for name in file["secrets"]}
    texts = [str(value) for service in services.values() for value in service.get("environment", {}).values()]
    yield "a secret is said in the environment", not any(re.search("token|password", text) and "/run/secrets/" not in text for text in texts)


def secrets_and_settings(binary):
    """The secrets as the script makes them, twice, and the settings with them, as the program reads them."""
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        script = place / "secrets.sh"
        script.write_text((COMPOSE / "secrets.sh").read_text())
        made = []
        for _ in range(2):
            subprocess.run(["sh", script], check=True)
            made.append({file.name: file.read_text() for file in (place / "secrets").iterdir()})
        yield "a secret is made anew", made[0] == made[1]
        yield "the secrets are others than the file's", set(made[0]) == set(yaml.safe_load(FILE.read_text())["secrets"])
        yield "a secret can be guessed", len(set(made[0].values())) == 2 and all(re.fullmatch("[0-9a-f]{48}", text) for text in made[0].values())
        yield "anybody may look at the secrets", stat.S_IMODE((place / "secrets").stat().st_mode) == 0o700
        settings = place / "scoregate.toml"
        settings.write_text((COMPOSE / "scoregate.toml").read_text().replace("/run/secrets", str(place / "secrets")))
        result = subprocess.run([binary, "check", "--config", settings], env={}, capture_output=True, text=True)
        yield f"scoregate check: {result.stderr}", result.returncode == 0


def main():
    text, binary = FILE.read_text(), os.path.realpath(sys.argv[1])
    file, result = read_by_compose(text)
    if file is None:
        sys.exit(result)
    checks = [*wired(file), *secrets_and_settings(binary)]
    for name, service in file["services"].items():
        checks += sealed(name, service)
    wrong = [what for what, is_so in checks if not is_so]

    # What Compose and the checks are there to find.
    _, result = read_by_compose(text.replace("  read_only: true\n  cap", "  read_onlyy: true\n  cap"))
    if "read_onlyy" not in result:
        wrong.append(f"Docker Compose does not see a field that does not exist: {result}")
    opened, _ = read_by_compose(text.replace("127.0.0.1:8080:8080", "8080:8080"))
    if all(is_so for _, is_so in sealed("gateway", opened["services"]["gateway"])):
        wrong.append("a port for everybody is not seen")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"compose: {len(file['services'])} services, {len(checks)} checks")


if __name__ == "__main__":
    main()
