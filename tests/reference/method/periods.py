"""Sections "Periods, trends and lines" and "Missing measurements": the scores and the measurements of a period."""

import math
from dataclasses import dataclass

from .noise import bounds
from .numbers import holm, mean, median, published_lower, published_p, published_score, t_two_sided
from .runs import SORT_SCORES

PERIOD_HOURS = {"24h": 24, "7d": 168, "1m": 720}
PERIODS = ("latest", *PERIOD_HOURS)
TREND_P, TREND_POINTS = 0.01, 0.5


def hours_of(begin, model):
    return None if begin is None else (begin.begin, begin.begin + model.length)


def window(model, period):
    """The hours of a period, as start and end, or None for `latest` without a round."""
    if period == "latest":
        return hours_of(model.latest(), model)
    return model.end - PERIOD_HOURS[period], model.end


def window_before(model, period):
    """The hours that a period is compared with."""
    if period == "latest":
        return hours_of(model.before_latest(), model)
    return model.end - 2 * PERIOD_HOURS[period], model.end - PERIOD_HOURS[period]


def window_of_runs(model, period):
    """The hours whose runs are counted: for `latest` the newest hours, as many as a round has."""
    if period == "latest":
        return model.end - (model.length or 1), model.end
    return window(model, period)


def tested(score, estimate):
    return score and score.value - (estimate.effect if estimate else 0.0)


@dataclass(frozen=True)
class Comparison:
    """The score of a period and of that before it, with their estimates; any of them may be None."""

    now: object
    before: object
    now_estimate: object
    before_estimate: object

    @property
    def has_means(self):
        return self.now is not None and self.before is not None

    @property
    def is_testable(self):
        return self.now_estimate is not None and self.before_estimate is not None

    @property
    def tested_now(self):
        """The score less the mean effect of its hours and weekdays, or None."""
        return tested(self.now, self.now_estimate)

    @property
    def tested_before(self):
        return tested(self.before, self.before_estimate)

    @property
    def change(self):
        return self.tested_now - self.tested_before

    def two_sided(self):
        return t_two_sided(*self.statistic()) if self.is_testable else None

    def statistic(self):
        variance = self.now_estimate.variance + self.before_estimate.variance
        freedom = min(self.now_estimate.freedom, self.before_estimate.freedom)
        return self.change / math.sqrt(variance), freedom


def score_of(noises, model, kind, span):
    """The score of these hours and its estimate."""
    score = model.mean(kind, *span) if kind and span else None
    return score, noises.estimate(model, kind, score) if kind else None


def compare(noises, model, kind, period):
    now, now_estimate = score_of(noises, model, kind, window(model, period))
    before, before_estimate = score_of(noises, model, kind, window_before(model, period))
    return Comparison(now, before, now_estimate, before_estimate)


def trend_of(change, p):
    """"Trend": the word for a corrected p-value and a change, which is not rounded."""
    if p is None:
        return "unavailable"
    if published_p(p) < TREND_P and abs(change) >= TREND_POINTS:
        return "up" if change > 0 else "down"
    return "stable"


@dataclass(frozen=True)
class Scored:
    """A score with its comparison and its trend."""

    compared: Comparison
    trend: str

    @property
    def published(self):
        return published_score(self.compared.now and self.compared.now.value)

    @property
    def supported(self):
        """What models are recommended by: the published lower bound. Without one they come last, by their score."""
        lower, _ = bounds(self.compared.now, self.compared.now_estimate)
        return self.published - 100 if lower is None else published_lower(lower)


def scores_of_period(models, noises, period):
    """By model and `sortBy` score."""
    found = {model.id: {} for model in models}
    for name in SORT_SCORES:
        compared = {model.id: compare(noises, model, model.kinds.get(name), period) for model in models}
        corrected = holm({key: one.two_sided() for key, one in compared.items()})
        for key, one in compared.items():
            p = corrected.get(key)
            found[key][name] = Scored(one, trend_of(one.change if p is not None else None, p))
    return found


# Sections "Failed trials" and "Missing measurements".

def availability(runs):
    """The share of trials that did not fail, as (not failed, all), by the runs of one model."""
    good, total = 0.0, 0.0
    for suite in sorted({run.suite for run in runs}):
        own = [run for run in runs if run.suite == suite]
        listed = [len(run.trials) for run in own if run.failure is None]
        average = max(1.0, mean(listed)) if listed else 1.0
        good += sum(1 for run in own for trial in run.trials if trial["reason"] is None)
        total += sum(listed) + average * (len(own) - len(listed))
    return good, total


def share(parts):
    """The share of the sums, or None without trials."""
    good, total = (sum(column) for column in zip(*parts)) if parts else (0, 0)
    return good / total if total else None


def measurements(runs, suites, feed, field):
    """The latencies or costs of the trials in the suites that feed `speed` or `price`."""
    return [trial[field] for run in runs if feed in suites[run.suite].feeds
            for trial in run.trials if trial["reason"] is None and trial[field] is not None]


@dataclass(frozen=True)
class Measured:
    """What is measured besides scores, unrounded; None where there is nothing."""

    latency: float | None
    cost: float | None
    availability: float | None
    runs: int
    failed_runs: int


def measured_in(model, period):
    span = window(model, period)
    timed = model.runs_between(*span) if span else []
    latencies = measurements(timed, model.suites, "speed", "latency")
    costs = measurements(timed, model.suites, "price", "cost")
    runs = model.runs_between(*window_of_runs(model, period))
    return Measured(median(latencies) if latencies else None, mean(costs) if costs else None,
                    share([availability(runs)]), len(runs), sum(run.failed for run in runs))
