"""The Kubernetes manifests: each overlay as kustomize makes it, held against the schemas of Kubernetes, where a field that
does not exist is an error, and against itself and the program: names lead somewhere, selectors select, the settings are
the program's, the stop is given its time.

    manifests.py BINARY

It has to be run by a Python that has what `tools.txt` lists. Not for: what a cluster says to it.
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
# The oldest in which a pod can pause before its stop without a shell, and the newest whose schemas there are.
VERSIONS = ("1.30", "1.33", "1.37")
KINDS = {"Namespace", "ConfigMap", "Service", "StatefulSet", "PodDisruptionBudget", "NetworkPolicy"}
TIMES = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


def built(overlay):
    """What kustomize makes of an overlay, by kind and name."""
    kubectl = pathlib.Path(sys.executable).with_name("kubectl")
    made = subprocess.run([kubectl, "kustomize", overlay], capture_output=True, text=True, check=True)
    assert not made.stderr, made.stderr
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(made.stdout)}


def against_schemas(manifests):
    """What the schemas refuse, a field that does not exist among it."""
    for manifest in manifests.values():
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(manifest, version, strict=True)
            except kubernetes_validate.ValidationError as refused:
                yield f"{manifest['kind']} in {version}: {'.'.join(map(str, refused.path))}: {refused.message}"


def one_of(manifests, kind):
    found = [one for (its, _), one in manifests.items() if its == kind]
    assert len(found) == 1, f"{len(found)} of kind {kind}"
    return found[0]


def seconds(written):
    number, unit = re.fullmatch(r"(\d+)(\w+)", written).groups()
    return int(number) * TIMES[unit]


class Parts:
    """What the checks look at, taken apart."""

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
    """Everything that selects pods selects these, in one namespace."""
    labels = its.set["template"]["metadata"]["labels"].items()
    selectors = {
        "the set": its.set["selector"]["matchLabels"],
        "the budget": one_of(its.all, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        "the policy": its.policy["podSelector"].get("matchLabels", {}),
    } | {f"service {name}": service["selector"] for name, service in its.services.items()}
    for who, selector in selectors.items():
        yield f"{who} does not select the pods", selector and selector.items() <= labels
    namespace = one_of(its.all, "Namespace")["metadata"]
    enforced = namespace["labels"]["pod-security.kubernetes.io/enforce"]
    yield "the namespace lets in what is not restricted", enforced == "restricted"
    for (kind, name), one in its.all.items():
        yield f"{kind} {name} is in another namespace", kind == "Namespace" or one["metadata"]["namespace"] == namespace["name"]


def naming(its):
    """Names of ports, services, volumes and files lead somewhere."""
    for service in its.services.values():
        for port in service["ports"]:
            yield f"there is no port {port['targetPort']}", port["targetPort"] in its.ports
    headless = [name for name, service in its.services.items() if service.get("clusterIP") == "None"]
    yield "the set's service is not there, or not headless", its.set["serviceName"] in headless
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        yield f"{probe} asks another port than the side port", its.container[probe]["httpGet"]["port"] == "side"
    yield "readiness is something else", its.container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    for name, address in (("http", its.settings["listen"]), ("side", its.settings["admin"]["listen"])):
        yield f"the settings listen on {address}", address == f"0.0.0.0:{its.ports[name]}"
    namespace = one_of(its.all, "Namespace")["metadata"]["name"]
    (listed,) = [one["value"] for one in its.container["env"] if one["name"] == "SCOREGATE_ADMIN_HOSTS"]
    service = its.set["serviceName"]
    asked = {service, f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local"}
    yield "the side port refuses names of its service", asked | set(its.settings["admin"]["hosts"]) <= set(listed.split(","))
    scrape = its.set["template"]["metadata"]["annotations"]
    yield "it is scraped elsewhere", scrape["prometheus.io/port"] == str(its.ports["side"])

    volumes = {volume["name"]: volume for volume in its.pod["volumes"]}
    claims = {claim["metadata"]["name"] for claim in its.set["volumeClaimTemplates"]}
    mounts = {mount["name"]: mount for mount in its.container["volumeMounts"]}
    yield "volumes and mounts differ", set(mounts) == set(volumes) | claims
    yield "there is no such ConfigMap", ("ConfigMap", volumes["settings"]["configMap"]["name"]) in its.all
    written = {mounts[claim]["mountPath"] for claim in claims}
    yield "another place than the data directory can be written", written == {its.settings["data_dir"]}
    files = {f"{mounts['secrets']['mountPath']}/{item['path']}" for item in volumes["secrets"]["secret"]["items"]}
    said = {its.settings["admin"]["token_file"], its.settings["upstream"]["credential_file"]}
    yield f"the secrets are {files}, the settings look for {said}", files == said
    yield "a secret's value is in a manifest", not any(kind == "Secret" for kind, _ in its.all)


def letting(its):
    """Who may talk to it, and to whom it may talk."""
    let_in = [(rule["from"], [port["port"] for port in rule["ports"]]) for rule in its.policy["ingress"]]
    yield "each port has one kind of visitors", sorted(sum((ports for _, ports in let_in), [])) == ["http", "side"]
    known = all(peer.get("namespaceSelector", {}).get("matchLabels") for peers, _ in let_in for peer in peers)
    yield "anybody may come in", known
    let_out = [(rule["to"], {port["port"] for port in rule["ports"]}) for rule in its.policy["egress"]]
    name, port = re.fullmatch(r"http://([\w-]+):(\d+)/.*", its.settings["upstream"]["url"]).groups()
    to_backend = [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": name}}}]
    yield "the backend cannot be reached", (to_backend, {int(port)}) in let_out
    yield "names cannot be looked up", any(ports == {53} for _, ports in let_out)
    yield "it may talk to somebody else", len(let_out) == 2


def running(its):
    """One process of a version that is said, which is given its time and may do little."""
    container, pod, own = its.container, its.pod, its.container["securityContext"]
    yield "one process holds the ledger", its.set["replicas"] == 1
    yield f"no version is said by {container['image']}", re.search(r"/.+:\d+\.\d+\.\d+$", container["image"])
    pause, grace = container["lifecycle"]["preStop"]["sleep"]["seconds"], seconds(its.settings["server"]["shutdown_timeout"])
    yield "a stop in order takes longer", pod["terminationGracePeriodSeconds"] >= pause + 2 * grace + 5
    yield "it is root", pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] >= 10_000
    yield "it may call everything", pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
    yield "its root can be written", own["readOnlyRootFilesystem"]
    yield "it has capabilities", own["capabilities"] == {"drop": ["ALL"]}
    yield "it may gain privileges", own["allowPrivilegeEscalation"] is False
    yield "it can ask the cluster", pod["automountServiceAccountToken"] is False
    resources = container["resources"]
    yield "it is not held to its memory", {"memory", "cpu"} <= set(resources["requests"]) and "memory" in resources["limits"]


def against_itself(manifests):
    its = Parts(manifests)
    for check in (selecting, naming, letting, running):
        yield from (what for what, is_so in check(its) if not is_so)


def against_the_program(manifests, binary):
    """What `scoregate check` says to the settings and the environment, with secrets that are there."""
    (settings,) = one_of(manifests, "ConfigMap")["data"].values()
    pod = one_of(manifests, "StatefulSet")["spec"]["template"]["spec"]
    environment = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
    with tempfile.TemporaryDirectory() as place:
        for name in ("admin-token", "upstream-credential"):
            (pathlib.Path(place) / name).write_text("for the check and nothing else\n")
        file = pathlib.Path(place) / "scoregate.toml"
        file.write_text(settings.replace("/etc/scoregate/secrets", place))
        checked = subprocess.run([binary, "check", "--config", file], env=environment, capture_output=True, text=True)
    if checked.returncode:
        yield f"scoregate check: {checked.stderr.strip()}"


def findings(manifests, binary):
    # What does not fit the schemas cannot be looked at any further.
    return [*against_schemas(manifests)] or [*against_itself(manifests), *against_the_program(manifests, binary)]


def planted(manifests):
    """Mistakes that have to be found, each with a word of what is said then."""

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
            wrong.append(f"a planted mistake is not found: {words}: {found}")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"kubernetes: {seen} manifests of two overlays fit the schemas of {', '.join(VERSIONS)}, themselves and the program")


if __name__ == "__main__":
    main()
