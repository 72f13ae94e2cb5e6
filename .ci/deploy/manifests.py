"""Checks the Kubernetes manifests: each overlay, built by kustomize, against the schemas of Kubernetes, where an unknown
field is an error, by the rules in `manifest_rules.py`, and against the program: it accepts the settings and commands.

    manifests.py BINARY

Requires a Python with the packages of `tools.txt`, but no cluster.
"""

import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

import kubernetes_validate
import yaml

import manifest_rules
from manifest_rules import one_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
OVERLAYS = ROOT / "deploy/kubernetes/overlays"
# The oldest version with a preStop sleep, a later one, and the newest version with schemas.
VERSIONS = ("1.30", "1.33", "1.37")
COMMON = {"Namespace", "ConfigMap", "Service", "PodDisruptionBudget", "NetworkPolicy"}
# The kinds of each form.
FORMS = {"single": COMMON | {"StatefulSet"}, "fleet": COMMON | {"Deployment", "HorizontalPodAutoscaler"}}
TABLES = {"Job", "NetworkPolicy"}
# A certificate for the check of the settings, which need one. Its key was not kept.
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


def built(overlay):
    """Builds an overlay by kustomize. Returns the manifests by kind and name."""
    kubectl = pathlib.Path(sys.executable).with_name("kubectl")
    result = subprocess.run([kubectl, "kustomize", overlay], capture_output=True, text=True, check=True)
    assert not result.stderr, result.stderr
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(result.stdout)}


def against_schemas(manifests):
    """Yields the violations of the schemas, including unknown fields."""
    for manifest in manifests.values():
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(manifest, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                yield f"{manifest['kind']} in {version}: {'.'.join(map(str, error.path))}: {error.message}"


class Program:
    """The program, with files in place of the secrets."""

    def __init__(self, binary, directory):
        self.binary, self.directory = binary, pathlib.Path(directory)
        for name in ("admin-token", "upstream-credential", "password"):
            (self.directory / name).write_text("a secret only for this check\n")
        (self.directory / "ca.pem").write_text(CERTIFICATE)

    def run(self, arguments, environment):
        return subprocess.run([self.binary, *arguments], env=environment, capture_output=True, text=True)

    def defaults(self):
        """The defaults of all settings, as the program prints them."""
        found, table = {}, ""
        for line in self.run(["check", "--sample"], {}).stdout.splitlines():
            if header := re.match(r"# \[(\w+)\]", line):
                table = header[1]
            elif setting := re.fullmatch(r'# (\w+) = "?([^"…]+)"?', line):
                found[f"{table}.{setting[1]}"] = setting[2]
        return found

    def located(self, text):
        """A text with the paths of the files here."""
        return re.sub("/etc/scoregate/(secrets|database)", str(self.directory), text)

    def settings_findings(self, manifests):
        """Yields the findings of `scoregate check` on the settings and the environment."""
        (settings,) = one_of(manifests, "ConfigMap")["data"].values()
        pod = one_of(manifests, "StatefulSet", "Deployment")["spec"]["template"]["spec"]
        environment = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
        file = self.directory / "scoregate.toml"
        file.write_text(self.located(settings))
        checked = self.run(["check", "--config", file], environment)
        if checked.returncode:
            yield f"scoregate check: {checked.stderr.strip()}"

    def job_findings(self, manifests):
        """Yields a finding for each command of the job that does not get as far as to its database, which does not exist."""
        pod = one_of(manifests, "Job")["spec"]["template"]["spec"]
        for container in [*pod["initContainers"], *pod["containers"]]:
            environment = {one["name"]: self.located(one["value"]) for one in container["env"]}
            host = re.search("@([^/]+)/", environment["SCOREGATE_STORE_URL"])[1]
            environment["SCOREGATE_STORE_URL"] = environment["SCOREGATE_STORE_URL"].replace(host, "127.0.0.1:1")
            result = self.run(container["args"], environment)
            if "the database scoregate_owner@127.0.0.1:1/scoregate" not in result.stderr:
                yield f"{' '.join(container['args'])}: {result.stderr.strip()}"


def findings(manifests, program):
    # Manifests that violate the schemas are not checked further.
    return [*against_schemas(manifests)] or [
        *manifest_rules.findings(manifests, program.defaults()),
        *program.settings_findings(manifests),
    ]


def findings_of_tables(manifests, of_gateways, program):
    return [*against_schemas(manifests)] or [
        *manifest_rules.findings_of_tables(manifests, of_gateways, program.defaults()),
        *program.job_findings(manifests),
    ]


def planted(manifests):
    """Yields manifests with planted mistakes, each with a part of the expected finding."""

    def change(words, how):
        copied = copy.deepcopy(manifests)
        how(one_of(copied, "StatefulSet", "Deployment")["spec"], copied)
        return words, copied

    pod = lambda spec: spec["template"]["spec"]
    container = lambda spec: pod(spec)["containers"][0]
    settings = lambda all_of: one_of(all_of, "ConfigMap")["data"]
    yield change("readinesProbe", lambda spec, _: container(spec).update(readinesProbe={}))
    yield change("terminationGracePeriodSeconds", lambda spec, _: pod(spec).update(terminationGracePeriodSeconds="75s"))
    yield change("takes longer", lambda spec, _: pod(spec).update(terminationGracePeriodSeconds=pod(spec)["terminationGracePeriodSeconds"] - 15))
    yield change("takes longer", lambda spec, _: variable(container(spec), "SCOREGATE_SERVER_SHUTDOWN_TIMEOUT", "1m"))
    yield change("no version", lambda spec, _: container(spec).update(image="scoregate:latest"))
    yield change("no such setting", lambda _, all_of: rewrite(settings(all_of), "format", "formatt"))
    yield change("no setting has this variable", lambda spec, _: variable(container(spec), "SCOREGATE_LISTN", "x"))
    yield change("refuses names", lambda spec, _: [one.update(value="x") for one in container(spec)["env"] if one["name"] == "SCOREGATE_ADMIN_HOSTS"])
    yield change("does not select", lambda _, all_of: all_of["NetworkPolicy", "scoregate"]["spec"].update(podSelector={}))
    if ("Deployment", "scoregate") in manifests:
        autoscaler = lambda all_of: one_of(all_of, "HorizontalPodAutoscaler")["spec"]
        yield change("store.gateways is below the 6", lambda _, all_of: rewrite(settings(all_of), "gateways = 6", "gateways = 5"))
        yield change("store.gateways is below the 6", lambda spec, _: variable(container(spec), "SCOREGATE_STORE_GATEWAYS", "5"))
        yield change("store.gateways is below the 7", lambda _, all_of: autoscaler(all_of).update(maxReplicas=6))
        yield change("store.gateways is below the 7", lambda spec, _: spec["strategy"]["rollingUpdate"].update(maxSurge="30%"))
        yield change("takes longer", lambda spec, _: variable(container(spec), "SCOREGATE_STORE_TIMEOUT", "5s"))
        yield change("resets the number", lambda spec, _: spec.update(replicas=3))
        yield change("several pods", lambda _, all_of: one_of(all_of, "PodDisruptionBudget")["spec"].update(maxUnavailable=2))
        yield change("cannot be reached", lambda _, all_of: rewrite(settings(all_of), "@scoregate-database/", "@db-1,db-2:5433/"))
        yield change("the mounted secrets are", lambda _, all_of: rewrite(settings(all_of), "/database/ca.pem", "/database/authority.pem"))


def planted_in_tables(manifests):
    """The same for the job."""
    for words, one, other in (
        ("another version", ":0.1.0", ":0.0.9"),
        ("does not run", '"upgrade"', '"init"'),
        ("role of the gateways", "scoregate_owner@", "gateway@"),
        ("another database", "@scoregate-database/scoregate", "@scoregate-database/other"),
        ("includes the job", '"app.kubernetes.io/name": "scoregate-tables"', '"app.kubernetes.io/name": "scoregate"'),
        ("cannot be reached", "5432", "5433"),
        ("no setting has this variable", '"env": [', '"env": [{"name": "SCOREGATE_LISTN", "value": "x"}, '),
    ):
        yield words, {name: json.loads(json.dumps(manifest).replace(one, other)) for name, manifest in manifests.items()}


def variable(container, name, value):
    container["env"].append({"name": name, "value": value})


def rewrite(data, one, other):
    for name, text in data.items():
        assert one in text, one
        data[name] = text.replace(one, other)


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
    wrong, seen, settings = [], 0, {}
    with tempfile.TemporaryDirectory() as directory:
        program = Program(os.path.realpath(sys.argv[1]), directory)
        for overlay in sorted(OVERLAYS.iterdir()):
            manifests = built(overlay)
            (form,) = [name for name, kinds in FORMS.items() if kinds == {kind for kind, _ in manifests}]
            (text,) = one_of(manifests, "ConfigMap")["data"].values()
            settings[form] = {table: values for table, values in tomllib.loads(text).items() if table != "store"}
            wrong += [f"{overlay.name}: {finding}" for finding in findings(manifests, program)]
            wrong += undetected(planted(manifests), lambda one: findings(one, program))
            seen += len(manifests)
            if form == "fleet":
                tables = built(overlay / "tables")
                assert {kind for kind, _ in tables} == TABLES, sorted(tables)
                check = lambda one: findings_of_tables(one, manifests, program)
                wrong += [f"{overlay.name}/tables: {finding}" for finding in check(tables)]
                wrong += undetected(planted_in_tables(tables), check)
                seen += len(tables)
    assert set(settings) == set(FORMS), settings
    if settings["single"] != settings["fleet"]:
        wrong.append(f"the settings of the forms differ in more than the store: {settings}")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"kubernetes: {seen} manifests of two overlays match the schemas of {', '.join(VERSIONS)}, each other and the program")


if __name__ == "__main__":
    main()
