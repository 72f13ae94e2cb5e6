"""Rules for the Kubernetes manifests of one overlay: referenced names exist, selectors match, the network policies allow what
the settings need, and the numbers of pods, timings and privileges are right.

`findings(manifests, defaults)` yields the violations. The rules are those of both forms, one pod with a file and several with
a database; `one_pod` and `several_pods` have their differences.
"""

import math
import re
import tomllib

TIMES = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "Mi": 1 << 20, "Gi": 1 << 30}
NAME = "app.kubernetes.io/name"
# Seconds of a shutdown besides the waits for requests and transactions.
OTHER_WORK = 5


def one_of(manifests, *kinds):
    found = [one for (its, _), one in manifests.items() if its in kinds]
    assert len(found) == 1, f"{len(found)} of kind {kinds}"
    return found[0]


def number_of(text, units):
    number, unit = re.fullmatch(r"(\d+)(\w+)", text).groups()
    return int(number) * units[unit]


def database(url):
    """The user, the hosts with their ports, and the database of a URL."""
    user, hosts, name = re.fullmatch(r"postgresql://(\w+)@([^/]+)/(\w+)", url).groups()
    return user, [(host, int(port or 5432)) for host, _, port in (one.partition(":") for one in hosts.split(","))], name


class Parts:
    """The parts of the manifests that the rules use."""

    def __init__(self, manifests, defaults):
        self.all = manifests
        workload = one_of(manifests, "StatefulSet", "Deployment")
        self.is_fleet = workload["kind"] == "Deployment"
        self.name, self.spec = workload["metadata"]["name"], workload["spec"]
        self.labels = self.spec["template"]["metadata"]["labels"]
        self.pod = self.spec["template"]["spec"]
        (self.container,) = self.pod["containers"]
        self.ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        self.services = {name: one["spec"] for (kind, name), one in manifests.items() if kind == "Service"}
        self.policies = {name: one["spec"] for (kind, name), one in manifests.items() if kind == "NetworkPolicy"}
        self.budget = one_of(manifests, "PodDisruptionBudget")["spec"]
        self.environment = {one["name"]: one["value"] for one in self.container["env"]}
        (text,) = one_of(manifests, "ConfigMap")["data"].values()
        self.file, self.defaults = tomllib.loads(text), defaults

    def setting(self, path):
        """The value in force: a variable overrides the file, and the file the default."""
        table, name = path.split(".")
        of_table = self.file.get(table, {})
        return self.environment.get(f"SCOREGATE_{table}_{name}".upper()) or of_table.get(name) or self.defaults[path]

    def duration(self, path):
        return number_of(self.setting(path), TIMES)


def selecting(its):
    """Every selector matches the pods, in one namespace."""
    selectors = {"the workload": its.spec["selector"]["matchLabels"], "the budget": its.budget["selector"]["matchLabels"]}
    selectors |= {f"policy {name}": policy["podSelector"].get("matchLabels", {}) for name, policy in its.policies.items()}
    selectors |= {f"service {name}": service["selector"] for name, service in its.services.items()}
    for name, selector in selectors.items():
        yield f"{name} does not select the pods", selector and selector.items() <= its.labels.items()
    namespace = one_of(its.all, "Namespace")["metadata"]
    enforced = namespace["labels"]["pod-security.kubernetes.io/enforce"]
    yield "the namespace does not enforce the restricted profile", enforced == "restricted"
    for (kind, name), one in its.all.items():
        yield f"{kind} {name} is in another namespace", kind == "Namespace" or one["metadata"]["namespace"] == namespace["name"]


def naming(its):
    """Referenced ports and services exist."""
    for service in its.services.values():
        for port in service["ports"]:
            yield f"there is no port {port['targetPort']}", port["targetPort"] in its.ports
    (side,) = [name for name, service in its.services.items() if service.get("clusterIP") == "None"]
    yield "the service of the set is not the headless one", its.is_fleet or its.spec["serviceName"] == side
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        yield f"{probe} does not use the side port", its.container[probe]["httpGet"]["port"] == "side"
    yield "the readiness probe does not use /readyz", its.container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    for name, address in (("http", its.file["listen"]), ("side", its.file["admin"]["listen"])):
        yield f"the settings listen on {address}", address == f"0.0.0.0:{its.ports[name]}"
    namespace = one_of(its.all, "Namespace")["metadata"]["name"]
    listed = its.environment["SCOREGATE_ADMIN_HOSTS"].split(",")
    host_names = {side, f"{side}.{namespace}.svc", f"{side}.{namespace}.svc.cluster.local"}
    yield "the side port refuses names of its service", host_names | set(its.file["admin"]["hosts"]) <= set(listed)
    scrape = its.spec["template"]["metadata"]["annotations"]
    yield "the scrape annotation has another port", scrape["prometheus.io/port"] == str(its.ports["side"])


def mounting(its):
    """Volumes and files exist, and only the data directory can be written."""
    volumes = {volume["name"]: volume for volume in its.pod["volumes"]}
    claims = {claim["metadata"]["name"] for claim in its.spec.get("volumeClaimTemplates", [])}
    mounts = {mount["name"]: mount["mountPath"] for mount in its.container["volumeMounts"]}
    yield "volumes and mounts differ", set(mounts) == set(volumes) | claims
    yield "the mounted ConfigMap does not exist", ("ConfigMap", volumes["settings"]["configMap"]["name"]) in its.all
    written = {mounts[name] for name in claims | {name for name, volume in volumes.items() if "emptyDir" in volume}}
    yield "a path other than the data directory is writable", written == {its.file["data_dir"]}
    secrets = [volume for volume in volumes.values() if "secret" in volume]
    files = {f"{mounts[volume['name']]}/{item['path']}" for volume in secrets for item in volume["secret"]["items"]}
    store = its.file.get("store", {})
    configured = {its.file["admin"]["token_file"], its.file["upstream"]["credential_file"]}
    configured |= {store[name] for name in ("password_file", "ca_file") if name in store}
    yield f"the mounted secrets are {files}, the settings name {configured}", files == configured
    yield "a manifest contains a secret", not any(kind == "Secret" for kind, _ in its.all)


def network_policy(its):
    """Only the ingress and the monitoring can connect to the pods, which can connect only to DNS, the backend and the
    database."""
    policies = its.policies.values()
    for kind in ("Ingress", "Egress"):
        yield f"{kind} is not restricted", any(kind in policy["policyTypes"] for policy in policies)
    rules = [rule for policy in policies for rule in policy.get("ingress", [])]
    ingress = [(rule["from"], [port["port"] for port in rule["ports"]]) for rule in rules]
    yield "each port needs exactly one ingress rule", sorted(sum((ports for _, ports in ingress), [])) == ["http", "side"]
    known = all(peer.get("namespaceSelector", {}).get("matchLabels") for peers, _ in ingress for peer in peers)
    yield "an ingress rule does not name a namespace", known
    host, port = re.fullmatch(r"http://([\w-]+):(\d+)/.*", its.file["upstream"]["url"]).groups()
    servers = {"the backend": (host, int(port))}
    if its.is_fleet:
        servers |= {f"the database {host}": (host, port) for host, port in database(its.setting("store.url"))[1]}
    yield from reaching(policies, servers)


def reaching(policies, servers):
    """The policies allow connections to DNS and to these servers, and to no others."""
    rules = [rule for policy in policies for rule in policy["egress"]]
    egress = [(rule["to"], {port["port"] for port in rule["ports"]}) for rule in rules]
    for name, (host, port) in servers.items():
        yield f"{name} cannot be reached", ([{"podSelector": {"matchLabels": {NAME: host}}}], {port}) in egress
    yield "DNS cannot be reached", any(ports == {53} for _, ports in egress)
    yield "there are further egress rules", len(egress) == len(servers) + 1


def privileges(pod):
    """Few privileges, a fixed version and bounded memory."""
    yield "the pod runs as root", pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] >= 10_000
    yield "there is no seccomp profile", pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
    yield "a service account token is mounted", pod["automountServiceAccountToken"] is False
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        own, resources = container["securityContext"], container["resources"]
        yield f"no version in {container['image']}", re.search(r"/.+:\d+\.\d+\.\d+$", container["image"])
        yield "the root is writable", own["readOnlyRootFilesystem"]
        yield "the container has capabilities", own["capabilities"] == {"drop": ["ALL"]}
        yield "the container may gain privileges", own["allowPrivilegeEscalation"] is False
        bounded = {"memory", "cpu"} <= set(resources["requests"]) and "memory" in resources["limits"]
        yield "requests or the memory limit are missing", bounded


def stopping(its):
    """The pod has enough time for its shutdown: requests, ledger calls, and the transactions that return its leases."""
    pause = its.container["lifecycle"]["preStop"]["sleep"]["seconds"]
    transactions = 2 * its.duration("store.timeout") if its.is_fleet else 0
    needed = pause + 2 * its.duration("server.shutdown_timeout") + transactions + OTHER_WORK
    yield f"a graceful shutdown takes longer, up to {needed:g} s", its.pod["terminationGracePeriodSeconds"] >= needed


def one_pod(its):
    """The store is a file, which one process locks."""
    yield "there is more than one process", its.spec["replicas"] == 1
    yield "the store is a database", "store" not in its.file


def several_pods(its):
    """The pods share a database, and no rollout or drain leaves fewer than two of them."""
    autoscaler = one_of(its.all, "HorizontalPodAutoscaler")["spec"]
    target = autoscaler["scaleTargetRef"]
    yield "the autoscaler has another target", (target["kind"], target["name"]) == ("Deployment", its.name)
    yield "there are fewer than three pods", autoscaler["minReplicas"] >= 3
    yield "a rollout resets the number of pods", "replicas" not in its.spec
    metrics = [one["resource"]["name"] for one in autoscaler["metrics"]]
    yield "the autoscaler does not follow the CPU", metrics == ["cpu"]
    update = its.spec["strategy"]["rollingUpdate"]
    yield "a rollout stops pods before their replacements are ready", update["maxUnavailable"] == 0
    most = autoscaler["maxReplicas"] + surge(update["maxSurge"], autoscaler["maxReplicas"])
    yield f"store.gateways is below the {most} pods of a rollout", int(its.setting("store.gateways")) >= most
    yield "a drain can stop several pods", its.budget["maxUnavailable"] == 1
    for domain in ("kubernetes.io/hostname", "topology.kubernetes.io/zone"):
        spread = [one for one in its.pod["topologySpreadConstraints"] if one["topologyKey"] == domain]
        counted = [one["labelSelector"]["matchLabels"].items() <= its.labels.items() for one in spread]
        yield f"the pods are not spread over {domain}", counted == [True] and spread[0]["maxSkew"] == 1
    (data,) = [volume["emptyDir"] for volume in its.pod["volumes"] if "emptyDir" in volume]
    documents = number_of(its.setting("cache.disk_max_bytes"), SIZES)
    yield "the data directory is unlimited or too small", number_of(data["sizeLimit"], SIZES) >= 4 * documents
    yield "there is no pause for load balancers", its.container["lifecycle"]["preStop"]["sleep"]["seconds"] >= 10
    yield "the store is not a database", "store" in its.file


def surge(value, replicas):
    """A number of pods, or a percentage that Kubernetes rounds up."""
    return value if isinstance(value, int) else math.ceil(replicas * int(value.rstrip("%")) / 100)


def findings(manifests, defaults):
    its = Parts(manifests, defaults)
    of_form = several_pods if its.is_fleet else one_pod
    for rule in (selecting, naming, mounting, network_policy, stopping, of_form):
        yield from (what for what, is_so in rule(its) if not is_so)
    yield from (what for what, is_so in privileges(its.pod) if not is_so)


def findings_of_tables(manifests, of_gateways, defaults):
    """Violations of the job that creates and upgrades the tables of these gateways."""
    its, job = Parts(of_gateways, defaults), one_of(manifests, "Job")
    yield from (what for what, is_so in tables(its, manifests, job) if not is_so)
    yield from (what for what, is_so in privileges(job["spec"]["template"]["spec"]) if not is_so)


def tables(its, manifests, job):
    template = job["spec"]["template"]
    pod, labels = template["spec"], template["metadata"]["labels"]
    containers = [*pod["initContainers"], *pod["containers"]]
    user, servers, name = database(its.setting("store.url"))
    rights = ["--runtime-role", user]
    commands = [["store", "init", *rights], ["store", "upgrade", *rights]]
    yield f"the job does not run {commands}", [one["args"] for one in containers] == commands
    yield "the job has another version than the gateways", {one["image"] for one in containers} == {its.container["image"]}
    yield "the job is in another namespace", job["metadata"]["namespace"] == one_of(its.all, "Namespace")["metadata"]["name"]
    others = [its.spec["selector"]["matchLabels"], *(service["selector"] for service in its.services.values())]
    yield "a selector of the gateways includes the job", not any(one.items() <= labels.items() for one in others)
    (volume,) = pod["volumes"]
    for container in containers:
        environment = {one["name"]: one["value"] for one in container["env"]}
        owner, at, of_job = database(environment["SCOREGATE_STORE_URL"])
        yield "the job uses another database", (at, of_job) == (servers, name)
        yield "the job has the role of the gateways", owner != user
        (mount,) = container["volumeMounts"]
        items = [item["path"] for source in volume["projected"]["sources"] for item in source["secret"]["items"]]
        files = {f"{mount['mountPath']}/{path}" for path in items}
        named = {environment["SCOREGATE_STORE_PASSWORD_FILE"], environment["SCOREGATE_STORE_CA_FILE"]}
        yield "the job's secrets and settings differ", files == named
    policy = one_of(manifests, "NetworkPolicy")["spec"]
    yield "the job's policy selects other pods", policy["podSelector"]["matchLabels"].items() <= labels.items()
    yield from reaching([policy], {f"the database {host}": (host, port) for host, port in servers})
