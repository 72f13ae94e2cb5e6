"""Section "Drift": the Page-Hinkley test, its newest signal, and the regime."""

import math
from dataclasses import dataclass

from .noise import LEAST_DEVIATION, LEAST_VARIANCE, MONTH_HOURS, noise_of
from .numbers import holm, mean, published_p, t_two_sided
from .periods import rounds_for

DELTA, THRESHOLD = 0.5, 10
LIMIT = 3
SIGNAL_ROUNDS, LEAST_SIGNAL_ROUNDS = 48, 12
FORCE_ROUNDS, LEAST_FORCE_ROUNDS = 72, 3
DRIFT_P = 0.01
RECOVERING_HOURS = 48


@dataclass(frozen=True)
class Signal:
    """A signal: places of the restart, of the last extreme and of the signal itself in the list of rounds."""

    restart: int
    extreme: int
    place: int
    direction: str
    statistic: float


class PageHinkley:
    """The two-sided test with alpha 1, so that the sums forget nothing."""

    def __init__(self, restart):
        self.restart, self.count, self.mean = restart, 0, 0.0
        self.rising, self.falling = 0.0, 0.0
        self.lowest, self.highest = math.inf, -math.inf
        self.lowest_at, self.highest_at = restart, restart

    def add(self, value, place, limit):
        """Adds a sample, limited by its distance from the mean of the samples before it."""
        if self.count:
            value = min(self.mean + limit, max(self.mean - limit, value))
        self.count += 1
        self.mean += (value - self.mean) / self.count
        self.rising += value - self.mean - DELTA
        self.falling += value - self.mean + DELTA
        # The first of equal extremes.
        if self.rising < self.lowest:
            self.lowest, self.lowest_at = self.rising, place
        if self.falling > self.highest:
            self.highest, self.highest_at = self.falling, place

    @property
    def up(self):
        return self.rising - self.lowest

    @property
    def down(self):
        return self.highest - self.falling

    @property
    def statistic(self):
        return max(self.up, self.down)

    def signal(self, place):
        if self.up > self.down:
            return Signal(self.restart, self.lowest_at, place, "up", self.up)
        return Signal(self.restart, self.highest_at, place, "down", self.down)


def units(noise):
    """The deviation of a round in the long run, which is the unit of the test, and that of a single round."""
    if noise is None:
        return LEAST_DEVIATION, LEAST_DEVIATION
    return math.sqrt(noise.long_run(LEAST_VARIANCE)), math.sqrt(noise.variance(1, LEAST_VARIANCE))


def run_test(values, noise, least_rounds):
    """The test after all rounds, and the newest signal or None."""
    unit, single = units(noise)
    test, newest = PageHinkley(0), None
    for place, value in enumerate(values):
        # A signal restarts the test with the next round.
        if newest is not None and newest.place == place - 1:
            test = PageHinkley(place)
        test.add(value / unit, place, LIMIT * single / unit)
        if test.count >= least_rounds and test.statistic > THRESHOLD:
            newest = test.signal(place)
    return test, newest


def p_of_signal(signal, values, noise):
    """Before the correction for all models: the rounds after the extreme to the newest, against those up to it."""
    before, after = values[signal.restart:signal.extreme + 1], values[signal.extreme + 1:]
    variance = noise.variance(len(before), LEAST_VARIANCE) + noise.variance(len(after), LEAST_VARIANCE)
    p = t_two_sided((mean(after) - mean(before)) / math.sqrt(variance), noise.freedom)
    return min(1.0, p * max(1.0, (signal.place - signal.restart + 1) / 4))


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
        return None if self.signal is None else self.rounds[self.signal.place].begin

    @property
    def has_drifted(self):
        return self.signal is not None and published_p(self.p_value) < DRIFT_P


def drift_of(model, kind):
    if kind is None or model.length is None:
        return Drift([])
    rounds = model.rounds_between(kind, model.end - MONTH_HOURS, model.end)
    noise = noise_of(model.rounds(kind))
    found = Drift(rounds, noise and units(noise)[0], least=rounds_for(SIGNAL_ROUNDS, model, LEAST_SIGNAL_ROUNDS))
    if not rounds:
        return found
    values = [one.value for one in rounds]
    test, signal = run_test(values, noise, found.least)
    found.statistic, found.samples = test.statistic, test.count
    force = rounds_for(FORCE_ROUNDS, model, LEAST_FORCE_ROUNDS)
    if signal is not None and len(rounds) - signal.place <= force:
        found.signal, found.chance = signal, p_of_signal(signal, values, noise)
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
    if state.signal is None and (state.least is None or state.samples < state.least):
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
