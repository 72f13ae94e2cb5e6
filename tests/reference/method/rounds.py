"""Section "Rounds": the runs of a model, by suite and by round."""

from bisect import bisect_left
from dataclasses import dataclass

from .numbers import mean
from .runs import WINDOW_HOURS, marks_of, ones_of

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 24)
SCHEDULE_HOURS = 7 * 24
COMPLETE_SHARE = 3 / 4
# "`latest` is the newest complete round of `combined` that ended less than 24 hours before H."
LATEST_HOURS = 24


def rounds_for(hours, model, least):
    """A number of rounds that is stated for hourly rounds."""
    return max(least, hours // model.length)


@dataclass(frozen=True)
class ScoredRun:
    """A run with a score: its hour, the mean of its marks, and the marks."""

    hour: int
    value: float
    marks: tuple


@dataclass(frozen=True)
class Round:
    """A complete round: the hour in which it begins, and its score."""

    begin: int
    value: float


@dataclass(frozen=True)
class Mean:
    """The score of the hours from start to before end, with the number of rounds behind it, and that of trials."""

    value: float
    rounds: int
    trials: int
    start: int
    end: int


class Model:
    """A model with its counted runs of the window, oldest first. Hours are counted from 1970."""

    def __init__(self, runs, end, suites, score_kinds, every=None):
        """`runs` are those that count, `every` has the others too: the newest of them names the model."""
        self.runs = sorted(runs, key=lambda run: (run.time, run.id))
        self.every = sorted(every or runs, key=lambda run: (run.time, run.id))
        newest = self.every[-1].model
        self.id, self.name, self.provider = newest["id"], newest["name"], newest["provider"]
        self.prices = newest.get("priceInput"), newest.get("priceOutput")
        self.end, self.suites, self.kinds = end, {suite.name: suite for suite in suites}, score_kinds
        self.stored_scored, self.stored_rounds = {}, {}
        self.length = self.length_of_rounds()

    def scored(self, mark, suite):
        """The runs of a suite with a score, oldest first."""
        key = mark, suite
        if key not in self.stored_scored:
            found = []
            for run in self.runs:
                if run.suite != suite:
                    continue
                marks = ones_of(run, self.suites[suite]) if mark == "ones" else marks_of(run, mark, self.suites[suite])
                if marks:
                    found.append(ScoredRun(run.hour, None if mark == "ones" else mean(marks), tuple(marks)))
            self.stored_scored[key] = found
        return self.stored_scored[key]

    def scored_between(self, mark, suite, start, end):
        scored = self.scored(mark, suite)
        first = bisect_left(scored, start, key=lambda run: run.hour)
        return scored[first:bisect_left(scored, end, key=lambda run: run.hour)]

    def runs_between(self, start, end):
        first = bisect_left(self.runs, start, key=lambda run: run.hour)
        return self.runs[first:bisect_left(self.runs, end, key=lambda run: run.hour)]

    def has_score(self, run):
        """Whether a run has a score or a zero."""
        return bool(marks_of(run, "weighted", self.suites[run.suite]))

    def count_scored(self, start, end):
        return sum(map(self.has_score, self.runs_between(start, end)))

    def mean(self, kind, start, end):
        """The score of the hours from start to before end, or None: it needs runs of every suite that is part of it."""
        value, rounds, trials = 0.0, [], 0
        for suite, weight in kind.weights:
            runs = self.scored_between(kind.mark, suite, start, end)
            if not runs:
                return None
            value += weight * mean([run.value for run in runs])
            trials += sum(len(run.marks) for run in runs)
            # Without a length of rounds there is no noise either, and the number is not used.
            rounds.append(len({run.hour // (self.length or 1) for run in runs}))
        return Mean(value, min(rounds), trials, start, end)

    def ones_between(self, suite, start, end):
        """Whether each trial with a score has all axes 1 (1), all 0 (0), or neither (None)."""
        return [one for run in self.scored_between("ones", suite, start, end) for one in run.marks]

    def length_of_rounds(self):
        """Rules 1 and 2. None for a model without a score in any suite of `combined`."""
        kind = self.kinds.get("combined")
        if kind is None:
            return None
        hours = {suite: {run.hour for run in self.scored(kind.mark, suite)} for suite, _ in kind.weights}
        newest = max((hour for found in hours.values() for hour in found), default=None)
        if newest is None:
            return None
        best, best_share = None, -1.0
        for length in LENGTHS:
            some, complete = schedule(hours, newest, length)
            # Without any round the share is unknown, and the length is the last choice.
            share = len(complete) / len(some) if some else 0.0
            if share > best_share:
                best, best_share = length, share
            if some and share >= COMPLETE_SHARE:
                best = length
                break
        _, complete = schedule(hours, newest, best)
        distances = sorted(later - earlier for earlier, later in zip(complete, complete[1:]))
        # The larger of both middle ones.
        least = distances[len(distances) // 2] if distances else best
        return next((length for length in LENGTHS if length >= least), LENGTHS[-1])

    def rounds(self, kind):
        """The complete rounds of the window, oldest first."""
        if kind.name not in self.stored_rounds:
            self.stored_rounds[kind.name] = self.complete_rounds(kind) if self.length else []
        return self.stored_rounds[kind.name]

    def complete_rounds(self, kind):
        values = []
        for suite, _ in kind.weights:
            by_round = {}
            for run in self.scored(kind.mark, suite):
                by_round.setdefault(run.hour - run.hour % self.length, []).append(run.value)
            values.append(by_round)
        complete = sorted(set.intersection(*(set(by_round) for by_round in values)))
        weights = [weight for _, weight in kind.weights]
        return [Round(begin, sum(weight * mean(by_round[begin]) for weight, by_round in zip(weights, values)))
                for begin in complete if begin >= self.end - WINDOW_HOURS]

    def rounds_between(self, kind, start, end):
        """The rounds that begin from start to before end."""
        rounds = self.rounds(kind)
        first = bisect_left(rounds, start, key=lambda one: one.begin)
        return rounds[first:bisect_left(rounds, end, key=lambda one: one.begin)]

    def latest(self):
        """The newest complete round of `combined` that ended less than 24 hours before the end, or None."""
        rounds = self.rounds(self.kinds["combined"]) if "combined" in self.kinds else []
        if rounds and self.end - (rounds[-1].begin + self.length) < LATEST_HOURS:
            return rounds[-1]
        return None

    def before_latest(self):
        """The newest complete round before it that ended less than 24 hours before it began, or None."""
        latest = self.latest()
        rounds = self.rounds(self.kinds["combined"]) if latest else []
        if len(rounds) < 2 or latest.begin - (rounds[-2].begin + self.length) >= LATEST_HOURS:
            return None
        return rounds[-2]


def schedule(hours, newest, length):
    """The rounds with a score in any suite, and those with one in every suite, of the 7 days before the newest round.

    The newest round is among them if it is complete."""
    suites = [{hour - hour % length for hour in found} for found in hours.values()]
    last = newest - newest % length
    recent = {begin for begin in set.union(*suites) if last - SCHEDULE_HOURS <= begin < last}
    complete = set.intersection(*suites)
    if last in complete:
        recent.add(last)
    return sorted(recent), sorted(recent & complete)
