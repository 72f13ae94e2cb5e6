"""Sections "Lines" and "Alerts and degradations": lines through rounds, the trends of axes, and degradations."""

import math
from dataclasses import dataclass

from .alerts import falls
from .numbers import holm, mean, published_p, published_score, t_two_sided
from .periods import PERIOD_HOURS
from .rounds import rounds_for
from .runs import AXES

DEGRADATION_P, DEGRADATION_POINTS = 0.05, 0.5
AXIS_TREND_HOURS, AXIS_TREND_POINTS = 7 * 24, 0.2
AXIS_ROUNDS, LEAST_LINE_ROUNDS = 24, 5
LINE_P = 0.01
LEAST_LINE_VARIANCE = 0.25


@dataclass(frozen=True)
class Line:
    """A least-squares line: points per day, and the two-sided p-value."""

    slope: float
    p_value: float


def line_through(rounds, long_run):
    """The line through rounds; the variance is at least that of a round in the long run."""
    days = [one.begin / 24 for one in rounds]
    centre, level = mean(days), mean([one.value for one in rounds])
    spread = math.fsum((day - centre) ** 2 for day in days)
    slope = math.fsum((day - centre) * (one.value - level) for day, one in zip(days, rounds)) / spread
    freedom = len(rounds) - 2
    residuals = (one.value - level - slope * (day - centre) for day, one in zip(days, rounds))
    variance = max(math.fsum(one * one for one in residuals) / freedom, long_run or 0.0, LEAST_LINE_VARIANCE)
    return Line(slope, t_two_sided(slope / math.sqrt(variance / spread), freedom))


def recent_line(noises, model, kind, hours, least):
    """The line through the rounds of the last hours that are complete for `combined` too; None with too few."""
    if kind is None or model.length is None:
        return None
    complete = {one.begin for one in model.rounds(model.kinds["combined"])}
    rounds = [one for one in model.rounds_between(kind, model.end - hours, model.end) if one.begin in complete]
    if len(rounds) < rounds_for(least, model, LEAST_LINE_ROUNDS):
        return None
    return line_through(rounds, noises.own_long_run(model, kind))


def word(line, p, change, least):
    """The trend of a line with a corrected p-value, whose change is at least so many points."""
    if line is None:
        return "unavailable"
    if p < LINE_P and abs(change) >= least:
        return "up" if change > 0 else "down"
    return "stable"


def axis_trends(models, noises):
    """By model and axis: the line and its trend, corrected for all axes of all models."""
    lines = {}
    for model in models:
        for axis in AXES:
            kind = model.kinds.get(f"axis {axis}")
            lines[model.id, axis] = recent_line(noises, model, kind, AXIS_TREND_HOURS, AXIS_ROUNDS)
    corrected = holm({key: line and line.p_value for key, line in lines.items()})
    found = {model.id: {} for model in models}
    for (key, axis), line in lines.items():
        trend = word(line, corrected.get((key, axis)), line and line.slope, AXIS_TREND_POINTS)
        found[key][axis] = line, trend
    return found


@dataclass(frozen=True)
class DegradedModel:
    """A degraded model: its fall with the corrected p-value, and the axis with the largest loss."""

    model: object
    fall: object
    direction: str
    worst_axis: str | None
    worst_axis_loss: float | None


def degradations(models, drifts, period):
    """The degraded models of a period, the largest loss first."""
    found = []
    for key, one in falls(models, 2 * PERIOD_HOURS.get(period, 24)).items():
        model, state = next(model for model in models if model.id == key), drifts[key]
        if one.compared is None or published_p(one.p_value) >= DEGRADATION_P or one.loss < DEGRADATION_POINTS:
            continue
        direction = state.signal.direction if state.has_drifted else "stable"
        found.append(DegradedModel(model, one, direction, *worst_axis(model, one.compared)))
    return sorted(found, key=lambda one: (-one.fall.loss, one.model.id))


def worst_axis(model, compared):
    """The axis with the largest published loss between two levels, the last of equal ones, and the loss; None without a loss."""
    axis, largest = None, 0.0
    for each in AXES:
        kind = model.kinds.get(f"axis {each}")
        spans = (compared.start, compared.began), (compared.since, model.end)
        before, now = (model.mean(kind, *span) if kind else None for span in spans)
        loss = 0.0 if before is None or now is None else published_score(before.value - now.value)
        if loss > 0 and loss >= largest:
            axis, largest = each, loss
    return axis, largest if axis else None
