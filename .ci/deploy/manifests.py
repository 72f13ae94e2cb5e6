"""Checks the Kubernetes manifests: each overlay, built by kustomize, against the schemas of Kubernetes, where an unknown
field is an error, and for consistency with itself and the program: referenced names exist, selectors match, the settings
are valid, and the termination grace period is long enough.

    manifests.py BINARY

Requires a Python with the packages of `tools.txt`, but no cluster.
"""

import copy
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
OVERLAYS = ROOT / "deploy/kubernetes/overlays"
# The oldest version with a preStop sleep, a later one, and the newest version with schemas.
VERSIONS = ("1.30", "1.33", "1.37")
KINDS = {"Namespace", "ConfigMap", "Service", "StatefulSet", "PodDisruptionBudget", "NetworkPolicy"}
TIMES = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


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


def one_of(manifests, kind):
    found = [one for (its, _), one in manifests.items() if its == kind]
    assert len(found) == 1, f"{len(found)} of kind {kind}"
    return found[0]


def seconds(duration):
    number, unit = re.fullmatch(r"(\d+)(\w+)", duration).groups()
    return int(number) * TIMES[unit]


class Parts:
    """The parts of the manifests that the checks use."""

    def __init__(self, manifests):
        self.all = manifests
        self.set = one_of(manifests, "StatefulSet")["spec"]
        self.pod = self.set["template"]["spec"]
        (self.container,) = self.pod["containers"]
        self.ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        self.services = {name: one["spec"] for (kind, name), one in manifests.items() if kind == "Service"}
        self.policy = one_of(manifests, "NetworkPolicy")["spec"]
        (settings,) = one_of(manifests, "ConfigMap")["data"].values()
        self.settings = tomllib.loads(settings)


def selecting(its):
    """Every selector matches the pods, in one namespace."""
    labels = its.set["template"]["metadata"]["labels"].items()
    selectors = {
        "the set": its.set["selector"]["matchLabels"],
        "the budget": one_of(its.all, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        "the policy": its.policy["podSelector"].get("matchLabels", {}),
    } | {f"service {name}": service["selector"] for name, service in its.services.items()}
    for name, selector in selectors.items():
        yield f"{name} does not select the pods", selector and selector.items() <= labels
    namespace = one_of(its.all, "Namespace")["metadata"]
    enforced = namespace["labels"]["pod-security.kubernetes.io/enforce"]
    yield "the namespace does not enforce the restricted profile", enforced == "restricted"
    for (kind, name), one in its.all.items():
        yield f"{kind} {name} is in another namespace", kind == "Namespace" or one["metadata"]["namespace"] == namespace["name"]


def naming(its):
    """Referenced ports, services, volumes and files exist."""
    for service in its.services.values():
        for port in service["ports"]:
            yield f"there is no port {port['targetPort']}", port["targetPort"] in its.ports
    headless = [name for name, service in its.services.items() if service.get("clusterIP") == "None"]
    yield "the service of the set is missing or not headless", its.set["serviceName"] in headless
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        yield f"{probe} does not use the side port", its.container[probe]["httpGet"]["port"] == "side"
    yield "the readiness probe does not use /readyz", its.container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    for name, address in (("http", its.settings["listen"]), ("side", its.settings["admin"]["listen"])):
        yield f"the settings listen on {address}", address == f"0.0.0.0:{its.ports[name]}"
    namespace = one_of(its.all, "Namespace")["metadata"]["name"]
    (listed,) = [one["value"] for one in its.container["env"] if one["name"] == "SCOREGATE_ADMIN_HOSTS"]
    service = its.set["serviceName"]
    host_names = {service, f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local"}
    yield "the side port refuses names of its service", host_names | set(its.settings["admin"]["hosts"]) <= set(listed.split(","))
    scrape = its.set["template"]["metadata"]["annotations"]
    yield "the scrape annotation has another port", scrape["prometheus.io/port"] == str(its.ports["side"])

    volumes = {volume["name"]: volume for volume in its.pod["volumes"]}
    claims = {claim["metadata"]["name"] for claim in its.set["volumeClaimTemplates"]}
    mounts = {mount["name"]: mount for mount in its.container["volumeMounts"]}
    yield "volumes and mounts differ", set(mounts) == set(volumes) | claims
    yield "the mounted ConfigMap does not exist", ("ConfigMap", volumes["settings"]["configMap"]["name"]) in its.all
    written = {mounts[claim]["mountPath"] for claim in claims}
    yield "a path other than the data directory is writable", written == {its.settings["data_dir"]}
    files = {f"{mounts['secrets']['mountPath']}/{item['path']}" for item in volumes["secrets"]["secret"]["items"]}
    configured = {its.settings["admin"]["token_file"], its.settings["upstream"]["credential_file"]}
    yield f"the mounted secrets are {files}, the settings name {configured}", files == configured
    yield "a manifest contains a secret", not any(kind == "Secret" for kind, _ in its.all)


def network_policy(its):
    """Only the ingress and the monitoring can connect to the pods, which can connect only to DNS and the backend."""
    ingress = [(rule["from"], [port["port"] for port in rule["ports"]]) for rule in its.policy["ingress"]]
    yield "each port needs exactly one ingress rule", sorted(sum((ports for _, ports in ingress), [])) == ["http", "side"]
    known = all(peer.get("namespaceSelector", {}).get("matchLabels") for peers, _ in ingress for peer in peers)
    yield "an ingress rule does not name a namespace", known
    egress = [(rule["to"], {port["port"] for port in rule["ports"]}) for rule in its.policy["egress"]]
    name, port = re.fullmatch(r"http://([\w-]+):(\d+)/.*", its.settings["upstream"]["url"]).groups()
    to_backend = [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": name}}}]
    yield "the backend cannot be reached", (to_backend, {int(port)}) in egress
    yield "DNS cannot be reached", any(ports == {53} for _, ports in egress)
    yield "there are further egress rules", len(egress) == 2


def running(its):
    """One process of a fixed version, with few privileges and enough time for its shutdown."""
    container, pod, own = its.container, its.pod, its.container["securityContext"]
    yield "there is more than one process", its.set["replicas"] == 1
    yield f"no version in {container['image']}", re.search(r"/.+:\d+\.\d+\.\d+$", container["image"])
    pause, grace = container["lifecycle"]["preStop"]["sleep"]["seconds"], seconds(its.settings["server"]["shutdown_timeout"])
    yield "a graceful shutdown takes longer", pod["terminationGracePeriodSeconds"] >= pause + 2 * grace + 5
    yield "the container runs as root", pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] >= 10_000
    yield "there is no seccomp profile", pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
    yield "the root is writable", own["readOnlyRootFilesystem"]
    yield "the container has capabilities", own["capabilities"] == {"drop": ["ALL"]}
    yield "the container may gain privileges", own["allowPrivilegeEscalation"] is False
    yield "a service account token is mounted", pod["automountServiceAccountToken"] is False
    resources = container["resources"]
    yield "requests or the memory limit are missing", {"memory", "cpu"} <= set(resources["requests"]) and "memory" in resources["limits"]


def against_itself(manifests):
    its = Parts(manifests)
    for check in (selecting, naming, network_policy, running):
        yield from (what for what, is_so in check(its) if not is_so)


def against_the_program(manifests, binary):
    """Yields the findings of `scoregate check` on the settings and the environment, with existing secrets."""
    (settings,) = one_of(manifests, "ConfigMap")["data"].values()
    pod = one_of(manifests, "StatefulSet")["spec"]["template"]["spec"]
    environment = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
    with tempfile.TemporaryDirectory() as directory:
        for name in ("admin-token", "upstream-credential"):
            (pathlib.Path(directory) / name).write_text("a secret only for this check\n")
        file = pathlib.Path(directory) / "scoregate.toml"
        file.write_text(settings.replace("/etc/scoregate/secrets", directory))
        checked = subprocess.run([binary, "check", "--config", file], env=environment, capture_output=True, text=True)
    if checked.returncode:
        yield f"scoregate check: {checked.stderr.strip()}"


def findings(manifests, binary):
    # Manifests that violate the schemas are not checked further.
    return [*against_schemas(manifests)] or [*against_itself(manifests), *against_the_program(manifests, binary)]


def planted(manifests):
    """Yields manifests with planted mistakes, each with a part of the expected finding."""

    def change(words, how):
        copied = copy.deepcopy(manifests)
        how(one_of(copied, "StatefulSet")["spec"], copied)
        return words, copied

    pod = lambda spec: spec["template"]["spec"]
    container = lambda spec: pod(spec)["containers"][0]
    yield change("readinesProbe", lambda spec, _: container(spec).update(readinesProbe={}))
    yield change("terminationGracePeriodSeconds", lambda spec, _: pod(spec).update(terminationGracePeriodSeconds="75s"))
    yield change("takes longer", lambda spec, _: pod(spec).update(terminationGracePeriodSeconds=30))
    yield change("no version", lambda spec, _: container(spec).update(image="scoregate:latest"))
    yield change("no such setting", lambda _, all_of: rewrite(one_of(all_of, "ConfigMap")["data"], "format", "formatt"))
    yield change("no setting has this variable", lambda spec, _: container(spec)["env"].append({"name": "SCOREGATE_LISTN", "value": "x"}))
    yield change("refuses names", lambda spec, _: [one.update(value="x") for one in container(spec)["env"] if one["name"] == "SCOREGATE_ADMIN_HOSTS"])
    yield change("does not select", lambda _, all_of: one_of(all_of, "NetworkPolicy")["spec"].update(podSelector={}))


def rewrite(data, one, other):
    for name, text in data.items():
        data[name] = text.replace(one, other)


def main():
    binary = os.path.realpath(sys.argv[1])
    wrong, seen = [], 0
    for overlay in sorted(OVERLAYS.iterdir()):
        manifests = built(overlay)
        assert {kind for kind, _ in manifests} == KINDS, sorted(manifests)
        wrong += [f"{overlay.name}: {finding}" for finding in findings(manifests, binary)]
        seen += len(manifests)
    assert seen >= 2 * len(KINDS)
    for words, mistaken in planted(manifests):
        try:
            found = findings(mistaken, binary)
        except KeyError as missing:
            found = [f"there is no {missing}"]
        if not any(words in finding for finding in found):
            wrong.append(f"a planted mistake is not detected: {words}: {found}")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"kubernetes: {seen} manifests of two overlays match the schemas of {', '.join(VERSIONS)}, each other and the program")


if __name__ == "__main__":
    main()
