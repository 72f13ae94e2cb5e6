"""Rules for the manifests that the chart renders: referenced names exist, selectors match, the network policies allow what the
settings need, and the numbers of pods, timings and privileges are right.

`findings(manifests, defaults)` yields the violations. The rules are those of both modes, one pod with a file and several with
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
    """The object of these kinds; of several, the one that has the name of the workload, which begins the other names."""
    found = {name: one for (its, name), one in manifests.items() if its in kinds}
    return found[min(found, key=len)]


def number_of(text, units):
    number, unit = re.fullmatch(r"(\d+)(\w+)", text).groups()
    return int(number) * units[unit]


def database(url):
    """The user, the hosts with their ports, and the database of a URL."""
    user, hosts, name = re.fullmatch(r"postgresql://(\w+)@([^/]+)/(\w+)", url).groups()
    return user, [(host, int(port or 5432)) for host, _, port in (one.partition(":") for one in hosts.split(","))], name


def environment_of(container):
    return {one["name"]: one["value"] for one in container["env"]}


class Parts:
    """The parts of the manifests that the rules use."""

    def __init__(self, manifests, defaults):
        self.all = manifests
        workload = one_of(manifests, "StatefulSet", "Deployment")
        self.is_fleet = workload["kind"] == "Deployment"
        self.name, self.namespace, self.spec = workload["metadata"]["name"], workload["metadata"]["namespace"], workload["spec"]
        self.labels = self.spec["template"]["metadata"]["labels"]
        self.pod = self.spec["template"]["spec"]
        (self.container,) = self.pod["containers"]
        self.ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        self.services = {name: one["spec"] for (kind, name), one in manifests.items() if kind == "Service"}
        self.policy = manifests["NetworkPolicy", self.name]["spec"]
        self.budget = one_of(manifests, "PodDisruptionBudget")["spec"]
        self.environment = environment_of(self.container)
        (text,) = one_of(manifests, "ConfigMap")["data"].values()
        self.file, self.defaults = tomllib.loads(text), defaults

    def setting(self, path):
        """The value in force: a variable overrides the file, and the file the default."""
        value = self.file
        for name in path.split("."):
            value = value.get(name, {})
        variable = self.environment.get(f"SCOREGATE_{path.replace('.', '_')}".upper())
        return variable or value or self.defaults.get(path)

    def duration(self, path):
        return number_of(self.setting(path), TIMES)

    def files(self):
        """The files that the settings name, besides the configuration file."""
        variables = {value for name, value in self.environment.items() if name.endswith("_FILE")}
        tables = [table for table in self.file.values() if isinstance(table, dict)]
        return variables | {value for table in tables for name, value in table.items() if name.endswith("_file")}


def selecting(its):
    """Every selector matches the pods, in one namespace."""
    selectors = {"the workload": its.spec["selector"]["matchLabels"], "the budget": its.budget["selector"]["matchLabels"]}
    selectors["the policy"] = its.policy["podSelector"].get("matchLabels", {})
    selectors |= {f"service {name}": service["selector"] for name, service in its.services.items()}
    for name, selector in selectors.items():
        yield f"{name} does not select the pods", selector and selector.items() <= its.labels.items()
    for (kind, name), one in its.all.items():
        yield f"{kind} {name} is in another namespace", one["metadata"]["namespace"] == its.namespace


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
    for name, address in (("http", its.setting("listen")), ("side", its.setting("admin.listen"))):
        yield f"the settings listen on {address}", address == f"0.0.0.0:{its.ports[name]}"
    host_names = {side, f"{side}.{its.namespace}.svc", f"{side}.{its.namespace}.svc.cluster.local"}
    yield "the side port refuses names of its service", host_names <= set(its.setting("admin.hosts").split(","))
    scrape = its.spec["template"]["metadata"].get("annotations", {}).get("prometheus.io/port")
    monitored = [one["spec"] for (kind, _), one in its.all.items() if kind == "PodMonitor"]
    yield "the scrape annotation has another port", scrape == (None if monitored else str(its.ports["side"]))
    for monitor in monitored:
        yield "the monitor does not select the pods", monitor["selector"]["matchLabels"].items() <= its.labels.items()
        yield "the monitor has another port", [one["port"] for one in monitor["podMetricsEndpoints"]] == ["side"]
        yield "the job is not the one of the rules", its.labels[monitor["jobLabel"]] == "scoregate"
    yield from routing(its)


def routing(its):
    """The ways from outside lead to the public port."""
    public = its.services[its.name]
    yield "the public service has another port", [port["targetPort"] for port in public["ports"]] == ["http"]
    for (kind, _), one in its.all.items():
        if kind == "Ingress":
            (rule,) = one["spec"]["rules"]
            (path,) = rule["http"]["paths"]
            target = {"name": its.name, "port": {"name": public["ports"][0]["name"]}}
            yield "the ingress has another target", (path["path"], path["backend"]["service"]) == ("/", target)
            yield "the certificate is for another host", all(tls["hosts"] == [rule["host"]] for tls in one["spec"].get("tls", []))
        if kind == "HTTPRoute":
            targets = [target for rule in one["spec"]["rules"] for target in rule["backendRefs"]]
            yield "the route has another target", targets == [{"name": its.name, "port": public["ports"][0]["port"]}]


def mounting(its):
    """Volumes and files exist, and only the data directory can be written."""
    volumes = {volume["name"]: volume for volume in its.pod["volumes"]}
    claims = {claim["metadata"]["name"] for claim in its.spec.get("volumeClaimTemplates", [])}
    mounts = {mount["name"]: mount["mountPath"] for mount in its.container["volumeMounts"]}
    read_only = {mount["name"] for mount in its.container["volumeMounts"] if mount.get("readOnly")}
    yield "volumes and mounts differ", set(mounts) == set(volumes) | claims
    yield "the mounted ConfigMap does not exist", ("ConfigMap", volumes["settings"]["configMap"]["name"]) in its.all
    settings = f"{mounts['settings']}/{next(iter(one_of(its.all, 'ConfigMap')['data']))}"
    yield "the program reads another file", its.environment["SCOREGATE_CONFIG"] == settings
    written = {mounts[name] for name in set(mounts) - read_only}
    yield "a path other than the data directory is writable", written == {its.setting("data_dir")}
    secrets = [volume for volume in volumes.values() if "secret" in volume]
    files = {f"{mounts[volume['name']]}/{item['path']}" for volume in secrets for item in volume["secret"]["items"]}
    yield f"the mounted secrets are {files}, the settings name {its.files()}", files == its.files()
    contained = {name for kind, name in its.all if kind == "Secret"}
    yield "a manifest contains a secret", contained <= {f"{its.name}-alertmanager"}


def network_policy(its):
    """Only the ingress and the monitoring can connect to the pods, which can connect only to DNS, the backend and the
    database."""
    yield "connections are not restricted", its.policy["policyTypes"] == ["Ingress", "Egress"]
    ingress = [(rule["from"], [port["port"] for port in rule["ports"]]) for rule in its.policy["ingress"]]
    yield "each port needs exactly one ingress rule", sorted(sum((ports for _, ports in ingress), [])) == ["http", "side"]
    known = all(peer.get("namespaceSelector", {}).get("matchLabels") for peers, _ in ingress for peer in peers)
    yield "an ingress rule does not name a namespace", known
    servers = {}
    for url in its.file.get("upstream", {}).get("urls", [its.setting("upstream.url")]):
        if url:
            host, port = re.fullmatch(r"http://([\w-]+):(\d+)/.*", url).groups()
            servers["the backend"] = (host, int(port))
    if its.is_fleet:
        servers |= {f"the database {host}": (host, port) for host, port in database(its.setting("store.url"))[1]}
    yield from reaching(its.policy, servers)


def reaching(policy, servers):
    """The policy allows connections to DNS and to these servers, and to no others."""
    egress = [(rule["to"], {port["port"] for port in rule["ports"]}) for rule in policy["egress"]]
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
        yield f"no version in {container['image']}", re.search(r":\d+\.\d+\.\d+(@sha256:\w+)?$", container["image"])
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
    yield "the store is a database", its.setting("store.url") is None
    if any(kind == "CronJob" for kind, _ in its.all):
        yield from backing_up(its, one_of(its.all, "CronJob"))


def several_pods(its):
    """The pods share a database, and no rollout or drain leaves fewer than two of them."""
    pods = its.spec.get("replicas")
    if ("HorizontalPodAutoscaler", its.name) in its.all:
        autoscaler = one_of(its.all, "HorizontalPodAutoscaler")["spec"]
        target = autoscaler["scaleTargetRef"]
        yield "the autoscaler has another target", (target["kind"], target["name"]) == ("Deployment", its.name)
        yield "there are fewer than three pods", autoscaler["minReplicas"] >= 3
        yield "a rollout resets the number of pods", pods is None
        metrics = [one["resource"]["name"] for one in autoscaler["metrics"]]
        yield "the autoscaler does not follow the CPU", metrics == ["cpu"]
        pods = autoscaler["maxReplicas"]
    update = its.spec["strategy"]["rollingUpdate"]
    yield "a rollout stops pods before their replacements are ready", update["maxUnavailable"] == 0
    most = pods + surge(update["maxSurge"], pods)
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
    yield "the store is not a database", its.setting("store.url") is not None
    yield from tables(its, one_of(its.all, "Job"))


def surge(value, replicas):
    """A number of pods, or a percentage that Kubernetes rounds up."""
    return value if isinstance(value, int) else math.ceil(replicas * int(value.rstrip("%")) / 100)


def findings(manifests, defaults):
    its = Parts(manifests, defaults)
    of_form = several_pods if its.is_fleet else one_pod
    for rule in (selecting, naming, mounting, network_policy, stopping, of_form):
        yield from (what for what, is_so in rule(its) if not is_so)
    yield from (what for what, is_so in privileges(its.pod) if not is_so)


def of_job(its, job, pod, labels):
    """Checks of the pod of a job: it has the gateways' program, no service selects it, and a policy of its own does."""
    yield from privileges(pod)
    containers = [*pod.get("initContainers", []), *pod["containers"]]
    yield "the job has another version than the gateways", {one["image"] for one in containers} == {its.container["image"]}
    others = [its.spec["selector"]["matchLabels"], *(service["selector"] for service in its.services.values())]
    yield "a selector of the gateways includes the job", not any(one.items() <= labels.items() for one in others)
    policy = its.all["NetworkPolicy", job["metadata"]["name"]]["spec"]
    yield "the job's policy selects other pods", policy["podSelector"]["matchLabels"].items() <= labels.items()
    yield "the job's connections are not restricted", policy["policyTypes"] == ["Ingress", "Egress"] and "ingress" not in policy


def tables(its, job):
    """The job that creates and upgrades the tables."""
    template = job["spec"]["template"]
    pod, labels = template["spec"], template["metadata"]["labels"]
    yield from of_job(its, job, pod, labels)
    containers = [*pod["initContainers"], *pod["containers"]]
    user, servers, name = database(its.setting("store.url"))
    rights = ["--runtime-role", user]
    commands = [["store", "init", *rights], ["store", "upgrade", *rights]]
    yield f"the job does not run {commands}", [one["args"] for one in containers] == commands
    policy = its.all["NetworkPolicy", job["metadata"]["name"]]
    before, after = (one["metadata"].get("annotations", {}) for one in (policy, job))
    hooks = {one.get("helm.sh/hook") for one in (before, after)}
    is_first = int(before.get("helm.sh/hook-weight", 0)) < int(after.get("helm.sh/hook-weight", 0))
    yield "the job does not precede a rollout, and its policy the job", hooks == {"pre-install,pre-upgrade"} and is_first
    (volume,) = pod["volumes"]
    for container in containers:
        environment = environment_of(container)
        owner, at, of_owner = database(environment["SCOREGATE_STORE_URL"])
        yield "the job uses another database", (at, of_owner) == (servers, name)
        yield "the job has the role of the gateways", owner != user
        (mount,) = container["volumeMounts"]
        items = [item["path"] for source in volume["projected"]["sources"] for item in source["secret"]["items"]]
        files = {f"{mount['mountPath']}/{path}" for path in items}
        named = {value for variable, value in environment.items() if variable.endswith("_FILE")}
        yield "the job's secrets and settings differ", files == named
    yield from reaching(policy["spec"], {f"the database {host}": (host, port) for host, port in servers})


def backing_up(its, job):
    """The job that backs up the store. It shares the volume of the pod, on the same node."""
    template = job["spec"]["jobTemplate"]["spec"]["template"]
    pod, labels = template["spec"], template["metadata"]["labels"]
    yield from of_job(its, job, pod, labels)
    yield "the job may connect to something", "egress" not in its.all["NetworkPolicy", job["metadata"]["name"]]["spec"]
    yield "two backups can run concurrently", job["spec"]["concurrencyPolicy"] == "Forbid"
    (claim,) = its.spec["volumeClaimTemplates"]
    yield "the volume allows one pod only", claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    claims = {volume["name"]: volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"]}
    yield "the job reads another volume", claims["data"] == f"{claim['metadata']['name']}-{its.name}-0"
    yield "the claim of the backups does not exist", ("PersistentVolumeClaim", claims["backups"]) in its.all
    (near,) = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    is_near = near["topologyKey"] == "kubernetes.io/hostname" and near["labelSelector"]["matchLabels"].items() <= its.labels.items()
    yield "the job may run on another node than the pod", is_near
    (container,) = pod["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    paths = [f"--to {mounts['backups']} ", f"--data-dir {mounts['data']} "]
    yield "the command has other directories than the volumes", all(path in " ".join([*container["args"], ""]) for path in paths)
    yield "the data directory is at another path", mounts["data"] == its.setting("data_dir")
