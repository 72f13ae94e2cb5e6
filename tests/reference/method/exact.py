"""The unrounded numbers of a snapshot, as the product writes them for the comparison."""

import math

from .periods import PERIODS
from .providers import deviation
from .runs import AXES, HOUR, SORT_SCORES, instant


def estimated(score, estimate):
    return {"score": score and score.value, "standardError": estimate and math.sqrt(estimate.variance),
            "degreesOfFreedom": estimate and estimate.freedom}


def at(hour):
    return None if hour is None else instant(hour * HOUR)


def line(found):
    return {"slope": found and found.slope, "p": found and found.p_value}


def period_numbers(snapshot, model, period):
    scores, measured = snapshot.scores[period][model.id], snapshot.measured[period][model.id]
    return {
        "scores": {name: {"now": estimated(scores[name].compared.now, scores[name].compared.now_estimate),
                          "before": scores[name].compared.before and scores[name].compared.before.value}
                   for name in SORT_SCORES},
        "latencyMs": measured.latency, "costUsd": measured.cost, "availability": measured.availability,
        "deviation": deviation(model, period), "runs": measured.runs, "failedRuns": measured.failed_runs,
    }


def drift_numbers(state):
    return {"statistic": state.statistic or 0.0, "samples": state.samples, "noise": state.unit, "p": state.chance,
            "signalledAt": at(state.signalled_at)}


def alert_numbers(one):
    compared = one.compared
    return {"now": estimated(compared.now, compared.now_estimate), "baselineSamples": one.baseline_runs,
            "baseline": estimated(compared.before, compared.before_estimate)}


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
            "directions": {period: line(snapshot.directions[period][model.id][0]) for period in PERIODS},
            "alert": alert_numbers(snapshot.alerts[model.id]),
            "incidents": [incident_numbers(one) for one in snapshot.incidents[model.id]],
        }
    return {"models": found}
