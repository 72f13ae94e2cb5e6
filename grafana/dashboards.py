"""Writes the dashboards of `grafana/dashboards/` from the table below: one line of questions for each panel.

    dashboards.py          writes them
    dashboards.py --check  fails if one of them is not what would be written

Each panel is a question, what it is measured in, what to do about the answer, and its queries. It needs Python alone. Not
for: where the dashboards find Prometheus (`provisioning/`), nor when somebody is woken (`deploy/prometheus/rules/`).
"""

import json
import pathlib
import sys

PLACE = pathlib.Path(__file__).resolve().parent / "dashboards"
SCHEMA = 41
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24

I = 'instance=~"$instance"'
T = f'{I}, tier=~"$tier"'
ASKED = 'endpoint!~"page|options|none"'
YES_NO = {"0": "no", "1": "yes"}
HEALTH = {"0": "closed", "1": "half-open", "2": "open"}

# Colours by meaning, the same in every panel: green is good, amber is degraded or the caller's error, red is a failure.
GREEN, BLUE, LIGHT_BLUE, AMBER, ORANGE, RED, GREY = "#16a34a", "#2563eb", "#38bdf8", "#d97706", "#c2410c", "#dc2626", "#64748b"
# What the values of a label mean. Several values of one pattern get shades of its colour.
MEANINGS = {
    "class": (("2xx", GREEN), ("3xx", BLUE), ("4xx", AMBER), ("5xx", RED)),
    "outcome": (("hit", GREEN), ("miss", BLUE), ("shared", LIGHT_BLUE), ("refreshed", GREY), ("stale", AMBER), ("stale_on_error", ORANGE)),
    "code": (("upstream_.*|overloaded|internal_error", RED), ("quota_exceeded|rate_limit_exceeded|too_many_refusals", AMBER), ("(?!upstream_|overloaded|internal_error|quota_|rate_|too_many_).*", GREY)),
    "result": (("success|applied", GREEN), ("not_found", BLUE), ("unreachable|error_status|timeout|invalid|rejected", RED), ("circuit_open|queue_full", AMBER)),
    "use": (("delivered", GREEN), ("leased", BLUE), ("returned", AMBER), ("lost", RED)),
    "decision": (("grace", AMBER), ("refused", RED)),
    "reason": (("done", GREEN), (".*_timeout", AMBER), ("failed|displaced|address_limit", RED), ("tls_handshake", GREY)),
}
# Legends with a fixed beginning, by how they begin.
PHRASES = (("queued", AMBER), ("refused", RED), ("left before", GREY))
# A legend that begins with this word is a limit: a dashed line.
LIMIT = "limit"


def rate(metric, by="", labels=I):
    return f"sum by ({by}) (rate({metric}{{{labels}}}[$__rate_interval]))" if by else f"sum(rate({metric}{{{labels}}}[$__rate_interval]))"


def quantiles(metric, labels=I, wanted=("0.5", "0.99")):
    inside = f"sum by (le) (rate({metric}_bucket{{{labels}}}[$__rate_interval]))"
    return [(f"histogram_quantile({q}, {inside})", f"{float(q) * 100:g} % within") for q in wanted]


def override(pattern, *properties):
    """Properties of every series whose whole name matches."""
    return {"matcher": {"id": "byRegexp", "options": f"/^(?:{pattern})$/"}, "properties": [{"id": name, "value": value} for name, value in properties]}


def coloured(queries):
    """The overrides that give the series of these queries the colours of their meaning, and limits their line."""
    legends = " ".join(legend for _, legend in queries)
    for label, meanings in MEANINGS.items():
        if f"{{{{{label}}}}}" in legends:
            for pattern, colour in meanings:
                mode = "shades" if "|" in pattern or "*" in pattern else "fixed"
                yield override(pattern, ("color", {"mode": mode, "fixedColor": colour}))
    for phrase, colour in PHRASES:
        if any(legend.startswith(phrase) for _, legend in queries):
            yield override(f"{phrase}.*", ("color", {"mode": "shades", "fixedColor": colour}))
    if any(legend.startswith(LIMIT) for _, legend in queries):
        dashes = {"fill": "dash", "dash": [10, 10]}
        yield override(f"{LIMIT}.*", ("color", {"mode": "fixed", "fixedColor": RED}), ("custom.lineStyle", dashes), ("custom.fillOpacity", 0))


def panel(title, unit, todo, *queries, kind="timeseries", words=None, bad=None, good=None, top=None):
    """`words` name values, from `bad` on a value is red, below `good` as well, `top` is the end of the scale."""
    steps = [{"color": "green" if good is None else "red", "value": None}]
    steps += [{"color": colour, "value": value} for colour, value in (("green", good), ("red", bad)) if value is not None]
    defaults = {"unit": unit, "color": {"mode": "thresholds" if kind == "stat" else "palette-classic"}, "thresholds": {"mode": "absolute", "steps": steps}, "mappings": [], "min": 0}
    if top is not None:
        defaults["max"] = top
    if words:
        options = {value: {"text": text, "index": place} for place, (value, text) in enumerate(words.items())}
        defaults["mappings"] = [{"type": "value", "options": options}]
    if kind == "stat":
        options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value", "textMode": "value_and_name"}
    else:
        line = "line" if len(steps) > 1 else "off"
        defaults["custom"] = {"fillOpacity": 10, "showPoints": "never", "spanNulls": False, "thresholdsStyle": {"mode": line}}
        options = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
    targets = [
        {"refId": chr(ord("A") + place), "datasource": DATASOURCE, "expr": expr, "legendFormat": legend, "instant": False, "range": True}
        for place, (expr, legend) in enumerate(queries)
    ]
    return {
        "type": kind, "title": title, "description": todo, "datasource": DATASOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": list(coloured(queries))}, "options": options, "targets": targets,
    }


def table(title, todo, expr, *columns):
    """The labels of an instant query as rows: these columns in this order."""
    urgency = {"type": "value", "options": {"page": {"color": RED, "index": 0}, "ticket": {"color": AMBER, "index": 1}}}
    defaults = {"unit": "none", "mappings": [], "noValue": "none"}
    organize = {"includeByName": {name: True for name in columns}, "indexByName": {name: place for place, name in enumerate(columns)}}
    coloured_text = {"matcher": {"id": "byName", "options": "severity"}, "properties": [
        {"id": "custom.cellOptions", "value": {"type": "color-text"}}, {"id": "mappings", "value": [urgency]}]}
    return {
        "type": "table", "title": title, "description": todo, "datasource": DATASOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": [coloured_text]}, "options": {"showHeader": True, "cellHeight": "sm"},
        "targets": [{"refId": "A", "datasource": DATASOURCE, "expr": expr, "format": "table", "legendFormat": "", "instant": True, "range": False}],
        "transformations": [{"id": "organize", "options": organize}],
    }


def stat(*arguments, **more):
    return panel(*arguments, kind="stat", **more)


TRUSTED = stat(
    "Is the backend trusted?", "none",
    "If it rests or is on trial for minutes, ask it by hand at upstream.url: what is stored goes on being served, stale. Runbook: ScoregateCircuitBreakerOpen.",
    (f"max by (instance) (scoregate_upstream_breaker_state{{{I}}})", "{{instance}}"), words=HEALTH, bad=1)
TIERS = panel(
    "Which tier sends requests?", "reqps",
    "A step in one tier is one customer or a release of theirs: `scoregate top` names them. Tier none has no known key.",
    (rate("scoregate_tier_requests_total", "tier", T), "{{tier}}"))
TIERS_4XX = panel(
    "Which tier gets 4xx?", "reqps",
    "One tier alone: look on the limits dashboard which rule refuses it. Tier none is requests without a known key.",
    (rate("scoregate_tier_requests_total", "tier", f'{T}, class="4xx"'), "{{tier}}"))
TIERS_5XX = panel(
    "Which tier gets 5xx?", "reqps",
    "Any of it: look at 'Why are requests refused?' on the on-call dashboard. Paid tiers go first wherever there is a queue.",
    (rate("scoregate_tier_requests_total", "tier", f'{T}, class="5xx"'), "{{tier}}"))
HITS = panel(
    "What share is served from memory?", "percentunit",
    "It falls after a purge, a start without a shelf, or when callers ask for what nobody asked for before. If it stays low, raise cache.max_bytes.",
    (f"instance:scoregate_hits:ratio_rate5m{{{I}}}", "{{instance}}"), top=1)
SERVED_OR_OWED = 'class=~"2xx|3xx|5xx", endpoint!~"page|options"'

ON_CALL = [
    stat("Are callers being served?", "percentunit",
         "Below 99.9 %: read 'Why are requests refused?', then the runbook's ScoregateAvailabilityBurnRateFast. 4xx count neither way.",
         (f'1 - sum(rate(scoregate_requests_total{{{I}, class="5xx", endpoint!~"page|options"}}[5m])) / sum(rate(scoregate_requests_total{{{I}, {SERVED_OR_OWED}}}[5m]))', "served"), good=0.999, top=1),
    stat("How fast do error budgets burn?", "suffix: ×",
         "1 spends the month's budget in the month. Above 14 somebody is paged. Each has a section in the runbook. All instances together.",
         ("job:scoregate_answers_failed:ratio_rate1h / 0.001", "availability"),
         ("job:scoregate_answers_slow:ratio_rate1h / 0.01", "latency"),
         ("job:scoregate_answers_old:ratio_rate1h / 0.01", "freshness"), bad=6),
    stat("Is every instance up?", "none", "If one is not, look at its service and the end of its log. Runbook: ScoregateDown.",
         (f'up{{job="scoregate", {I}}}', "{{instance}}"), words=YES_NO, good=1),
    TRUSTED,
    stat("Is something of ours broken?", "short", "Anything but 0 is in the log with its reason. Runbook: ScoregatePanics, ScoregateStoreDamaged, ScoregateLedgerUnreachable, ScoregateConfigRejected, ScoregateCertificateRejected.",
         (f"sum(increase(scoregate_panics_total{{{I}}}[1h]))", "panics in an hour"),
         (f"max(scoregate_store_damaged{{{I}}})", "store damaged"),
         (f"max(scoregate_ledger_unreachable{{{I}}})", "ledger away"),
         (f"max(scoregate_config_rejected{{{I}}})", "settings refused"),
         (f"max(scoregate_certificates_rejected{{{I}}})", "certificates refused"), bad=1),
    table("Which alerts are firing?", "Each has a section of its name in the runbook, RUNBOOK.md. `page` is for now, `ticket` for working hours. All instances.",
          'ALERTS{alertname=~"Scoregate.*", alertstate="firing"}', "alertname", "severity", "instance"),
    panel("How many requests come, and how are they answered?", "reqps",
          "A step in 4xx is the callers' or a release of theirs; a step in 5xx is the backend's or ours; a fall of all is the network before us.",
          (rate("scoregate_requests_total", "class"), "{{class}}")),
    panel("Why are requests refused?", "reqps",
          "upstream_* is the backend, overloaded is places or the ledger, internal_error is a defect of ours; all else is the callers' to mend.",
          (rate("scoregate_refusals_total", "code") + " > 0", "{{code}}")),
    panel("Which endpoint fails?", "reqps", "One alone: its part of the backend fails, or its mapping no longer fits. All: look at the upstream dashboard.",
          (rate("scoregate_requests_total", "endpoint", f'{I}, class="5xx"') + " > 0", "{{endpoint}}")),
    panel("How long do callers wait?", "s", "A hit takes far less than a millisecond. If the median rises, the machine is busy; if only the last per cent does, it waits for the backend or for leases.",
          *quantiles("scoregate_request_duration_seconds", f"{I}, {ASKED}", ("0.5", "0.99", "0.999"))),
    panel("Which endpoint is slow?", "s", "99 % were answered within this, of all instances together. One alone is asked about with ever new parameters, or the backend takes long for it.",
          ("endpoint:scoregate_request_duration_seconds:p99_5m", "{{endpoint}}")),
    TIERS,
    TIERS_4XX,
    HITS,
    panel("Is there room for more?", "percentunit", "The share of overload.cached_slots and overload.waiting_slots in use. `waiting` fills when the backend is slow, `at_hand` when processors are. Runbook: ScoregateConcurrencyExhausted.",
          (f"max by (pool) (scoregate_concurrency_in_use{{{I}}} / scoregate_concurrency_limit{{{I}}})", "places taken, {{pool}}"), ("vector(1)", "limit"), top=1),
    panel("How many requests are being handled?", "short", "Compare with the usual for the hour. A rise without more requests: they take longer, look at the upstream dashboard.",
          (f"scoregate_requests_in_progress{{{I}}}", "{{instance}}")),
    panel("Does anybody queue, go empty-handed or give up?", "reqps", "Refused for want of a place is a 503 of ours. Clients that leave early have a deadline shorter than the backend takes.",
          (rate("scoregate_overload_queued_total", "pool"), "queued, {{pool}}"), (rate("scoregate_overload_refused_total", "pool"), "refused, {{pool}}"),
          (rate("scoregate_client_disconnects_total"), "left before the answer")),
    stat("Which version runs?", "none", "Two versions are a release under way; if it is not, one instance was forgotten.",
         (f"sum by (version) (scoregate_build_info{{{I}}})", "{{version}}")),
    stat("How long has it been running?", "s", "Younger than the last release: it was started anew, and the end of the log before says why. Runbook: ScoregateRestarting.",
         (f"time() - process_start_time_seconds{{{I}}}", "{{instance}}")),
    stat("Were settings read again?", "short", "Refused ones: `scoregate check --config FILE` names what is wrong. Runbook: ScoregateConfigRejected, ScoregateReloadsRejected.",
         (f"sum by (result) (increase(scoregate_reloads_total{{{I}}}[1d]))", "{{result}} within a day")),
]

CACHE = [
    panel("From where is served?", "reqps", "hit and stale cost no wait. Much miss or shared: callers wait for the backend. stale_on_error: the backend fails, look at the upstream dashboard.",
          (rate("scoregate_documents_served_total", "outcome"), "{{outcome}}")),
    HITS,
    panel("How old is what is served?", "s", "Since the backend confirmed it. Above its refresh interval: look whether the refresh is overdue.",
          *quantiles("scoregate_document_age_seconds", wanted=("0.5", "0.9", "0.99"))),
    panel("What share is older than two hours?", "percentunit", "Above 1 % the freshness objective is missed. All instances together. Runbook: ScoregateFreshnessBurnRateFast.",
          ("job:scoregate_answers_old:ratio_rate5m", "{{job}}"), bad=0.01, top=1),
    panel("When does the backend refresh next?", "s", "Counts down to its expected refresh. If it jumps about, the backend changes its mind: set freshness.refresh_interval.",
          (f"scoregate_next_refresh_seconds{{{I}}}", "{{instance}}")),
    panel("Is the next refresh overdue?", "s", "A minute or two is usual. Longer: if the backend is trusted, its own pipeline stands still. Runbook: ScoregateRefreshOverdue.",
          (f"scoregate_refresh_overdue_seconds{{{I}}}", "{{instance}}"), bad=3600),
    stat("How many refreshes in a day?", "short", "Fewer than the backend makes: the gateway was away, or nobody asked. Instances should agree.",
         (f"increase(scoregate_refreshes_total{{{I}}}[1d])", "{{instance}}")),
    panel("How much room do documents take?", "bytes", "Near cache.max_bytes or cache.disk_max_bytes what is used least is dropped: raise them if there is memory.",
          (f"scoregate_cache_bytes{{{I}}}", "in memory, {{instance}}"), (f"scoregate_disk_mirror_bytes{{{I}}}", "on disk, {{instance}}")),
    panel("How many documents are stored?", "short", "A sudden fall is a purge or a start. A steady rise is callers who try every parameter: harmless below cache.max_bytes.",
          (f"scoregate_cache_documents{{{I}}}", "{{instance}}")),
    panel("How many fetches are under way?", "short", "More than upstream.max_concurrent_requests means that some wait for their turn. If it does not come down, the backend hangs.",
          (f"scoregate_fetches_in_progress{{{I}}}", "{{instance}}")),
    panel("How many callers share a fetch?", "short", "Many: one document is wanted by all at once, and the backend is asked once. Nothing to do unless callers also wait long.",
          *quantiles("scoregate_fetch_waiters")),
    panel("How often has a caller what is current already?", "percentunit", "The share of 304. It costs no quota. If a large customer is at 0, tell them of If-None-Match.",
          (rate("scoregate_not_modified_total") + " / " + rate("scoregate_documents_served_total"), "304"), top=1),
    stat("Is what is stored kept on disk?", "short", "Failures in a day. Above 0 the disk under data_dir is full or broken: a restart would begin empty. Runbook: ScoregateDiskMirrorFailing.",
         (f"increase(scoregate_disk_mirror_failures_total{{{I}}}[1d])", "{{instance}}"), bad=1),
]

LIMITS = [
    TIERS,
    TIERS_4XX,
    TIERS_5XX,
    panel("Which rule refuses requests?", "reqps", "minute: bursts; day: quotas are spent, time to talk of a larger tier; guard: repeated errors, see ScoregateGuardFlood.",
          (rate("scoregate_limited_total", "rule", T), "{{rule}}")),
    panel("Which tier do limits refuse?", "reqps", "Choose the tier at the top to see by which rule. Tier none is addresses without a known key.",
          (rate("scoregate_limited_total", "tier", T), "{{tier}}")),
    panel("What share of a tier's requests is refused by a limit?", "percentunit", "A paid tier above a few per cent for a day: its customers need a larger one, or one of them has a loop.",
          (rate("scoregate_limited_total", "tier", T) + " / " + rate("scoregate_tier_requests_total", "tier", T), "{{tier}}"), top=1),
    panel("Does anybody flood us?", "reqps", "Requests refused by the guard. Above 10/s for minutes: `scoregate top` names the addresses and applications; block them at the proxy before us. Runbook: ScoregateGuardFlood.",
          (f"instance:scoregate_guarded:rate5m{{{I}}}", "{{instance}}"), bad=10),
    panel("What becomes of quota units?", "cps", "leased runs ahead of delivered a little and both go together. Much returned: requests fail after they were admitted.",
          (rate("scoregate_quota_units_total", "use"), "{{use}}")),
    stat("Were units lost in a day?", "short", "Units that customers paid for and did not get, by a crash or a failing ledger. Look for restarts and for the ledger being away.",
         (f'sum by (instance) (increase(scoregate_quota_units_total{{{I}, use="lost"}}[1d]))', "{{instance}}"), bad=1),
    stat("Is the ledger away?", "none", "Yes: quotas cannot be written down; look at the disk under data_dir at once. Runbook: ScoregateLedgerUnreachable.",
         (f"scoregate_ledger_unreachable{{{I}}}", "{{instance}}"), words=YES_NO, bad=1),
    panel("What was decided while the ledger was away?", "reqps", "grace is a paid tier running on its hundredth; refused is a 503 of ours. Both are 0 while the ledger is there.",
          (rate("scoregate_ledger_unreachable_decisions_total", "decision"), "{{decision}}")),
    panel("How long does the store take?", "s", "Writes to the disk under data_dir; 99 % took less. Above 100 ms the disk is slow or shared: small quotas wait for each lease.",
          (f"histogram_quantile(0.99, sum by (le, operation) (rate(scoregate_store_duration_seconds_bucket{{{I}}}[$__rate_interval])))", "{{operation}}")),
    panel("Does anybody wait for a lease?", "reqps", "Free tiers lease one by one and wait for each. A rise together with slow leases is felt by callers.",
          (rate("scoregate_lease_waits_total"), "waited")),
    panel("Does the store fail?", "cps", "By what it was asked to do. Anything but 0: room, disk, or a lock on scoregate.db. Runbook: ScoregateStoreFailing.",
          (rate("scoregate_store_failures_total", "operation"), "{{operation}}")),
    stat("Is the store whole?", "short", "Damaged: the log says the way back. Records passed over: their keys get 401. Runbook: ScoregateStoreDamaged, ScoregateStoreRecordsUnreadable.",
         (f"max by (instance) (scoregate_store_damaged{{{I}}})", "damaged, {{instance}}"), (f"max by (instance) (scoregate_store_unreadable_records{{{I}}})", "records passed over, {{instance}}"), bad=1),
    stat("How many keys are known?", "short", "A fall is a purge of revoked ones, or records that could not be read. Instances of one store agree.",
         (f"scoregate_keys{{{I}}}", "{{instance}}")),
]

UPSTREAM = [
    TRUSTED,
    panel("How do questions to the backend end?", "reqps", "unreachable: no connection; refused: it says it cannot; late: above upstream.timeout; invalid: no data of the known shape; resting and crowded were not asked.",
          (rate("scoregate_upstream_requests_total", "result"), "{{result}}")),
    panel("What share of questions fails?", "percentunit", "Above one half for minutes somebody is told. Callers of what is stored notice nothing yet. Runbook: ScoregateBackendErrors.",
          (f"instance:scoregate_upstream_failures:ratio_rate10m{{{I}}}", "{{instance}}"), bad=0.5, top=1),
    panel("How long does the backend take?", "s", "The time in line included. Near upstream.timeout callers get 504: its operator has to act, or the timeout is too short.",
          *quantiles("scoregate_upstream_duration_seconds")),
    panel("Does anything wait for its turn?", "short", "For long: the backend is too slow for what is asked. If it can bear more, raise upstream.max_concurrent_requests.",
          (f"scoregate_upstream_queue_length{{{I}}}", "{{instance}}")),
    panel("Are questions asked twice?", "cps", "The backend closes connections that we still hold: set upstream.idle_timeout below its own limit.",
          (rate("scoregate_upstream_retries_total", "instance"), "{{instance}}")),
    panel("Is the processor the limit?", "short", "Cores in use. Near the limit latency rises: give it more cores, see the runbook's ScoregateLatencyBurnRateFast.",
          (rate("process_cpu_seconds_total", "instance"), "{{instance}}"), (f"scoregate_cpu_limit_cores{{{I}}}", "limit, {{instance}}")),
    panel("Does its memory grow?", "bytes", "It levels off once the cache is full. If it rises for days at the same traffic, lower cache.max_bytes and report it. Runbook: ScoregateMemoryNearLimit.",
          (f"process_resident_memory_bytes{{{I}}}", "{{instance}}"), (f"scoregate_memory_limit_bytes{{{I}}}", "limit, {{instance}}")),
    panel("Is there space on the disk?", "bytes", "Free space where the data directory is; the dashed line is the size of that file system. Runbook: ScoregateDiskSpaceLow.",
          (f"scoregate_data_dir_free_bytes{{{I}}}", "free, {{instance}}"), (f"scoregate_data_dir_size_bytes{{{I}}}", "limit: size, {{instance}}")),
    stat("How old is the last backup?", "s", "Older than two days, or nothing shown: look at the job that runs `scoregate store backup`. Runbook: ScoregateBackupOld, ScoregateBackupMissing.",
         (f"time() - (scoregate_last_backup_timestamp_seconds{{{I}}} > 0)", "{{instance}}"), bad=2 * 86400),
    panel("Are there files left to open?", "short", "Each connection is one. Near the limit: raise LimitNOFILE, or lower server.max_connections. Runbook: ScoregateOpenFilesNearLimit.",
          (f"process_open_fds{{{I}}}", "open, {{instance}}"), (f"process_max_fds{{{I}}}", "limit, {{instance}}")),
    panel("What share of its files is open?", "percentunit", "Above 80 % somebody is paged. Runbook: ScoregateOpenFilesNearLimit.",
          (f"instance:scoregate_open_fds:ratio{{{I}}}", "{{instance}}"), bad=0.8, top=1),
    panel("How many threads are there?", "short", "A few more than server.workers. A rise that stays is work that blocks: look at the disk.",
          (f"process_threads{{{I}}}", "{{instance}}")),
    panel("How many connections are open?", "short", "Near server.max_connections the one that is idle for longest is cut for a new one. Raise it together with the limit of files.",
          (f"scoregate_connections{{{I}}}", "{{instance}}"), (f"scoregate_connections_limit{{{I}}}", "limit, {{instance}}")),
    panel("How do connections end?", "cps", "done is usual. displaced: no place left; head, idle, request, unread: a deadline, many at once are slow or hostile clients; tls: they do not speak it or do not trust us.",
          (rate("scoregate_connections_total", "reason"), "{{reason}}")),
    stat("Are log lines lost?", "short", "In a day. Above 0: the reader of standard output (access) or standard error (events) is too slow or stopped, or its disk is full. Requests are not affected. Runbook: ScoregateLogLinesLost.",
         (f"sum by (log) (increase(scoregate_log_lines_lost_total{{{I}}}[1d]))", "{{log}}"), bad=1),
    panel("Does the public port's runtime run?", "s", "Time since its heartbeat task ran, twice a second. Above 5 s it is not ready, above 20 s not alive and a supervisor restarts it. Runbook: ScoregateRuntimeStalled.",
          (f"scoregate_heartbeat_age_seconds{{{I}}}", "{{instance}}"), bad=5),
    stat("Does accepting connections fail?", "short", "In a day. Above 0: no file or memory was left. Runbook: ScoregateAcceptFailing.",
         (f"increase(scoregate_accept_failures_total{{{I}}}[1d])", "{{instance}}"), bad=1),
    stat("When does a certificate end?", "s", "Renew it below two weeks; new files are read within ten seconds. Runbook: ScoregateCertificateExpiring. Empty without TLS.",
         (f"(scoregate_certificate_expiry_timestamp_seconds{{{I}}} > 0) - time()", "{{instance}}"), good=14 * 86400),
    stat("Is new configuration refused?", "none", "Yes: what is in the files cannot be used and older ones go on. Do not restart before it is fixed. Runbook: ScoregateConfigRejected, ScoregateCertificateRejected.",
         (f"scoregate_config_rejected{{{I}}}", "settings, {{instance}}"), (f"scoregate_certificates_rejected{{{I}}}", "certificates, {{instance}}"), words=YES_NO, bad=1),
]

# uid, title, what it is for, panels
DASHBOARDS = [
    ("on-call", "scoregate: on call", "Whether callers are served, from where, at which cost, and what to do.", ON_CALL),
    ("cache", "scoregate: cache and freshness", "What is served from where, how old it is, and when the backend refreshes.", CACHE),
    ("limits", "scoregate: limits and tiers", "Who asks, who is refused by which rule, and what becomes of quotas.", LIMITS),
    ("upstream", "scoregate: upstream and process", "How the backend does, and how the process and its connections do.", UPSTREAM),
]


def query_variable(name, label, metric):
    query = f"label_values({metric}, {name})"
    return {
        "type": "query", "name": name, "label": label, "datasource": DATASOURCE, "definition": query,
        "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1,
        "multi": True, "includeAll": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"},
    }


def variables(panels):
    yield {"type": "datasource", "name": "datasource", "label": "Prometheus", "query": "prometheus", "current": {}, "refresh": 1}
    yield query_variable("instance", "Instance", "scoregate_keys")
    if any("$tier" in target["expr"] for one in panels for target in one["targets"]):
        yield query_variable("tier", "Tier", "scoregate_tier_requests_total")


def annotations():
    """Deploys and restarts, in every graph."""
    new = f"sum by (version) (scoregate_build_info{{{I}}})"
    deploys = {"expr": f"{new} unless {new.replace('})', '} offset 5m)')}", "titleFormat": "Deploy: version {{version}}", "iconColor": BLUE, "useValueForTime": False}
    restarts = {"expr": f"process_start_time_seconds{{{I}}} * 1000", "titleFormat": "Restart", "textFormat": "{{instance}}", "iconColor": AMBER, "useValueForTime": True}
    for name, one in (("Deploys", deploys), ("Restarts", restarts)):
        yield {"name": name, "datasource": DATASOURCE, "enable": True, "step": "60s", **one}


def placed(panels):
    """With their numbers and places: stats are small, and a line is full before the next begins."""
    x, y, height = 0, 0, 0
    for number, one in enumerate(panels, start=1):
        w, h = (6, 4) if one["type"] == "stat" else (12, 8)
        if x + w > WIDTH or (x and h != height):
            x, y = 0, y + height
        yield {"id": number, **one, "gridPos": {"x": x, "y": y, "w": w, "h": h}}
        x, height = x + w, h


def dashboard(uid, title, meaning, panels):
    panels = list(placed(sorted(panels, key=lambda one: one["type"] != "stat")))
    link = {"type": "dashboards", "title": "scoregate", "tags": ["scoregate"], "asDropdown": False, "includeVars": True, "keepTime": True}
    return {
        "uid": f"scoregate-{uid}", "title": title, "description": meaning, "tags": ["scoregate"], "schemaVersion": SCHEMA, "version": 1,
        "editable": True, "refresh": "30s", "time": {"from": "now-6h", "to": "now"}, "timezone": "utc", "graphTooltip": 1,
        "links": [link], "templating": {"list": list(variables(panels))}, "annotations": {"list": list(annotations())}, "panels": panels,
    }


def main():
    check, stale = "--check" in sys.argv, []
    PLACE.mkdir(exist_ok=True)
    for uid, *rest in DASHBOARDS:
        text = json.dumps(dashboard(uid, *rest), indent=2, ensure_ascii=False) + "\n"
        file = PLACE / f"{uid}.json"
        if not check:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            stale.append(file.name)
    sys.exit(f"not what dashboards.py writes: {', '.join(stale)}" if stale else 0)


main()
