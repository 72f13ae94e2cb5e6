"""Checks the Helm chart, as it is packaged: the manifests that it renders for several values, against the schemas of Kubernetes,
where an unknown field is an error, by the rules in `manifest_rules.py`, and against the program: it accepts the settings and
commands. Rules, dashboards and the configuration of Alertmanager are those of the repository. The schema of the values rejects
mistakes.

    manifests.py BINARY

Requires a Python with the packages of `tools.txt` and `helm` next to it, but no cluster.
"""

import copy
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

import jsonschema
import kubernetes_validate
import yaml

import manifest_rules
from manifest_rules import environment_of, one_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm"
EXAMPLES = CHART / "examples"
HELM = pathlib.Path(sys.executable).with_name("helm")
# The oldest version with a preStop sleep, a later one, and the newest version with schemas.
VERSIONS = ("1.30", "1.33", "1.37")
# Schemas of the kinds that Kubernetes does not have.
OTHERS = {
    schema["properties"]["kind"]["const"]: schema
    for schema in map(json.loads, map(pathlib.Path.read_text, (ROOT / ".ci/deploy/schemas").glob("*.json")))
}
COMMON = {"ConfigMap", "Service", "PodDisruptionBudget", "NetworkPolicy"}
SINGLE, FLEET = COMMON | {"StatefulSet"}, COMMON | {"Deployment", "HorizontalPodAutoscaler", "Job"}
# The values that are rendered, with the kinds that they give. In `options` are values that no example has.
FORMS = {
    "values.yaml": SINGLE,
    "examples/staging.yaml": SINGLE | {"CronJob", "PersistentVolumeClaim", "HTTPRoute"},
    "examples/production.yaml": FLEET | {"Ingress", "PodMonitor", "PrometheusRule", "Secret"},
    "options": FLEET - {"HorizontalPodAutoscaler"},
}
OPTIONS = {
    "mode": "fleet",
    "image": {"digest": f"sha256:{'0' * 64}", "tag": "0.1.0"},
    "upstream": "",
    "settings": '[upstream]\nurls = ["http://scoring-backend:4000/"]\n[mail]\nserver = "mail.example.org:587"\nfrom = "a@example.org"\n'
    'username = "scoregate"\npassword_file = "/etc/scoregate/secrets/mail-password"\n',
    "env": {"SCOREGATE_STORE_TIMEOUT": "1s", "SCOREGATE_CACHE_DISK_MAX_BYTES": "256MiB", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
    "secret": {"name": "other", "files": ["mail-password"]},
    "database": {"url": "postgresql://gateway@scoregate-database/scores", "owner": "other_owner"},
    "replicas": 3,
    "preStopSeconds": 20,
    "pod": {"labels": {"a": "b"}, "annotations": {"a": "b"}, "spec": {"priorityClassName": "high", "tolerations": [{"key": "a", "operator": "Exists"}]}},
    "service": {"type": "LoadBalancer", "annotations": {"a": "b"}},
}
# Mistakes that the schema of the values rejects, each with a part of the message. All but the first are made in an example.
REJECTED = (
    ("values.yaml", "mode=fleet", "/database/url"),
    ("production", "mode=fleets", "/mode"),
    ("production", "imag.tag=1", "imag"),
    ("production", "autoscaling.maxReplicas=many", "/autoscaling/maxReplicas"),
    ("production", "database.url=postgresql://gateway:password@database/scoregate", "/database/url"),
    ("production", "backups.enabled=true", "/backups/enabled"),
    # Each pod would have scores of its own.
    ("production", "upstream=built-in", "/upstream"),
    ("production", "autoscaling.minReplicas=9", "autoscaling.minReplicas is above"),
    ("production", "env.SCOREGATE_STORE_GATEWAYS=3", "SCOREGATE_STORE_GATEWAYS"),
    # YAML would make it 1e+06.
    ("production", "env.SCOREGATE_KEYS=1000000", "/env/SCOREGATE_KEYS"),
    ("production", "pod.spec.hostNetwork=true", "hostNetwork"),
    ("production", "networkPolicy.clients=null", "clients"),
    ("production", "networkPolicy.database.peers={}", "/networkPolicy/database/peers"),
    ("production", "ingress.host=", "/ingress/host"),
    ("production", "monitoring.alertmanager.receivers[0].name=other", "/monitoring/alertmanager/receivers"),
    ("production", "monitoring.runbook=https://git.example.org", "/monitoring/runbook"),
    ("staging", "persistence.accessMode=ReadWriteOncePod", "/persistence/accessMode"),
    ("staging", "persistence.size=1G", "/persistence/size"),
    ("staging", "upstream=scoring-backend:4000", "/upstream"),
)
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBdzCCAR2gAwIBAgIUF2T/2V7/Rxa7K10VeOSvntjKPQ4wCgYIKoZIzj0EAwIw
EDEOMAwGA1UEAwwFY2hlY2swIBcNMjYxMTI0MDUzNTQ2WhgPMjEyNjEwMzEwNTM1
NDZaMBAxDjAMBgNVBAMMBWNoZWNrMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
RVxo5IP915x0QPZNbAyVN4WIKi/rccd7nHtx0hP4sI2VG93XAyAmKNRL1MME/QYJ
UVv5Kh5gSQSMxtrYpPiPaqNTMFEwHQYDVR0OBBYEFEi4YDZXNN5oo5QJfRhoqx13
dzJHMB8GA1UdIwQYMBaAFEi4YDZXNN5oo5QJfRhoqx13dzJHMA8GA1UdEwEB/wQF
MAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIge5ddEZVvkBBY6J+6vHY6UrGbt1gqlmun
0COkHR9YOqwCIQDTvbBkau6qibgQtHX/4jPePzNhp6/jB+EWTnaIcFB9Mw==
-----END CERTIFICATE-----
"""


def helm(*arguments):
    result = subprocess.run([HELM, *arguments], capture_output=True, text=True)
    return result.returncode, result.stdout, result.stderr


@functools.cache
def packaged():
    """The packaged chart, unpacked. Helm follows the links to files of the repository."""
    directory = pathlib.Path(tempfile.mkdtemp())
    code, _, message = helm("package", CHART, "--destination", directory)
    assert code == 0, message
    (archive,) = directory.iterdir()
    subprocess.run(["tar", "--extract", "--gzip", "--file", archive, "--directory", directory], check=True)
    return directory / "scoregate"


def values_of(name):
    """The options of Helm for a name in FORMS."""
    if name == "options":
        (packaged() / name).write_text(yaml.safe_dump(OPTIONS))
    return ["--values", packaged() / name]


def built(name):
    """Renders the chart. Returns the manifests by kind and name."""
    release = "other" if name == "options" else "scoregate"
    code, text, message = helm("template", release, packaged(), "--namespace", "scoregate", *values_of(name))
    assert code == 0, message
    documents = [one for one in yaml.safe_load_all(text) if one]
    manifests = {(one["kind"], one["metadata"]["name"]): one for one in documents}
    assert len(manifests) == len(documents), "two objects have the same name"
    return manifests


def against_schemas(manifests):
    """Yields the violations of the schemas, including unknown fields."""
    for manifest in manifests.values():
        yield from violations(json.dumps(manifest))


@functools.cache
def violations(text):
    """The violations of a manifest. Most of those with planted mistakes are equal."""
    manifest, found = json.loads(text), []
    if schema := OTHERS.get(manifest["kind"]):
        found = [("", error) for error in jsonschema.Draft7Validator(schema).iter_errors(manifest)]
    for version in () if schema else VERSIONS:
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            found.append((f" in {version}", error))
    return [f"{manifest['kind']}{where}: {'.'.join(map(str, error.path))}: {error.message}" for where, error in found]


class Program:
    """The program, with files in place of the secrets."""

    def __init__(self, binary, directory):
        self.binary, self.directory = binary, pathlib.Path(directory)
        for name in ("admin-token", "upstream-credential", "password", "mail-password"):
            (self.directory / name).write_text("a secret only for this check\n")
        (self.directory / "ca.pem").write_text(CERTIFICATE)
        self.defaults = self.found_defaults()

    def run(self, arguments, environment):
        return subprocess.run([self.binary, *arguments], env=environment, capture_output=True, text=True)

    def found_defaults(self):
        """The defaults of all settings, as the program prints them."""
        found, table = {}, ""
        for line in self.run(["check", "--sample"], {}).stdout.splitlines():
            if header := re.match(r"# \[(\w+)\]", line):
                table = header[1]
            elif setting := re.fullmatch(r'# (\w+) = "?([^"…]+)"?', line):
                found[f"{table}.{setting[1]}".lstrip(".")] = setting[2]
        return found

    def located(self, text):
        """A text with the paths of the files here."""
        return re.sub("/etc/scoregate/(secrets|database)", str(self.directory), text)

    def settings_findings(self, manifests):
        """Yields the findings of `scoregate check` on the settings and the environment."""
        (settings,) = one_of(manifests, "ConfigMap")["data"].values()
        pod = one_of(manifests, "StatefulSet", "Deployment")["spec"]["template"]["spec"]
        environment = {name: self.located(value) for name, value in environment_of(pod["containers"][0]).items()}
        file = self.directory / "scoregate.toml"
        file.write_text(self.located(settings))
        checked = self.run(["check", "--config", file], environment)
        if checked.returncode:
            yield f"scoregate check: {checked.stderr.strip()}"

    def job_findings(self, manifests):
        """Yields a finding for each command of the job that does not get as far as to its database, which does not exist."""
        pod = one_of(manifests, "Job")["spec"]["template"]["spec"]
        for container in [*pod["initContainers"], *pod["containers"]]:
            environment = {name: self.located(value) for name, value in environment_of(container).items()}
            user, _, name = re.fullmatch("postgresql://(.+)@(.+)/(.+)", environment["SCOREGATE_STORE_URL"]).groups()
            environment["SCOREGATE_STORE_URL"] = f"postgresql://{user}@127.0.0.1:1/{name}"
            result = self.run(container["args"], environment)
            if f"the database {user}@127.0.0.1:1/{name}" not in result.stderr:
                yield f"{' '.join(container['args'])}: {result.stderr.strip()}"

    def backup_findings(self, manifests):
        """Yields a finding if the command of the backups leaves no backup of a store."""
        (container,) = one_of(manifests, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        with tempfile.TemporaryDirectory() as data:
            data, backups = pathlib.Path(data), pathlib.Path(data) / "backups"
            backups.mkdir()
            self.run(["keys", "create", "--name", "first", "--tier", "pro", "--data-dir", data], {})
            paths = {"/var/lib/scoregate": data, "/var/lib/scoregate-backups": backups}
            command = [paths.get(word, word) for word in container["args"]]
            result = self.run(command, {})
            if result.returncode or not any(backups.iterdir()):
                yield f"{' '.join(container['args'])}: {result.stderr.strip()}"


def findings(manifests, program):
    # Manifests that violate the schemas are not checked further.
    return [*against_schemas(manifests)] or [
        *manifest_rules.findings(manifests, program.defaults),
        *program.settings_findings(manifests),
        *(program.job_findings(manifests) if any(kind == "Job" for kind, _ in manifests) else []),
    ]


def copied_findings(manifests):
    """Yields the files of the repository that the chart contains otherwise, or renders otherwise."""
    for path, at in (("deploy/prometheus/rules", "rules"), ("grafana/dashboards", "dashboards")):
        of_repository, of_chart = ({file.name: file.read_bytes() for file in directory.iterdir()} for directory in (ROOT / path, packaged() / "files" / at))
        if of_repository != of_chart:
            yield f"the chart's files are not those of {path}"
    runbook = yaml.safe_load((EXAMPLES / "production.yaml").read_text())["monitoring"]["runbook"]
    groups = []
    for file in sorted((ROOT / "deploy/prometheus/rules").iterdir()):
        groups += yaml.safe_load(file.read_text().replace("{{ $externalLabels.runbook }}", runbook))["groups"]
    if one_of(manifests, "PrometheusRule")["spec"]["groups"] != groups:
        yield "the rules are not those of the repository"
    shown = {name: text for (kind, _), one in manifests.items() if kind == "ConfigMap" for name, text in one["data"].items()}
    for file in (ROOT / "grafana/dashboards").iterdir():
        if shown.get(f"scoregate-{file.name}") != file.read_text().replace("https://repository.example/scoregate/", runbook):
            yield f"the dashboard {file.name} is not that of the repository"
    rendered, source = alertmanager(manifests), yaml.safe_load((ROOT / "deploy/prometheus/alertmanager.yml").read_text())
    if rendered | {"receivers": None} != source | {"receivers": None}:
        yield "the configuration of Alertmanager is not that of the repository"


def alertmanager(manifests):
    """The configuration of Alertmanager."""
    return yaml.safe_load(one_of(manifests, "Secret")["stringData"]["alertmanager.yaml"])


def chart_findings():
    """Yields what Helm's linter finds, mistakes in values that the schema accepts, and other versions than the program's."""
    for name in FORMS:
        code, text, message = helm("lint", "--strict", "--quiet", packaged(), *values_of(name))
        if code:
            yield f"helm lint with {name}: {text}{message}"
    for name, mistake, words in REJECTED:
        file = name if "." in name else f"examples/{name}.yaml"
        how = "--set-json" if mistake.endswith("{}") else "--set"
        code, _, message = helm("template", "scoregate", packaged(), *values_of(file), how, mistake.replace("{}", "[]"))
        if not code or words not in message:
            yield f"{mistake} is not rejected: {message}"
    with tempfile.TemporaryDirectory() as directory:
        # Some tools leave links out of a chart.
        incomplete = shutil.copytree(packaged(), pathlib.Path(directory) / "scoregate", ignore=shutil.ignore_patterns("rules"))
        code, _, message = helm("template", "scoregate", incomplete, *values_of("examples/production.yaml"))
        if not code or "the chart lacks its rules" not in message:
            yield f"a chart without its rules is not rejected: {message}"
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    if {chart["version"], chart["appVersion"]} != {version}:
        yield f"the chart has the version {chart['version']} of {chart['appVersion']}, the program {version}"
    if VERSIONS[0] not in chart["kubeVersion"]:
        yield f"the chart requires Kubernetes {chart['kubeVersion']}"


def planted(manifests):
    """Yields manifests with planted mistakes, each with a part of the expected finding."""

    def change(words, how):
        copied = copy.deepcopy(manifests)
        how(one_of(copied, "StatefulSet", "Deployment")["spec"], copied)
        return words, copied

    pod = lambda spec: spec["template"]["spec"]
    set_to = lambda spec, name, value: [one.update(value=value) for one in container(spec)["env"] if one["name"] == name]
    container = lambda spec: pod(spec)["containers"][0]
    settings = lambda all_of: one_of(all_of, "ConfigMap")["data"]
    yield change("readinesProbe", lambda spec, _: container(spec).update(readinesProbe={}))
    yield change("terminationGracePeriodSeconds", lambda spec, _: pod(spec).update(terminationGracePeriodSeconds="75s"))
    yield change("takes longer", lambda spec, _: pod(spec).update(terminationGracePeriodSeconds=pod(spec)["terminationGracePeriodSeconds"] - 15))
    yield change("takes longer", lambda spec, _: set_to(spec, "SCOREGATE_SERVER_SHUTDOWN_TIMEOUT", "1m"))
    yield change("no version", lambda spec, _: container(spec).update(image="scoregate:latest"))
    yield change("no such setting", lambda _, all_of: [settings(all_of).update({name: f"x = 1\n{text}"}) for name, text in settings(all_of).items()])
    yield change("no setting has this variable", lambda spec, _: variable(container(spec), "SCOREGATE_LISTN", "x"))
    yield change("refuses names", lambda spec, _: set_to(spec, "SCOREGATE_ADMIN_HOSTS", "x"))
    yield change("does not select", lambda _, all_of: all_of["NetworkPolicy", "scoregate"]["spec"].update(podSelector={}))
    if ("HorizontalPodAutoscaler", "scoregate") in manifests:
        autoscaler = lambda all_of: one_of(all_of, "HorizontalPodAutoscaler")["spec"]
        yield change("store.gateways is below the 5", lambda spec, _: set_to(spec, "SCOREGATE_STORE_GATEWAYS", "4"))
        yield change("store.gateways is below the 7", lambda _, all_of: autoscaler(all_of).update(maxReplicas=6))
        yield change("store.gateways is below the 6", lambda spec, _: spec["strategy"]["rollingUpdate"].update(maxSurge="30%"))
        yield change("takes longer", lambda spec, _: variable(container(spec), "SCOREGATE_STORE_TIMEOUT", "5s"))
        yield change("resets the number", lambda spec, _: spec.update(replicas=3))
        yield change("several pods", lambda _, all_of: one_of(all_of, "PodDisruptionBudget")["spec"].update(maxUnavailable=2))
        yield change("cannot be reached", lambda spec, _: set_to(spec, "SCOREGATE_STORE_URL", "postgresql://gateway@db-1,db-2:5433/scoregate"))
        yield change("the mounted secrets are", lambda spec, _: set_to(spec, "SCOREGATE_STORE_CA_FILE", "/etc/scoregate/database/authority.pem"))
        yield change("another host", lambda _, all_of: one_of(all_of, "Ingress")["spec"]["tls"][0].update(hosts=["other"]))
        yield change("the monitor has another port", lambda _, all_of: one_of(all_of, "PodMonitor")["spec"]["podMetricsEndpoints"][0].update(port="http"))
        yield change("intervall", lambda _, all_of: one_of(all_of, "PodMonitor")["spec"]["podMetricsEndpoints"][0].update(intervall="1s"))


def planted_in_job(manifests, kind, name):
    """The same for a job and its policy: each mistake is a text and its replacement."""
    tables = (
        ("another version", ":0.1.0", ":0.0.9"),
        ("does not run", '"upgrade"', '"init"'),
        ("role of the gateways", "scoregate_owner@", "gateway@"),
        ("another database", "@scoregate-database/scoregate", "@scoregate-database/other"),
        ("includes the job", f'"app.kubernetes.io/name": "{name}"', '"app.kubernetes.io/name": "scoregate"'),
        ("cannot be reached", "5432", "5433"),
        ("does not precede", "pre-install,pre-upgrade", "post-upgrade"),
        ("no setting has this variable", '"env": [', '"env": [{"name": "SCOREGATE_LISTN", "value": "x"}, '),
    )
    backup = (
        ("includes the job", f'"app.kubernetes.io/name": "{name}"', '"app.kubernetes.io/name": "scoregate"'),
        ("another volume", "data-scoregate-0", "data-scoregate-1"),
        ("another node", "kubernetes.io/hostname", "topology.kubernetes.io/zone"),
        ("other directories", '"/var/lib/scoregate-backups", "--keep"', '"/backups", "--keep"'),
        ("may connect", '"policyTypes"', '"egress": [{}], "policyTypes"'),
    )
    for words, one, other in tables if kind == "Job" else backup:
        copied = copy.deepcopy(manifests)
        for of in ((kind, name), ("NetworkPolicy", name)):
            copied[of] = json.loads(json.dumps(copied[of]).replace(one, other))
        assert copied != manifests, one
        yield words, copied


def variable(container, name, value):
    container["env"].append({"name": name, "value": value})


def undetected(mistakes, check):
    """Yields the planted mistakes that are not detected."""
    for words, mistaken in mistakes:
        try:
            found = check(mistaken)
        except KeyError as missing:
            found = [f"there is no {missing}"]
        if not any(words in finding for finding in found):
            yield f"a planted mistake is not detected: {words}: {found}"


def main():
    wrong, seen = [*chart_findings()], 0
    with tempfile.TemporaryDirectory() as directory:
        program = Program(os.path.realpath(sys.argv[1]), directory)
        check = lambda one: findings(one, program)
        for name, kinds in FORMS.items():
            manifests = built(name)
            assert {kind for kind, _ in manifests} == kinds, (name, kinds ^ {kind for kind, _ in manifests})
            wrong += [f"{name}: {finding}" for finding in check(manifests)]
            if name == "options":
                continue
            wrong += undetected(planted(manifests), check)
            if "Job" in kinds:
                wrong += undetected(planted_in_job(manifests, "Job", "scoregate-tables"), check)
                wrong += copied_findings(manifests)
            if "CronJob" in kinds:
                wrong += undetected(planted_in_job(manifests, "CronJob", "scoregate-backup"), check)
                wrong += program.backup_findings(manifests)
            seen += len(manifests)
    shutil.rmtree(packaged().parent)
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"chart: {seen} manifests of {len(FORMS)} forms match the schemas of {', '.join(VERSIONS)}, each other and the program")


if __name__ == "__main__":
    main()
