"""Generates the dashboards in `grafana/dashboards/` from the table below, with one entry per panel.

    dashboards.py                    writes the files
    dashboards.py --runbook ADDRESS  the same, with the address of your copy of this repository
    dashboards.py --check            fails if a file is stale

A panel has a question as its title, a unit, a description of what to do, and queries. Requires only Python. The data source
is configured in `provisioning/`, alerts are in `deploy/prometheus/rules/`.
"""

import argparse
import json
import pathlib
import re
import sys

DIRECTORY = pathlib.Path(__file__).resolve().parent / "dashboards"
SCHEMA = 41
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24
# The variable with the address of the repository, for links to the runbook, and its default, which does not exist.
RUNBOOK = "${runbook:raw}deploy/prometheus/RUNBOOK.md"
NO_ADDRESS = "https://repository.example/scoregate/"
# The objective of availability in slo.yml, and the burn rate from which a budget is shown in red.
AVAILABILITY = 0.999
BURN_RATE = 6

I = 'instance=~"$instance"'
T = f'{I}, tier=~"$tier"'
API_REQUESTS = 'endpoint!~"page|options|none"'
YES_NO = {"0": "no", "1": "yes"}
HEALTH = {"0": "closed", "1": "half-open", "2": "open"}

# Colours by meaning, the same in every panel: green is good, amber is degraded or a client error, red is a failure.
GREEN, BLUE, LIGHT_BLUE, AMBER, ORANGE, RED, GREY = "#16a34a", "#2563eb", "#38bdf8", "#d97706", "#c2410c", "#dc2626", "#64748b"
# The meanings of label values. Several values of one pattern get shades of its colour.
MEANINGS = {
    "class": (("2xx", GREEN), ("3xx", BLUE), ("4xx", AMBER), ("5xx", RED)),
    "outcome": (("hit", GREEN), ("miss", BLUE), ("shared", LIGHT_BLUE), ("refreshed", GREY), ("stale", AMBER), ("stale_on_error", ORANGE)),
    "code": (("upstream_.*|overloaded|internal_error", RED), ("quota_exceeded|rate_limit_exceeded|too_many_refusals", AMBER), ("(?!upstream_|overloaded|internal_error|quota_|rate_|too_many_).*", GREY)),
    "result": (("success|applied|sent|signed_in|signed_up|queued", GREEN), ("not_found", BLUE), ("unreachable|error_status|timeout|invalid|rejected|refused|suspended", RED), ("circuit_open|queue_full|retried|expired|invalid_link|reserved|.*_limit|domain", AMBER)),
    "use": (("delivered", GREEN), ("leased", BLUE), ("returned", AMBER), ("lost", RED)),
    "decision": (("grace", AMBER), ("refused", RED)),
    "tier": (("free", "#38bdf8"), ("pro", BLUE), ("developer", "#7c3aed"), ("teams", "#db2777"), ("enterprise", "#0d9488"), ("none", GREY)),
    "reason": (("done", GREEN), (".*_timeout", AMBER), ("failed|displaced|address_limit|application_limit", RED), ("tls_handshake", GREY)),
}
# Legends by prefix.
PHRASES = (("queued", AMBER), ("refused", RED), ("disconnected", GREY))
# Legends that begin with this word are limits, drawn as dashed lines.
LIMIT = "limit"


def rate(metric, by="", labels=I):
    return f"sum by ({by}) (rate({metric}{{{labels}}}[$__rate_interval]))" if by else f"sum(rate({metric}{{{labels}}}[$__rate_interval]))"


def quantiles(metric, labels=I, wanted=("0.5", "0.99")):
    inside = f"sum by (le) (rate({metric}_bucket{{{labels}}}[$__rate_interval]))"
    return [(f"histogram_quantile({q}, {inside})", f"{float(q) * 100:g} % within") for q in wanted]


def override(pattern, *properties):
    """Properties of every series whose complete name matches."""
    return {"matcher": {"id": "byRegexp", "options": f"/^(?:{pattern})$/"}, "properties": [{"id": name, "value": value} for name, value in properties]}


def coloured(queries):
    """Overrides for the colours of these queries' series, and for the lines of limits."""
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
    """`words` names values; values from `bad` on and below `good` are red; `top` is the maximum of the scale."""
    steps = [{"color": "green" if good is None else "red", "value": None}]
    steps += [{"color": colour, "value": value} for colour, value in (("green", good), ("red", bad)) if value is not None]
    defaults = {"unit": unit, "color": {"mode": "thresholds" if kind == "stat" else "palette-classic"}, "thresholds": {"mode": "absolute", "steps": steps}, "mappings": [], "min": 0}
    if top is not None:
        defaults["max"] = top
    if words:
        options = {value: {"text": text, "index": index} for index, (value, text) in enumerate(words.items())}
        defaults["mappings"] = [{"type": "value", "options": options}]
    if kind == "stat":
        options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value", "textMode": "value_and_name"}
    else:
        line = "line" if len(steps) > 1 else "off"
        defaults["custom"] = {"fillOpacity": 10, "showPoints": "never", "spanNulls": False, "thresholdsStyle": {"mode": line}}
        options = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
    targets = [
        {"refId": chr(ord("A") + index), "datasource": DATASOURCE, "expr": expr, "legendFormat": legend, "instant": False, "range": True}
        for index, (expr, legend) in enumerate(queries)
    ]
    return {
        "type": kind, "title": title, "description": todo, "links": runbook_links(todo), "datasource": DATASOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": list(coloured(queries))}, "options": options, "targets": targets,
    }


def runbook_links(todo):
    """Links to the sections of the runbook that a description names, or to all of it if it names the file."""
    sections = [(f"Runbook: {name}", f"{RUNBOOK}#{name.lower()}") for name in dict.fromkeys(re.findall(r"\bScoregate\w+", todo))]
    if "RUNBOOK.md" in todo:
        sections.append(("Runbook", RUNBOOK))
    return [{"title": title, "url": url, "targetBlank": True} for title, url in sections]


def table(title, todo, expr, *columns):
    """A table of the labels of an instant query, with these columns."""
    urgency = {"type": "value", "options": {"page": {"color": RED, "index": 0}, "ticket": {"color": AMBER, "index": 1}}}
    defaults = {"unit": "none", "mappings": [], "noValue": "none"}
    organize = {"includeByName": {name: True for name in columns}, "indexByName": {name: index for index, name in enumerate(columns)}}
    coloured_text = {"matcher": {"id": "byName", "options": "severity"}, "properties": [
        {"id": "custom.cellOptions", "value": {"type": "color-text"}}, {"id": "mappings", "value": [urgency]}]}
    return {
        "type": "table", "title": title, "description": todo, "links": runbook_links(todo), "datasource": DATASOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": [coloured_text]}, "options": {"showHeader": True, "cellHeight": "sm"},
        "targets": [{"refId": "A", "datasource": DATASOURCE, "expr": expr, "format": "table", "legendFormat": "", "instant": True, "range": False}],
        "transformations": [{"id": "organize", "options": organize}],
    }


def stat(*arguments, **more):
    return panel(*arguments, kind="stat", **more)


BREAKER = stat(
    "Is the circuit breaker closed?", "none",
    "If it is open or half-open for minutes, send a request to upstream.url by hand. Stored documents are still served, marked stale. Runbook: ScoregateCircuitBreakerOpen.",
    (f"max by (instance) (scoregate_upstream_breaker_state{{{I}}})", "{{instance}}"), words=HEALTH, bad=1)
TIERS = panel(
    "Which tier sends requests?", "reqps",
    "A step in one tier is one customer or one of its releases: `scoregate top` names them. Tier none has no known key.",
    (rate("scoregate_tier_requests_total", "tier", T), "{{tier}}"))
TIERS_4XX = panel(
    "Which tier gets 4xx?", "reqps",
    "If only one tier: the limits dashboard shows the rule that refuses it. Tier none is requests without a known key.",
    (rate("scoregate_tier_requests_total", "tier", f'{T}, class="4xx"'), "{{tier}}"))
TIERS_5XX = panel(
    "Which tier gets 5xx?", "reqps",
    "If not zero: look at 'Why are requests refused?' on the on-call dashboard. Paid tiers have priority in every queue.",
    (rate("scoregate_tier_requests_total", "tier", f'{T}, class="5xx"'), "{{tier}}"))
HITS = panel(
    "Which share is served from the cache?", "percentunit",
    "It falls after a purge, after a start without stored documents, or when callers request new documents. If it stays low, raise cache.max_bytes.",
    (f"instance:scoregate_hits:ratio_rate5m{{{I}}}", "{{instance}}"), top=1)
WITHOUT_CLIENT_ERRORS = 'class=~"2xx|3xx|5xx", endpoint!~"page|options"'

ON_CALL = [
    stat("Are callers being served?", "percentunit",
         f"In five minutes. Red from {BURN_RATE} times the errors that the objective of {AVAILABILITY * 100:g} % allows: read 'Why are requests refused?', then the runbook's ScoregateAvailabilityBurnRateFast. 4xx do not count.",
         (f'1 - sum(rate(scoregate_requests_total{{{I}, class="5xx", endpoint!~"page|options"}}[5m])) / sum(rate(scoregate_requests_total{{{I}, {WITHOUT_CLIENT_ERRORS}}}[5m]))', "served"),
         good=round(1 - BURN_RATE * (1 - AVAILABILITY), 6), top=1),
    stat("How fast do error budgets burn?", "suffix: ×",
         "In five minutes, of all instances. A burn rate of 1 consumes the month's budget in a month. Above 14.4 for an hour or 6 for six hours an alert pages: ScoregateAvailabilityBurnRateFast, ScoregateLatencyBurnRateFast, ScoregateFreshnessBurnRateFast.",
         ("job:scoregate_answers_failed:ratio_rate5m / 0.001", "availability"),
         ("job:scoregate_answers_slow:ratio_rate5m / 0.01", "latency"),
         ("job:scoregate_answers_old:ratio_rate5m / 0.01", "freshness"), bad=BURN_RATE),
    stat("Is every instance up?", "none", "If one is down, check its service and the end of its log. Runbook: ScoregateDown.",
         (f'up{{job="scoregate", {I}}}', "{{instance}}"), words=YES_NO, good=1),
    BREAKER,
    stat("Does the gateway report a fault?", "short", "For values other than 0 the log has the reason. Runbook: ScoregatePanics, ScoregateStoreDamaged, ScoregateLedgerUnreachable, ScoregateConfigRejected, ScoregateFileRejected.",
         (f"sum(increase(scoregate_panics_total{{{I}}}[1h]))", "panics in an hour"),
         (f"max(scoregate_store_damaged{{{I}}})", "store damaged"),
         (f"max(scoregate_ledger_unreachable{{{I}}})", "ledger unreachable"),
         (f"max(scoregate_config_rejected{{{I}}})", "settings rejected"),
         (f"max(scoregate_files_rejected{{{I}}})", "files rejected"), bad=1),
    table("Which alerts are firing?", "Each has a section with its name in RUNBOOK.md. `page` means now, `ticket` means working hours. All instances.",
          'ALERTS{alertname=~"Scoregate.*", alertstate="firing"}', "alertname", "severity", "instance"),
    panel("How many requests arrive, and what is the status?", "reqps",
          "A step in 4xx comes from a client or its release; a step in 5xx from the backend or the gateway; a drop in all of them from the network in front of the gateway.",
          (rate("scoregate_requests_total", "class"), "{{class}}")),
    panel("Why are requests refused?", "reqps",
          "upstream_* is the backend, overloaded is a concurrency limit or the ledger, internal_error is a bug; all others are client errors.",
          (rate("scoregate_refusals_total", "code") + " > 0", "{{code}}")),
    panel("Which endpoint fails?", "reqps", "One endpoint: its part of the backend fails, or its mapping is outdated. All endpoints: look at the upstream dashboard.",
          (rate("scoregate_requests_total", "endpoint", f'{I}, class="5xx"') + " > 0", "{{endpoint}}")),
    panel("How long do callers wait?", "s", "A hit takes far less than a millisecond. If the median rises, the machine is busy; if only the p99 rises, requests wait for the backend or for leases.",
          *quantiles("scoregate_request_duration_seconds", f"{I}, {API_REQUESTS}", ("0.5", "0.99", "0.999"))),
    panel("Which endpoint is slow?", "s", "p99 of all instances together. One endpoint: clients keep changing parameters, or the backend is slow for it.",
          ("endpoint:scoregate_request_duration_seconds:p99_5m", "{{endpoint}}")),
    TIERS,
    TIERS_4XX,
    HITS,
    panel("Are concurrency slots free?", "percentunit", "The share of overload.cached_slots and overload.waiting_slots in use. `waiting` fills when the backend is slow, `cached` when many cached documents are stale. Fresh ones need no slot. Runbook: ScoregateConcurrencyExhausted.",
          (f"max by (pool) (scoregate_concurrency_in_use{{{I}}} / scoregate_concurrency_limit{{{I}}})", "slots in use, {{pool}}"), ("vector(1)", "limit"), top=1),
    panel("How many requests wait?", "short", "For keys, a concurrency slot, units or the backend; hits never wait. Compare with the usual number for the hour. A rise without more requests: they take longer; look at the upstream dashboard.",
          (f"scoregate_requests_in_progress{{{I}}}", "{{instance}}")),
    panel("Do requests queue, get refused or time out?", "reqps", "Refused means 503 without a free slot. Clients that disconnect early have a timeout shorter than the backend needs.",
          (rate("scoregate_overload_queued_total", "pool"), "queued, {{pool}}"), (rate("scoregate_overload_refused_total", "pool"), "refused, {{pool}}"),
          (rate("scoregate_client_disconnects_total"), "disconnected early")),
    stat("Which version runs?", "none", "Two versions are normal during a release; otherwise one instance was not updated.",
         (f"sum by (version) (scoregate_build_info{{{I}}})", "{{version}}")),
    stat("How long has it been running?", "s", "Shorter than since the last release: the gateway restarted, and the end of the previous log has the reason. Runbook: ScoregateRestarting.",
         (f"time() - process_start_time_seconds{{{I}}}", "{{instance}}")),
    stat("Were settings reloaded?", "short", "If rejected: `scoregate check --config FILE` lists all problems. Runbook: ScoregateConfigRejected, ScoregateReloadsRejected.",
         (f"sum by (result) (increase(scoregate_reloads_total{{{I}}}[1d]))", "{{result}} within a day")),
]

CACHE = [
    panel("Where do responses come from?", "reqps", "hit and stale need no wait. Many miss or shared: callers wait for the backend. stale_on_error: the backend fails, look at the upstream dashboard.",
          (rate("scoregate_documents_served_total", "outcome"), "{{outcome}}")),
    HITS,
    panel("How old are delivered documents?", "s", "Time since the backend confirmed them. Above its refresh interval: check whether the refresh is overdue.",
          *quantiles("scoregate_document_age_seconds", wanted=("0.5", "0.9", "0.99"))),
    panel("Which share is older than two hours?", "percentunit", "Above 1 % the freshness objective is missed. All instances together. Runbook: ScoregateFreshnessBurnRateFast.",
          ("job:scoregate_answers_old:ratio_rate5m", "{{job}}"), bad=0.01, top=1),
    panel("When does the backend refresh next?", "s", "Counts down to the expected refresh. If it jumps, the backend states inconsistent times: set freshness.refresh_interval.",
          (f"scoregate_next_refresh_seconds{{{I}}}", "{{instance}}")),
    panel("Is the next refresh overdue?", "s", "A minute or two is usual. Longer: if the circuit breaker is closed, the backend's own pipeline has stopped. Runbook: ScoregateRefreshOverdue.",
          (f"scoregate_refresh_overdue_seconds{{{I}}}", "{{instance}}"), bad=3600),
    stat("How many refreshes in a day?", "short", "Fewer than the backend makes: the gateway was down, or there were no requests. Instances should agree.",
         (f"increase(scoregate_refreshes_total{{{I}}}[1d])", "{{instance}}")),
    panel("Do gateways share fetches?", "reqps", "`claimed`: fetched here for all gateways. `taken`: fetched by another gateway. `alone`: the shared store could not be used, so each gateway loads the backend; look at the store.",
          (rate("scoregate_shared_fetches_total", "result"), "{{result}}")),
    panel("How much space do documents use?", "bytes", "Near cache.max_bytes or cache.disk_max_bytes the least used documents are evicted: raise the limits if there is memory.",
          (f"scoregate_cache_bytes{{{I}}}", "in memory, {{instance}}"), (f"scoregate_disk_mirror_bytes{{{I}}}", "on disk, {{instance}}")),
    panel("How many documents are stored?", "short", "A sudden drop is a purge or a start. A steady rise comes from callers that try every parameter: harmless below cache.max_bytes.",
          (f"scoregate_cache_documents{{{I}}}", "{{instance}}")),
    panel("How many fetches are in flight?", "short", "More than upstream.max_concurrent_requests means that some are queued. If it stays high, the backend hangs.",
          (f"scoregate_fetches_in_progress{{{I}}}", "{{instance}}")),
    panel("How many requests share a fetch?", "short", "Many: callers request one document concurrently, and the backend gets one request. No action unless callers also wait long.",
          *quantiles("scoregate_fetch_waiters")),
    panel("Which share of requests is revalidated (304)?", "percentunit", "A 304 costs no quota. If a large customer is at 0, recommend If-None-Match.",
          (rate("scoregate_not_modified_total") + " / " + rate("scoregate_documents_served_total"), "304"), top=1),
    stat("Are documents written to disk?", "short", "Failures in a day. Above 0 the disk of data_dir is full or fails: after a restart the cache would be empty. Runbook: ScoregateDiskMirrorFailing.",
         (f"increase(scoregate_disk_mirror_failures_total{{{I}}}[1d])", "{{instance}}"), bad=1),
]

LIMITS = [
    TIERS,
    TIERS_4XX,
    TIERS_5XX,
    panel("Which rule refuses requests?", "reqps", "minute: bursts; day: quotas are used up, a larger tier may help; guard: repeated errors, see ScoregateGuardFlood.",
          (rate("scoregate_limited_total", "rule", T), "{{rule}}")),
    panel("Which tier do limits refuse?", "reqps", "Choose the tier at the top to see the rule. Tier none is addresses without a known key.",
          (rate("scoregate_limited_total", "tier", T), "{{tier}}")),
    panel("Which share of a tier's requests is refused by a limit?", "percentunit", "A paid tier above a few per cent for a day: its customers need a larger tier, or a client has a loop.",
          (rate("scoregate_limited_total", "tier", T) + " / " + rate("scoregate_tier_requests_total", "tier", T), "{{tier}}"), top=1),
    panel("Does a client flood the gateway?", "reqps", "Requests refused by the guard. Above 10/s for minutes: `scoregate top` names the addresses and applications; block them at the proxy. Runbook: ScoregateGuardFlood.",
          (f"instance:scoregate_guarded:rate5m{{{I}}}", "{{instance}}"), bad=10),
    panel("How are quota units used?", "cps", "leased is slightly ahead of delivered. Many returned: requests fail after admission.",
          (rate("scoregate_quota_units_total", "use"), "{{use}}")),
    stat("Were units lost in a day?", "short", "Units that customers paid for and did not get, after a crash or a failure of the ledger. Look for restarts and for an unreachable ledger.",
         (f'sum by (instance) (increase(scoregate_quota_units_total{{{I}, use="lost"}}[1d]))', "{{instance}}"), bad=1),
    stat("Is the ledger unreachable?", "none", "Yes: quotas cannot be written; check the disk of data_dir or the database of store.url immediately. Runbook: ScoregateLedgerUnreachable.",
         (f"scoregate_ledger_unreachable{{{I}}}", "{{instance}}"), words=YES_NO, bad=1),
    stat("Can it serve without the ledger?", "none", "No: this gateway has no share of today's grace, so paid tiers get 503 from it while the ledger is unreachable. Usual after a crash, until the end of the next day. Runbook: ScoregateNoGraceShare.",
         (f"scoregate_grace_share{{{I}}}", "{{instance}}"), words=YES_NO, good=1),
    panel("How are requests decided without the ledger?", "reqps", "grace is a paid tier using its one per cent; refused is a 503. Both are 0 while the ledger is reachable.",
          (rate("scoregate_ledger_unreachable_decisions_total", "decision"), "{{decision}}")),
    panel("How long does the store take?", "s", "p99 of durable writes, to the disk of data_dir or the database of store.url. Above 100 ms it is slow or shared: small quotas wait for each lease.",
          (f"histogram_quantile(0.99, sum by (le, operation) (rate(scoregate_store_duration_seconds_bucket{{{I}}}[$__rate_interval])))", "{{operation}}")),
    panel("Do requests wait for leases?", "reqps", "Free tiers lease unit by unit and wait for each. A rise together with slow leases affects callers.",
          (rate("scoregate_lease_waits_total"), "waited")),
    panel("Does the store fail?", "cps", "By operation. If not 0: disk full, disk error, a lock on scoregate.db, or the database is not reachable. Runbook: ScoregateStoreFailing.",
          (rate("scoregate_store_failures_total", "operation"), "{{operation}}")),
    stat("Is the store intact?", "short", "Damaged: the log has the recovery steps. Skipped records: their keys get 401. Runbook: ScoregateStoreDamaged, ScoregateStoreRecordsUnreadable.",
         (f"max by (instance) (scoregate_store_damaged{{{I}}})", "damaged, {{instance}}"), (f"max by (instance) (scoregate_store_unreadable_records{{{I}}})", "records skipped, {{instance}}"), bad=1),
    stat("How many keys are known?", "short", "A drop is a purge of revoked keys, or records that could not be read. Instances of one store agree.",
         (f"scoregate_keys{{{I}}}", "{{instance}}")),
]

# A row of `limits`: the database that several gateways share.
SHARED_STORE = [
    stat("Are key changes delayed?", "s", "Time since changes made elsewhere were last read from the shared store; 0 without one. Above 5 s a key revoked elsewhere may still be valid here. Runbook: ScoregateStoreChangesDelayed.",
         (f"scoregate_store_changes_age_seconds{{{I}}}", "{{instance}}"), bad=5),
    stat("Is the machine's clock right?", "s", "Difference of the shared store's clock from the machine's. The gateway uses the store's clock; check the time service of the machine that differs from the others. Runbook: ScoregateStoreClockOffset.",
         (f"scoregate_store_clock_offset_seconds{{{I}}}", "{{instance}}"), bad=60),
    stat("Is a synchronous standby missing?", "none", "Yes: commits wait for no standby, so a failover can lose the last key changes and grants. No also without a shared store. Runbook: ScoregateStoreNotSynchronous.",
         (f"scoregate_store_standby_missing{{{I}}}", "{{instance}}"), words=YES_NO, bad=1),
    stat("Does it run from the local copy?", "none", "Yes: the database could not be used at the start. Without a grace share, requests for data get 503 until it can. Runbook: ScoregateStoreLocalCopy.",
         (f"scoregate_store_local_copy{{{I}}}", "{{instance}}"), words=YES_NO, bad=1),
    stat("Is the local key copy old?", "s", "Age of the copy on disk, for a start while the database is unreachable; 0 without a shared store. Above ten minutes it cannot be written. Runbook: ScoregateStoreLocalCopyOld.",
         (f"scoregate_store_local_copy_age_seconds{{{I}}}", "{{instance}}"), bad=600),
    panel("How many gateways are live?", "short", "Above the limit: raise store.gateways on all of them, or stop some; `scoregate nodes` lists them. Below the number that should run: one has stopped, or does not reach the store. Runbook: ScoregateTooManyGateways.",
          (f"scoregate_fleet_gateways{{{I}}}", "seen by {{instance}}"), (f"max(scoregate_fleet_gateways_limit{{{I}}})", "limit")),
    panel("How long do leases take?", "s", "From the report to the durable reply, queueing included. A rise on all gateways is the database or its standby; on one gateway, its network. Runbook: ScoregateLeasesSlow.",
          *quantiles("scoregate_store_duration_seconds", f'{I}, operation="lease"')),
    panel("How many transactions does the ledger need?", "cps", "Reports that wait for the connection share a transaction. Many reports for each transaction: the database is slower than the callers' leases; compare with its capacity in docs/operate.md.",
          (rate("scoregate_store_exchanges_total"), "transactions"), (rate("scoregate_store_exchange_reports_total"), "reports")),
    panel("How many rows do the hot tables have?", "short", "ledger_days and ledger_nodes grow with the applications in use, for 35 days; documents and document_contents with the documents of the backend; the others with applications and keys.",
          (f"max by (table) (scoregate_store_live_rows{{{I}}})", "{{table}}")),
    panel("How many dead rows do the hot tables have?", "short", "A saw-tooth is usual: autovacuum removes them. A steady rise: something prevents it, for example a transaction that stays open. Runbook: ScoregateStoreBloat.",
          (f"max by (table) (scoregate_store_dead_rows{{{I}}})", "{{table}}")),
]

UPSTREAM = [
    BREAKER,
    panel("How do upstream requests end?", "reqps", "unreachable: no connection; error_status: the backend returned an error; timeout: above upstream.timeout; invalid: data of an unknown shape; circuit_open and queue_full were not sent.",
          (rate("scoregate_upstream_requests_total", "result"), "{{result}}")),
    panel("Which share of upstream requests fails?", "percentunit", "Above one half for minutes an alert fires. Callers of stored documents are not affected yet. Runbook: ScoregateBackendErrors.",
          (f"instance:scoregate_upstream_failures:ratio_rate10m{{{I}}}", "{{instance}}"), bad=0.5, top=1),
    panel("How long does the backend take?", "s", "Includes time in the queue. Near upstream.timeout callers get 504: the backend needs attention, or the timeout is too short.",
          *quantiles("scoregate_upstream_duration_seconds")),
    panel("Do upstream requests queue?", "short", "For a long time: the backend is too slow for the load. If it can handle more, raise upstream.max_concurrent_requests.",
          (f"scoregate_upstream_queue_length{{{I}}}", "{{instance}}")),
    panel("Are upstream requests retried?", "cps", "The backend closes idle connections before the gateway does: set upstream.idle_timeout below its own limit.",
          (rate("scoregate_upstream_retries_total", "instance"), "{{instance}}")),
    stat("Is every backend address usable?", "none", "No: its circuit breaker is open; requests go to the others. The log and /v1/upstream/show have the reason.",
         (f"min by (address) (scoregate_upstream_address_usable{{{I}}})", "{{address}}"), words=YES_NO, good=1),
    panel("Which backend addresses get the requests?", "reqps", "Failures of only one address: the fault is there. Without failures the first address gets all requests.",
          (rate("scoregate_upstream_address_requests_total", "address"), "{{address}}"),
          (rate("scoregate_upstream_address_failures_total", "address") + " > 0", "failed, {{address}}")),
    panel("Are failed requests repeated at another address?", "cps", "Above zero: an address before the last one fails. Callers wait longer for documents that are not stored.",
          (rate("scoregate_upstream_failovers_total", "instance"), "{{instance}}")),
    panel("Is the CPU the limit?", "short", "Cores in use. Near the limit latency rises: give it more cores, see the runbook's ScoregateLatencyBurnRateFast.",
          (rate("process_cpu_seconds_total", "instance"), "{{instance}}"), (f"scoregate_cpu_limit_cores{{{I}}}", "limit, {{instance}}")),
    panel("Does memory usage grow?", "bytes", "It levels off once the cache is full. If it rises for days at the same traffic, lower cache.max_bytes and report it. Runbook: ScoregateMemoryNearLimit.",
          (f"process_resident_memory_bytes{{{I}}}", "{{instance}}"), (f"scoregate_memory_limit_bytes{{{I}}}", "limit, {{instance}}")),
    panel("Is there space on the disk?", "bytes", "Free space on the file system of the data directory; the dashed line is its size. Runbook: ScoregateDiskSpaceLow.",
          (f"scoregate_data_dir_free_bytes{{{I}}}", "free, {{instance}}"), (f"scoregate_data_dir_size_bytes{{{I}}}", "limit: size, {{instance}}")),
    stat("How old is the last backup?", "s", "Older than two days, or no value: check the job that runs `scoregate store backup`. Gateways on a database have no value. Runbook: ScoregateBackupOld, ScoregateBackupMissing, ScoregateBackupSmall.",
         (f"time() - (scoregate_last_backup_timestamp_seconds{{{I}}} > 0)", "{{instance}}"), bad=2 * 86400),
    panel("Are file descriptors left?", "short", "Each connection uses one. Near the limit: raise LimitNOFILE, or lower server.max_connections. Runbook: ScoregateOpenFilesNearLimit.",
          (f"process_open_fds{{{I}}}", "open, {{instance}}"), (f"process_max_fds{{{I}}}", "limit, {{instance}}")),
    panel("Which share of file descriptors is open?", "percentunit", "Above 80 % an alert pages. Runbook: ScoregateOpenFilesNearLimit.",
          (f"instance:scoregate_open_fds:ratio{{{I}}}", "{{instance}}"), bad=0.8, top=1),
    panel("How many threads are there?", "short", "A few more than server.workers. A lasting rise is blocking work: check the disk.",
          (f"process_threads{{{I}}}", "{{instance}}")),
    panel("How many connections are open?", "short", "Near server.max_connections the longest idle connection is closed for a new one. Raise it together with the limit of file descriptors.",
          (f"scoregate_connections{{{I}}}", "{{instance}}"), (f"scoregate_connections_limit{{{I}}}", "limit, {{instance}}")),
    panel("How do connections end?", "cps", "done is usual. displaced: no free slot; *_timeout: a sudden rise comes from slow or hostile clients; tls_handshake: clients without TLS, or that do not trust the certificate. Refused streams: clients that do not read their responses.",
          (rate("scoregate_connections_total", "reason"), "{{reason}}"),
          (rate("scoregate_streams_refused_total", "scope"), "refused streams, {{scope}}")),
    stat("Are log lines lost?", "short", "In a day. Above 0: the reader of standard output (access) or standard error (events) is too slow or stopped, or its disk is full. Requests are not affected. Runbook: ScoregateLogLinesLost.",
         (f"sum by (log) (increase(scoregate_log_lines_lost_total{{{I}}}[1d]))", "{{log}}"), bad=1),
    stat("Are spans of traces lost?", "short", "In a day, if traces.endpoint is set. failed: the collector is unreachable or rejects them, the log has the reason; dropped: it is too slow; raise traces.sample_one_in. Requests are not affected.",
         (f"sum by (result) (increase(scoregate_trace_spans_total{{{I}, result!='exported'}}[1d]))", "{{result}}"), bad=1),
    panel("Does the public port's runtime run?", "s", "Time since its heartbeat task ran, twice a second. Above 5 s it is not ready, above 20 s not alive and a supervisor restarts it. Runbook: ScoregateRuntimeStalled.",
          (f"scoregate_heartbeat_age_seconds{{{I}}}", "{{instance}}"), bad=5),
    stat("Does accepting connections fail?", "short", "In a day. Above 0: file descriptors or memory ran out. Runbook: ScoregateAcceptFailing.",
         (f"increase(scoregate_accept_failures_total{{{I}}}[1d])", "{{instance}}"), bad=1),
    stat("When does a certificate expire?", "s", "Renew it below two weeks; new files are read within ten seconds. Runbook: ScoregateCertificateExpiring. Empty without TLS.",
         (f"(scoregate_certificate_expiry_timestamp_seconds{{{I}}} > 0) - time()", "{{instance}}"), good=14 * 86400),
    stat("Is new configuration rejected?", "none", "Yes: the files are invalid and the previous ones stay in use. Do not restart before they are fixed. Runbook: ScoregateConfigRejected, ScoregateFileRejected.",
         (f"scoregate_config_rejected{{{I}}}", "settings, {{instance}}"),
         (f"max by (instance) (scoregate_files_rejected{{{I}}})", "files, {{instance}}"), words=YES_NO, bad=1),
    panel("Do people sign up?", "cps", "Uses of email links. Many invalid links: someone guesses tokens. account_limit: a network created too many accounts. Zero on a day with visitors: check whether mail is sent.",
          (rate("scoregate_sign_ins_total", "result"), "{{result}}")),
    panel("Who asks for links?", "cps", "queued: an email was queued; mailbox_limit and network_limit: too many were requested; reserved: the limit of all networks is nearly used, and the rest is reserved for others; total_limit: it is used up; domain: the mail domain is not accepted. Runbook: ScoregateSignInLimited.",
          (rate("scoregate_sign_in_links_total", "result"), "{{result}}")),
    panel("Do the account pages work?", "cps", "Responses of the pages below /account. 5xx: the store fails, or too many requests arrive concurrently.",
          (rate("scoregate_site_requests_total", "class"), "{{class}}")),
    panel("What do owners change?", "cps", "Applications and keys that owners create, describe, add, rotate, keep, revoke and close, and accounts that they delete.",
          (rate("scoregate_account_changes_total", "change"), "{{change}}")),
    panel("Is mail sent?", "cps", "retried: the mail server cannot be used, defers mail, or refuses it by policy, such as relaying; refused: it does not accept the recipient or the message; expired: an email waited too long. The log has the reason. Runbook: ScoregateMailFailing, ScoregateMailRefused.",
          (rate("scoregate_mails_total", "result", f'{I}, kind!="webhook"'), "{{result}}")),
    panel("How many mails are queued?", "short", "It returns to 0 within seconds. A rise: mail is queued faster than the server accepts it, or not sent at all.",
          (f"max(scoregate_mail_queue_length{{{I}}})", "mails")),
    stat("How long does mail wait?", "s", "Age of the oldest email in the queue. Above ten minutes sign-in links expire before they arrive. Runbook: ScoregateMailDelayed.",
         (f"max(scoregate_mail_oldest_age_seconds{{{I}}})", "oldest"), bad=600),
]

MISUSE = [
    panel("Which applications look like misuse?", "short", "Applications listed for the last 7 days that ended, determined once a day. `scoregate suspects` lists them with their evidence. Nothing is changed without a command.",
          (f"max by (suspicion) (scoregate_suspects{{{I}}})", "{{suspicion}}")),
    panel("Are leaked keys reported?", "short", "Reported tokens in an hour. changed: a key was revoked or expires, and its owner got an email; unknown and foreign: false reports.",
          (f"sum by (result) (increase(scoregate_leaked_keys_total{{{I}}}[1h]))", "{{result}}")),
    panel("Are messages delivered to webhooks?", "cps", "retried: a receiver of an owner or operator.webhook does not accept them; failed messages to operator.webhook are logged as warnings. expired: a message was repeated for three days.",
          (rate("scoregate_mails_total", "result", f'{I}, kind="webhook"'), "{{result}}")),
]

# uid, title, purpose, panels, and rows with their own titles and panels
DASHBOARDS = [
    ("on-call", "scoregate: on call", "Whether requests are served, from cache or backend, and what to do if not.", ON_CALL),
    ("cache", "scoregate: cache and freshness", "Sources and age of delivered documents, and refreshes of the backend.", CACHE),
    ("limits", "scoregate: limits and tiers", "Requests and refusals by tier and rule, the use of quotas, and the shared store.", LIMITS, ("Shared store", SHARED_STORE), ("Misuse", MISUSE)),
    ("upstream", "scoregate: upstream and process", "State of the backend, the process and its connections.", UPSTREAM),
]


def query_variable(name, label, metric):
    query = f"label_values({metric}, {name})"
    return {
        "type": "query", "name": name, "label": label, "datasource": DATASOURCE, "definition": query,
        "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1,
        "multi": True, "includeAll": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"},
    }


def variables(panels, address):
    yield {"type": "constant", "name": "runbook", "label": "Address of the repository, for links to the runbook", "hide": 2, "query": address, "skipUrlSync": True, "current": {"text": address, "value": address}}
    yield {"type": "datasource", "name": "datasource", "label": "Prometheus", "query": "prometheus", "current": {}, "refresh": 1}
    yield query_variable("instance", "Instance", "scoregate_keys")
    if any("$tier" in target["expr"] for one in panels for target in one.get("targets", ())):
        yield query_variable("tier", "Tier", "scoregate_tier_requests_total")


def annotations():
    """Deploys and restarts, in every graph."""
    new = f"sum by (version) (scoregate_build_info{{{I}}})"
    deploys = {"expr": f"{new} unless {new.replace('})', '} offset 5m)')}", "titleFormat": "Deploy: version {{version}}", "iconColor": BLUE, "useValueForTime": False}
    restarts = {"expr": f"process_start_time_seconds{{{I}}} * 1000", "titleFormat": "Restart", "textFormat": "{{instance}}", "iconColor": AMBER, "useValueForTime": True}
    for name, one in (("Deploys", deploys), ("Restarts", restarts)):
        yield {"name": name, "datasource": DATASOURCE, "enable": True, "step": "60s", **one}


def placed(panels, rows):
    """Panels with ids and positions: stats are small and come first, and lines are filled from the left. A row has a heading."""
    number, top = 0, 0
    for title, members in (("", panels), *rows):
        if title:
            number, top = number + 1, top + 1
            yield {"id": number, "type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": {"x": 0, "y": top - 1, "w": WIDTH, "h": 1}}
        x, height = 0, 0
        for number, one in enumerate(sorted(members, key=lambda one: one["type"] != "stat"), start=number + 1):
            w, h = (6, 4) if one["type"] == "stat" else (12, 8)
            if x + w > WIDTH or (x and h != height):
                x, top = 0, top + height
            yield {"id": number, **one, "gridPos": {"x": x, "y": top, "w": w, "h": h}}
            x, height = x + w, h
        top += height


def dashboard(address, uid, title, purpose, panels, *rows):
    panels = list(placed(panels, rows))
    link = {"type": "dashboards", "title": "scoregate", "tags": ["scoregate"], "asDropdown": False, "includeVars": True, "keepTime": True}
    return {
        "uid": f"scoregate-{uid}", "title": title, "description": purpose, "tags": ["scoregate"], "schemaVersion": SCHEMA, "version": 1,
        "editable": True, "refresh": "30s", "time": {"from": "now-6h", "to": "now"}, "timezone": "utc", "graphTooltip": 1,
        "links": [link], "templating": {"list": list(variables(panels, address))}, "annotations": {"list": list(annotations())}, "panels": panels,
    }


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--runbook", metavar="ADDRESS", default=NO_ADDRESS)
    options, stale = arguments.parse_args(), []
    DIRECTORY.mkdir(exist_ok=True)
    for uid, *rest in DASHBOARDS:
        text = json.dumps(dashboard(f"{options.runbook.rstrip('/')}/", uid, *rest), indent=2, ensure_ascii=False) + "\n"
        file = DIRECTORY / f"{uid}.json"
        if not options.check:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            stale.append(file.name)
    sys.exit(f"stale, run dashboards.py: {', '.join(stale)}" if stale else 0)


main()
