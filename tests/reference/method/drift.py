"""Section "Drift": the newest change of level, the Page-Hinkley statistic, and the regime."""

import math
from dataclasses import dataclass

from .noise import LEAST_DEVIATION, MONTH_HOURS
from .numbers import holm, published_p
from .rounds import rounds_for

DELTA, THRESHOLD = 0.5, 10
LIMIT = 3
SIGNAL_ROUNDS, LEAST_SIGNAL_ROUNDS = 48, 16
FORCE_ROUNDS, LEAST_FORCE_ROUNDS = 72, 3
DRIFT_P = 0.01
RECOVERING_HOURS = 48


@dataclass(frozen=True)
class Signal:
    """A change in force: the hour of the round with which it was found, its direction, and the statistic then."""

    hour: int
    direction: str
    statistic: float


class PageHinkley:
    """The two-sided test with alpha 1, so that the sums forget nothing."""

    def __init__(self):
        self.count, self.mean = 0, 0.0
        self.rising, self.falling = 0.0, 0.0
        self.lowest, self.highest = math.inf, -math.inf

    def add(self, value, limit):
        """Adds a sample, limited by its distance from the mean of the samples before it."""
        if self.count:
            value = min(self.mean + limit, max(self.mean - limit, value))
        self.count += 1
        self.mean += (value - self.mean) / self.count
        self.rising += value - self.mean - DELTA
        self.falling += value - self.mean + DELTA
        self.lowest, self.highest = min(self.lowest, self.rising), max(self.highest, self.falling)

    @property
    def statistic(self):
        return max(self.rising - self.lowest, self.highest - self.falling)


def run_test(rounds, levels, least_rounds):
    """The test after each round. One above the threshold restarts with the next round."""
    single = unit = LEAST_DEVIATION
    if levels.noise is not None:
        single, unit = math.sqrt(levels.noise.single), math.sqrt(levels.noise.long_run)
    test = PageHinkley()
    for one in rounds:
        if test.count >= least_rounds and test.statistic > THRESHOLD:
            test = PageHinkley()
        test.add(one.value / unit, LIMIT * single / unit)
        yield one.begin, test.statistic, test.count


@dataclass
class Drift:
    """The state of a model's test. The signal is the one in force, and its p-value is that before the correction."""

    rounds: list
    unit: float | None = None
    statistic: float | None = None
    samples: int = 0
    least: int | None = None
    signal: object = None
    chance: float | None = None
    p_value: float | None = None
    regime: str = "unavailable"

    @property
    def signalled_at(self):
        return self.signal and self.signal.hour

    @property
    def has_drifted(self):
        return self.signal is not None and published_p(self.p_value) < DRIFT_P


def drift_of(model, kind):
    if kind is None or model.length is None:
        return Drift([])
    levels, rounds = model.levels, model.rounds_between(kind, model.end - MONTH_HOURS, model.end)
    found = Drift(rounds, levels.noise and math.sqrt(levels.noise.long_run),
                  least=rounds_for(SIGNAL_ROUNDS, model, LEAST_SIGNAL_ROUNDS))
    if not rounds:
        return found
    tested = list(run_test(rounds, levels, found.least))
    _, found.statistic, found.samples = tested[-1]
    if change := levels.newest_change():
        newest, chance = change
        hour = levels.begins[newest.found]
        is_old = hour < rounds[0].begin
        if not is_old and sum(one.begin >= hour for one in rounds) <= rounds_for(FORCE_ROUNDS, model, LEAST_FORCE_ROUNDS):
            statistic = next((value for begin, value, _ in tested if begin == hour), 0.0)
            found.signal, found.chance = Signal(hour, newest.direction, statistic), chance
    return found


def regime(model, state, incidents, alert):
    """The first that applies."""
    degradations = [one for one in incidents if one.kind == "degradation"]
    kind = model.kinds.get("combined")
    if kind is None or model.mean(kind, model.end - 24, model.end) is None:
        return "unavailable"
    if any(one.resolved is None for one in degradations):
        return "degraded"
    if any(one.resolved >= model.end - RECOVERING_HOURS for one in degradations):
        return "recovering"
    if alert.severity is not None:
        return "degraded"
    if state.has_drifted:
        return "drifting"
    if state.signal is None and (state.least is None or len(state.rounds) < state.least):
        return "unavailable"
    return "stable"


def drifts(models, incidents, alerts):
    """By model: the test, its signal in force, and the regime."""
    found = {model.id: drift_of(model, model.kinds.get("combined")) for model in models}
    chances = {key: 1.0 if one.chance is None else one.chance for key, one in found.items() if one.rounds}
    corrected = holm(chances)
    for model in models:
        state = found[model.id]
        state.p_value = corrected[model.id] if state.signal is not None else None
        state.regime = regime(model, state, incidents[model.id], alerts[model.id])
    return found
