"""The unrounded numbers of a snapshot, as the product writes them for the comparison."""

import math

from .periods import PERIOD_HOURS, PERIODS
from .providers import deviation
from .runs import AXES, HOUR, SORT_SCORES, instant


def estimated(value, estimate):
    return {"score": value, "standardError": estimate and math.sqrt(estimate.variance),
            "degreesOfFreedom": estimate and estimate.freedom}


def at(hour):
    return None if hour is None else instant(hour * HOUR)


def line(found):
    return {"slope": found and found.slope, "p": found and found.p_value}


def period_numbers(snapshot, model, period):
    scores, measured = snapshot.scores[period][model.id], snapshot.measured[period][model.id]
    return {
        "scores": {name: {"now": estimated(scores[name].compared.tested_now, scores[name].compared.now_estimate),
                          "before": scores[name].compared.tested_before}
                   for name in SORT_SCORES},
        "standardError": scores["combined"].compared.now_estimate and scores["combined"].compared.now_estimate.published_error,
        "latencyMs": measured.latency, "costUsd": measured.cost, "availability": measured.availability,
        "deviation": deviation(model, period), "runs": measured.runs, "failedRuns": measured.failed_runs,
    }


def drift_numbers(state):
    return {"statistic": state.statistic or 0.0, "samples": state.samples, "noise": state.unit, "p": state.chance,
            "signalledAt": at(state.signalled_at)}


def compared_numbers(one):
    """Of a newest level against one before, or None."""
    return {"now": estimated(one and one.now, one and one.now_estimate), "since": at(one and one.since),
            "baseline": estimated(one and one.before, one and one.before_estimate)}


def incident_numbers(one):
    return {"openedAt": at(one.opened), "resolvedAt": at(one.resolved), "baseline": one.baseline,
            "mean": one.mean, "lowest": one.lowest}


def exact(snapshot):
    """By model."""
    found = {}
    for model in snapshot.models:
        axes = {axis: snapshot.day_score(model, f"axis {axis}") for axis in AXES}
        found[model.id] = {
            "roundHours": model.length or 1,
            "periods": {period: period_numbers(snapshot, model, period) for period in PERIODS},
            "axes": {axis: score and score.value for axis, (score, _) in axes.items()},
            "drift": drift_numbers(snapshot.drifts[model.id]),
            "slopes": {axis: line(snapshot.axis_trends[model.id][axis][0]) for axis in AXES},
            "levels": {period: compared_numbers(model.levels.since(model.end - 2 * PERIOD_HOURS.get(period, 24)))
                       for period in PERIODS},
            "alert": compared_numbers(snapshot.alerts[model.id].compared),
            "incidents": [incident_numbers(one) for one in snapshot.incidents[model.id]],
        }
    return {"models": found}
