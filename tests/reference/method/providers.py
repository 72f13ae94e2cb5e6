"""Section "Providers, reliability and recommendations": providers, reliability, the index, and recommendations."""

import math
from dataclasses import dataclass

from .numbers import mean, median, published_score, rounded, sample_variance, t_two_sided
from .periods import availability, measurements, share, trend_of, window, window_of_runs

DAY = 24
OPERATIONAL, OUTAGE = 0.95, 0.5
WEIGHTS = {"availability": 0.5, "steadiness": 0.3, "incidents": 0.2}
LARGEST_DEVIATION = 10
RECOMMENDED_POINTS = 50
TASKS = ("coding", "reasoning", "tooling", "budget", "fast")


def by_provider(models):
    found = {}
    for model in models:
        found.setdefault(model.provider, []).append(model)
    return found


@dataclass(frozen=True)
class Provider:
    """The last 24 hours of a provider, unrounded except for the score."""

    status: str
    availability: float | None
    latency: float | None
    scores: list
    runs: int
    failed_runs: int


def provider(models, scores):
    """Status and numbers of the models of a provider, with their published scores (None without one)."""
    runs = [model.runs_between(model.end - DAY, model.end) for model in models]
    available = share([availability(each) for each in runs])
    latencies = [one for model, own in zip(models, runs)
                 for one in measurements(own, model.suites, "speed", "latency")]
    return Provider(status(rounded(available, 4)), available, median(latencies) if latencies else None,
                    [scores[model.id] for model in models if scores[model.id] is not None], sum(map(len, runs)),
                    sum(run.failed for each in runs for run in each))


def status(available):
    if available is None:
        return "unavailable"
    if available >= OPERATIONAL:
        return "operational"
    return "outage" if available < OUTAGE else "degraded"


def deviation(model, period):
    """The sample standard deviation of the rounds of the period, or None."""
    kind = model.kinds.get("combined")
    span = window(model, period)
    if kind is None or span is None:
        return None
    rounds = model.rounds_between(kind, *span)
    return math.sqrt(sample_variance([one.value for one in rounds])) if len(rounds) >= 2 else None


@dataclass(frozen=True)
class Reliability:
    """The reliability of a provider in a period, unrounded."""

    value: float | None
    availability: float | None
    deviation: float | None
    incidents: int
    runs: int
    failed_runs: int


def reliability(models, incidents, period):
    """The reliability of the models of a provider."""
    end = models[0].end
    start = end - 1 if period == "latest" else window(models[0], period)[0]
    runs = [model.runs_between(*window_of_runs(model, period)) for model in models]
    available = share([availability(each) for each in runs])
    deviations = [one for one in (deviation(model, period) for model in models) if one is not None]
    spread = mean(deviations) if deviations else None
    opened = sum(start <= one.opened < end for model in models for one in incidents[model.id])
    parts = {"availability": available, "incidents": 1 / (1 + opened / len(models)),
             "steadiness": None if spread is None else max(0.0, 1 - spread / LARGEST_DEVIATION)}
    known = {part: value for part, value in parts.items() if value is not None}
    value = 100 * sum(WEIGHTS[part] * one for part, one in known.items()) / sum(WEIGHTS[part] for part in known)
    return Reliability(None if available is None else value, available, spread, opened, sum(map(len, runs)),
                       sum(run.failed for each in runs for run in each))


# The index.

def index_trend(ranks, compared):
    """The trend of the index, by the comparisons of `combined` over 24 hours by model."""
    both = {model: one for model, one in compared if one.is_testable}
    if not both:
        return "unavailable"
    change, models = mean([one.change for one in both.values()]), list(both)
    days = [ranks.pooled(models, [one.now_estimate for one in both.values()]),
            ranks.pooled(models, [one.before_estimate for one in both.values()])]
    statistic = change / math.sqrt(sum(variance for variance, _ in days))
    return trend_of(change, t_two_sided(statistic, min(freedom for _, freedom in days)))


def index_history(models):
    """By hour of the last 24, oldest first: the scores of the complete rounds that the hour is a part of."""
    by_hour = {}
    for model in models:
        kind = model.kinds.get("combined")
        for one in model.rounds(kind) if kind else ():
            for hour in range(one.begin, one.begin + model.length):
                by_hour.setdefault(hour, []).append(one.value)
    end = models[0].end if models else 0
    return [(hour, by_hour.get(hour, [])) for hour in range(end - DAY, end)] if models else []


# Recommendations.

def recommendations(models, scores, measured):
    """Per task the models, best first, with their published scores. All need a combined score."""
    found = {}
    for task in TASKS:
        ranked = []
        for model in models:
            own = scores[model.id]
            if own["combined"].published is None:
                continue
            if task in ("budget", "fast"):
                score = own["combined"].published
                rank = by_measurement(measured[model.id], own["combined"].supported, task)
            else:
                score = own[task].published
                rank = None if score is None else own[task].supported
            if rank is not None:
                ranked.append((-rank, model.id, score))
        found[task] = [(key, score) for _, key, score in sorted(ranked)]
    return found


def by_measurement(measured, supported, task):
    """The number that `budget` and `fast` rank by; larger is better."""
    if supported < RECOMMENDED_POINTS:
        return None
    if task == "fast":
        return None if measured.latency is None else -measured.latency
    if measured.cost is None:
        return None
    return supported / measured.cost if measured.cost else math.inf
