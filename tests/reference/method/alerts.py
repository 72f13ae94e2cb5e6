"""Section "Periods, trends and lines", "Alerts": falls that last, baselines and alerts."""

import math
from bisect import bisect_left
from dataclasses import dataclass

from .noise import LEAST_VARIANCE, MONTH_HOURS, noise_of
from .numbers import holm, published_p, t_below
from .periods import Comparison

DAY, WEEK = 24, 7 * 24
ALERT_P, ALERT_POINTS, CRITICAL_POINTS = 0.001, 2, 8
FALL_P, FALL_POINTS, RECOVERED_POINTS = 0.001, 2, 1
FIRST_HOURS = 48


class Means:
    """Means of the rounds that begin between two hours, by sums."""

    def __init__(self, rounds):
        self.begins, self.sums = [one.begin for one in rounds], [0.0]
        for one in rounds:
            self.sums.append(self.sums[-1] + one.value)

    def between(self, start, end):
        """The mean and the number of rounds; the mean is None without any."""
        first, last = bisect_left(self.begins, start), bisect_left(self.begins, end)
        count = last - first
        return ((self.sums[last] - self.sums[first]) / count if count else None), count


def after_maximum(rounds, middle):
    """The hour of the round after the first maximum of the cumulative sum above the middle, not after the last round.

    It is that of the first round if the sum is never positive."""
    total, largest, after = 0.0, 0.0, 0
    for place, one in enumerate(rounds):
        total += one.value - middle
        if total > largest:
            largest, after = total, place + 1
    return rounds[min(after, len(rounds) - 1)].begin


@dataclass(frozen=True)
class Fall:
    """A fall that was found: the hours in which it was found and began, and the mean that it is compared with."""

    found: int
    began: int
    baseline: float


def found_fall(model, kind, means, noise, hour):
    """Rules 1 and 2 at an hour, or None."""
    now, count = means.between(hour - DAY, hour)
    before, count_before = means.between(hour - DAY - WEEK, hour - DAY)
    if now is None or before is None or before - now < FALL_POINTS:
        return None
    variance = noise.variance(count, LEAST_VARIANCE) + noise.variance(count_before, LEAST_VARIANCE)
    if t_below((now - before) / math.sqrt(variance), noise.freedom) >= FALL_P:
        return None
    rounds = model.rounds_between(kind, hour - DAY - WEEK, hour)
    began = min(after_maximum(rounds, (now + before) / 2), hour - DAY)
    baseline, _ = means.between(began - WEEK, began)
    return Fall(hour, began, before if baseline is None else baseline)


def has_ended(fall, means, hour):
    """Rule 3."""
    now, _ = means.between(hour - DAY, hour)
    return fall.baseline - now < RECOVERED_POINTS or hour >= fall.found + WEEK


def lasting_fall(model, kind):
    """The fall that lasts at the end of the window, or None."""
    rounds = model.rounds(kind)
    noise = noise_of(rounds)
    if noise is None:
        return None
    means, fall = Means(rounds), None
    for hour in range(rounds[0].begin + FIRST_HOURS, model.end + 1):
        if means.between(hour - DAY, hour)[0] is None:
            continue
        if fall is None:
            fall = found_fall(model, kind, means, noise, hour)
        elif has_ended(fall, means, hour):
            fall = None
    return fall


def baseline_hours(model, kind):
    """The hours of the baseline: 7 days before the last 24 hours, or before a fall that lasts."""
    fall = lasting_fall(model, kind)
    end = model.end - DAY if fall is None else fall.began
    return end - WEEK, end


@dataclass
class Alert:
    """The comparison of the last 24 hours with the baseline. Without an alert it has no severity."""

    compared: Comparison
    start: int
    end: int
    baseline_runs: int
    p_value: float | None = None
    severity: str | None = None
    since: int | None = None


def against_baseline(model, kind):
    if kind is None:
        return Alert(Comparison(None, None, None, None), model.end - DAY - WEEK, model.end - DAY, 0)
    start, end = baseline_hours(model, kind)
    now, before = model.mean(kind, model.end - DAY, model.end), model.mean(kind, start, end)
    before_start = model.rounds_between(kind, start - MONTH_HOURS, start)
    noise = noise_of([one for one in before_start if one.begin + model.length <= start])
    if noise is None:
        noise = noise_of(model.rounds_between(kind, start, model.end))
    estimates = [noise and score and noise.estimate(score.rounds, LEAST_VARIANCE) for score in (now, before)]
    return Alert(Comparison(now, before, *estimates), start, end, model.count_scored(start, end))


def alerts(models):
    """By model: the comparison with the baseline, with a severity if there is an alert."""
    found = {model.id: against_baseline(model, model.kinds.get("combined")) for model in models}
    corrected = holm({key: one.compared.fall() for key, one in found.items()})
    for model in models:
        one = found[model.id]
        one.p_value, compared = corrected.get(model.id), one.compared
        if one.p_value is None or published_p(one.p_value) >= ALERT_P or compared.published_loss < ALERT_POINTS:
            continue
        one.severity = "critical" if compared.published_loss >= CRITICAL_POINTS else "warning"
        rounds = model.rounds_between(model.kinds["combined"], one.start, model.end)
        if rounds:
            one.since = after_maximum(rounds, (compared.now.value + compared.before.value) / 2)
    return found
