"""The items of the API's responses, with published numbers. Fields of free text are left out."""

import math

from .drift import DELTA, THRESHOLD
from .noise import bounds
from .numbers import mean, published_lower, published_p, published_score, published_upper, rounded
from .periods import window
from .providers import by_provider, index_history, index_trend, provider, recommendations, reliability
from .ranks import detectable
from .runs import AXES, HOUR, SORT_SCORES, instant, marks_of

ALTERNATIVES = 3
STATUS = ((80, "excellent"), (65, "good"), (50, "warning"))
DEFAULT_LIMIT = 50
TOGETHER_HOURS = 6


def present(item):
    """The fields with a value."""
    return {name: value for name, value in item.items() if value is not None}


def at(hour):
    return None if hour is None else instant(hour * HOUR)


def status(score):
    if score is None:
        return "unavailable"
    return next((word for least, word in STATUS if score >= least), "critical")


def interval(score, estimate):
    lower, upper = bounds(score, estimate)
    return {"confidenceLower": published_lower(lower), "confidenceUpper": published_upper(upper)}


def scored_fields(scored):
    compared = scored.compared
    return {"currentScore": scored.published, "trend": scored.trend, "status": status(scored.published),
            **interval(compared.now, compared.now_estimate)}


def samples(model, suite, period):
    """The runs of a suite behind a score."""
    span = window(model, period)
    runs = [run for run in model.runs_between(*span) if run.suite == suite.name] if span else []
    scored = [run for run in runs if model.has_score(run)]
    return present({
        "suite": suite.name, "runs": len(runs), "failedRuns": sum(run.failed for run in runs),
        "trials": sum(len(marks_of(run, "weighted", suite)) for run in runs),
        "failedTrials": sum(trial["reason"] is not None for run in runs for trial in run.trials),
        "lastRun": instant(scored[-1].time) if scored else None})


class Documents:
    """Every document of a snapshot. A method per endpoint; parameters are texts."""

    def __init__(self, snapshot):
        self.snapshot = snapshot

    def named(self, model):
        return {"modelId": model.id, "modelName": model.name, "provider": model.provider}

    def updated(self, model, period="24h"):
        return instant(self.snapshot.last_updated(model, period))

    def models(self, period="24h", sortBy="combined"):
        found, ranks = [], self.snapshot.ranks.of(period, sortBy)
        for model in self.snapshot.models:
            measured = self.snapshot.measured[period][model.id]
            name = sortBy if sortBy in SORT_SCORES else "combined"
            item = {"id": model.id, "name": model.name, "provider": model.provider,
                    **scored_fields(self.snapshot.scores[period][model.id][name]),
                    "lastUpdated": self.updated(model, period), **ranks.get(model.id, {})}
            place = item["currentScore"]
            if place is not None and sortBy == "speed":
                place = item["latencyMs"] = rounded(measured.latency, 0)
            elif place is not None and sortBy == "price":
                place = item["costUsd"] = rounded(measured.cost, 6)
            sign = -1 if sortBy in SORT_SCORES else 1
            found.append(((math.inf if place is None else sign * place, model.id), present(item)))
        return [item for _, item in sorted(found, key=lambda pair: pair[0])]

    def model(self, id):
        model, snapshot = self.snapshot.by_id[id], self.snapshot
        measured, axes, suites = snapshot.measured["24h"][id], [], []
        for axis in AXES:
            is_declared = f"axis {axis}" in model.kinds
            score, estimate = snapshot.day_score(model, f"axis {axis}") if is_declared else (None, None)
            axes.append(present({"axis": axis, "score": published_score(score and score.value),
                                 **interval(score, estimate), "samples": score.trials if score else 0}))
        for suite in model.suites.values():
            runs = [run for run in model.runs_between(model.end - 24, model.end)
                    if run.suite == suite.name and model.has_score(run)]
            score, _ = snapshot.day_score(model, f"suite {suite.name}")
            suites.append(present({"suite": suite.name, "score": published_score(score and score.value),
                                   "runs": len(runs), "lastRun": instant(runs[-1].time) if runs else None}))
        return [present({
            "id": id, "name": model.name, "provider": model.provider,
            **scored_fields(snapshot.scores["24h"][id]["combined"]),
            "latestScore": snapshot.scores["latest"][id]["combined"].published, "axes": axes, "suites": suites,
            "comparisons": snapshot.ranks.comparisons(model),
            "priceInput": model.prices[0], "priceOutput": model.prices[1], "latencyMs": rounded(measured.latency, 0),
            "runs": measured.runs, "failedRuns": measured.failed_runs, "lastUpdated": self.updated(model),
        })]

    def history(self, id, period="24h"):
        return [present({"timestamp": at(hour), "score": published_score(score and score.value),
                         **interval(score, estimate), "runs": runs})
                for hour, score, estimate, runs in self.snapshot.history(self.snapshot.by_id[id], period)]

    def index(self):
        snapshot = self.snapshot
        scores = {model.id: snapshot.scores["24h"][model.id]["combined"] for model in snapshot.models}
        known = {key: one.published for key, one in scores.items() if one.published is not None}
        updated = [snapshot.last_updated(snapshot.by_id[key], "24h") for key in known]
        lower, upper = snapshot.ranks.index_bounds(mean(list(known.values()))) if known else (None, None)
        return [present({
            "value": published_score(mean(list(known.values()))) if known else None,
            "confidenceLower": published_lower(lower), "confidenceUpper": published_upper(upper),
            "trend": index_trend(snapshot.ranks, [(snapshot.by_id[key], one.compared) for key, one in scores.items()]),
            "models": len(known), "unavailable": len(scores) - len(known),
            "bestModel": min(known, key=lambda key: (-scores[key].supported, key), default=None),
            "history": [present({"timestamp": at(hour), "models": len(values),
                                 "value": published_score(mean(values)) if values else None})
                        for hour, values in index_history(snapshot.models)],
            "lastUpdated": instant(max(updated)) if updated else None,
        })]

    def alerts(self):
        found = []
        begun = [(one.compared.since, max(TOGETHER_HOURS, model.length)) for model in self.snapshot.models
                 if (one := self.snapshot.alerts[model.id]).severity is not None]
        for model in self.snapshot.models:
            one = self.snapshot.alerts[model.id]
            if one.severity is not None:
                compared = one.compared
                reach = max(TOGETHER_HOURS, model.length)
                found.append(present({
                    "id": f"alert-{model.id}", **self.named(model), "severity": one.severity,
                    "currentScore": published_score(compared.now), "baselineScore": published_score(compared.before),
                    "drop": one.loss, "pValue": published_p(one.p_value),
                    "baselineSamples": model.count_scored(compared.start, compared.began),
                    "samples": model.count_scored(compared.since, model.end), "since": at(compared.since),
                    "sharedBy": sum(abs(other - compared.since) <= max(reach, own) for other, own in begun) - 1}))
        return sorted(found, key=lambda item: (-item["drop"], item["modelId"]))

    def incidents(self, period="24h", limit=DEFAULT_LIMIT):
        hours, end = {"latest": 1, "24h": 24, "7d": 168, "1m": 720}[period], self.snapshot.end
        found = []
        for model in self.snapshot.models:
            for one in self.snapshot.incidents[model.id]:
                if one.resolved is None or one.resolved > end - hours:
                    item = {"id": one.id, **self.named(model), "kind": one.kind, "severity": one.severity,
                            "openedAt": at(one.opened), "resolvedAt": at(one.resolved),
                            "lowestScore": published_score(one.lowest), "baselineScore": published_score(one.baseline),
                            "methodVersion": one.method}
                    found.append(((-one.opened, one.id), present(item)))
        return [item for _, item in sorted(found, key=lambda pair: pair[0])][:int(limit)]

    def providers(self):
        found = []
        scores = {model.id: self.snapshot.scores["24h"][model.id]["combined"].published
                  for model in self.snapshot.models}
        for name, models in sorted(by_provider(self.snapshot.models).items()):
            one = provider(models, scores)
            found.append(present({
                "provider": name, "status": one.status, "availability": rounded(one.availability, 4),
                "models": len(models), "modelsAvailable": len(one.scores), "runs": one.runs,
                "failedRuns": one.failed_runs, "latencyMs": rounded(one.latency, 0),
                "averageScore": published_score(mean(one.scores)) if one.scores else None,
                "lastUpdated": max(self.updated(model) for model in models)}))
        return found

    def degradations(self, period="24h"):
        return [present({
            **self.named(one.model), "direction": one.direction, "magnitude": one.fall.loss,
            "previousScore": published_score(one.fall.compared.before),
            "currentScore": published_score(one.fall.compared.now), "pValue": published_p(one.fall.p_value),
            "worstAxis": one.worst_axis, "worstAxisLoss": one.worst_axis_loss,
        }) for one in self.snapshot.degradations[period]]

    def recommendations(self, period="24h"):
        snapshot = self.snapshot
        ranked = recommendations(snapshot.models, snapshot.scores[period], snapshot.measured[period])
        found = []
        for task, own in ranked.items():
            if own:
                keys = [key for key, _ in own]
                tied = snapshot.ranks.tied(period, task, keys) if task in SORT_SCORES else None
                found.append(present({"task": task, **self.named(snapshot.by_id[keys[0]]), "score": own[0][1],
                                      "alternatives": keys[1:1 + ALTERNATIVES], "tied": tied}))
        return found

    def provider_reliability(self, period="24h"):
        found = []
        for name, models in by_provider(self.snapshot.models).items():
            one = reliability(models, self.snapshot.incidents, period)
            value = published_score(one.value)
            item = {"provider": name, "reliability": value, "availability": rounded(one.availability, 4),
                    "scoreDeviation": published_score(one.deviation), "incidents": one.incidents, "runs": one.runs,
                    "failedRuns": one.failed_runs}
            found.append(((math.inf if value is None else -value, name), present(item)))
        return [item for _, item in sorted(found, key=lambda pair: pair[0])]

    def transparency(self, period="24h"):
        """Without the age of the newest run, and what describes the method."""
        found = []
        for model in self.snapshot.models:
            scored = self.snapshot.scores[period][model.id]["combined"]
            estimate = scored.compared.now_estimate
            found.append(present({
                **self.named(model), "currentScore": scored.published,
                "standardError": published_score(estimate and estimate.published_error),
                "minimumDetectableEffect": published_score(detectable(scored.compared)),
                "samples": [samples(model, suite, period) for suite in model.suites.values()]}))
        return found

    def drift(self, id):
        model, state = self.snapshot.by_id[id], self.snapshot.drifts[id]
        signal, alert = state.signal, self.snapshot.alerts[id].compared
        usual, day = (model.kinds.get("combined") and model.mean(model.kinds["combined"], start, end)
                      for start, end in ((model.end - 192, model.end - 24), (model.end - 24, model.end)))
        axes = []
        for axis in AXES:
            is_declared = f"axis {axis}" in model.kinds
            line, trend = self.snapshot.axis_trends[id][axis] if is_declared else (None, "unavailable")
            slope = published_score(line and line.slope)
            axes.append(present({"axis": axis, "trend": trend, "slopePerDay": slope}))
        word = "quiet" if state.least is not None and len(state.rounds) >= state.least else "warming"
        page_hinkley = present({
            "statistic": published_score(state.statistic), "threshold": float(THRESHOLD), "delta": DELTA,
            "minimumSamples": state.least, "samples": state.samples, "signalled": signal is not None,
            "state": word if signal is None else "signalled", "direction": signal and signal.direction,
            "signalledAt": at(state.signalled_at), "signalledStatistic": published_score(signal and signal.statistic),
            "pValue": published_p(state.p_value), "noise": published_score(state.unit)})
        return [present({
            **self.named(model), "regime": state.regime, "pageHinkley": page_hinkley, "axes": axes,
            "baselineScore": published_score(alert.before if alert else usual and usual.value),
            "currentScore": published_score(day and day.value), "lastUpdated": self.updated(model)})]
