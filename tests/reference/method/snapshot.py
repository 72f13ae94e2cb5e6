"""Everything that is computed from an export at an instant, each part once."""

from functools import cached_property

from .alerts import alerts
from .drift import drifts
from .incidents import incidents_of
from .levels import Levels
from .lines import axis_trends, degradations
from .noise import Noises
from .periods import PERIODS, measured_in, score_of, scores_of_period, window
from .ranks import Ranks
from .rounds import Model
from .runs import HOUR, WINDOW_HOURS, counted_runs, kinds

# Per period the hours of the history, and the length of a point before it is fitted to that of a round.
HISTORY = {"latest": (24, 1), "24h": (24, 3), "7d": (168, 6), "1m": (720, 24)}


def models_of(runs, now, suites):
    """The listed models in the order of their ids, and the full hour at which the window ends."""
    current = now // HOUR
    end = current + any(run.hour == current for run in runs)
    every, counted, found = {}, {}, kinds(suites)
    for run in runs:
        if end - WINDOW_HOURS <= run.hour < end:
            every.setdefault(run.model["id"], []).append(run)
    for run in counted_runs(runs, suites):
        if end - WINDOW_HOURS <= run.hour < end:
            counted.setdefault(run.model["id"], []).append(run)
    return [Model(counted.get(key, []), end, suites, found, own) for key, own in sorted(every.items())], end


class Snapshot:
    """The results by model. Everything is unrounded where nothing else is said."""

    def __init__(self, export, now, suites):
        self.now, self.suites = now, suites
        self.models, self.end = models_of(export.runs, now, suites)
        for model in self.models:
            kind = model.kinds.get("combined")
            model.levels = Levels(model, model.rounds(kind) if kind and model.length else [])
        self.by_id = {model.id: model for model in self.models}
        self.first_runs = {}
        for run in export.runs:
            key = run.model["id"]
            self.first_runs[key] = min(run.time, self.first_runs.get(key, run.time))
        self.noises = Noises(self.models)
        self.incidents = incidents_of(self.models, export)
        self.alerts = alerts(self.models)
        self.drifts = drifts(self.models, self.incidents, self.alerts)
        self.scores = {period: scores_of_period(self.models, self.noises, period) for period in PERIODS}
        self.measured = {period: {model.id: measured_in(model, period) for model in self.models} for period in PERIODS}

    @cached_property
    def ranks(self):
        return Ranks(self)

    @cached_property
    def axis_trends(self):
        return axis_trends(self.models, self.noises)

    @cached_property
    def degradations(self):
        return {period: degradations(self.models, self.drifts, period) for period in PERIODS}

    def day_score(self, model, name):
        """A score of the last 24 hours and its estimate."""
        return score_of(self.noises, model, model.kinds.get(name), (model.end - 24, model.end))

    def history(self, model, period):
        """The points of a history, oldest first: the hour, the score, its estimate, and the counted runs."""
        span, length = HISTORY[period]
        step = length
        while model.length and length % model.length:
            length += step
        length = min(length, span)
        begin, points, kind = -(-(model.end - span) // length) * length, [], model.kinds.get("combined")
        while begin < model.end:
            hours = begin, begin + length
            points.append((begin, *score_of(self.noises, model, kind, hours), model.count_scored(*hours)))
            begin += length
        return points

    def last_updated(self, model, period):
        """The newest run with a score or zero in the period, else in the window, else the first run. In seconds."""
        hours = window(model, period) or (model.end, model.end)
        for runs in (model.runs_between(*hours), model.runs):
            scored = [run.time for run in runs if model.has_score(run)]
            if scored:
                return max(scored)
        return self.first_runs[model.id]
