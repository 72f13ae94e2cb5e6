"""Section "Uncertainty": the variance of a score over n rounds, and its degrees of freedom."""

import math
from dataclasses import dataclass

from .numbers import beta_quantile, increasing_root, mean, median, t_quantile_95

MONTH_HOURS = 30 * 24
WEEK_HOURS = 7 * 24
SPECTRUM_HOURS = 4 * WEEK_HOURS
# Fewer rounds have no measured noise.
LEAST_ROUNDS = 8
LONGEST_BLOCK = 24
LONGEST_DISTANCE = 48
CORRELATED_BLOCK = 6
LEAST_DEVIATION = 0.5
LEAST_VARIANCE = LEAST_DEVIATION**2
FREEDOM_PER_BLOCK = 0.7
MOST_FREEDOM = 100
PEER_FREEDOM = 4
FREEDOM_WITHOUT_PEERS = 20
LEAST_PEERS = 3
LIMIT = 3
# The variance of a normal variable that is limited to three standard deviations.
LIMITED_VARIANCE = 0.994977
# The median of the absolute value of a standard normal variable.
NORMAL_MEDIAN = 0.6744897501960817
HIGHEST_CORRELATION = 0.98


@dataclass(frozen=True)
class Estimate:
    """The variance of a mean, and its degrees of freedom; how much further the interval extends below and above."""

    variance: float
    freedom: float
    below: float = 0.0
    above: float = 0.0
    # The variance of the interval, in which a weekly cycle may be missing.
    of_interval: float | None = None


def ar_share(n, correlation):
    """The variance of the mean of n rounds of a first-order autoregression, of which one round has the variance 1."""
    c = correlation
    return ((1 + c) / (1 - c) - 2 * c * (1 - c**n) / (n * (1 - c) ** 2)) / n


def correlation_of(k, quotient):
    """The correlation for which means of k rounds have this variance, of which one round has the variance 1."""
    if k == 1 or quotient <= 1 / k:
        return 0.0
    if quotient >= ar_share(k, HIGHEST_CORRELATION):
        return HIGHEST_CORRELATION
    return increasing_root(lambda c: ar_share(k, c) - quotient, 0.0, HIGHEST_CORRELATION)


def running_means(values, m):
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    return [(sums[at + m] - sums[at]) / m for at in range(len(values) - m + 1)]


class Noise:
    """The noise of a history of at least eight values."""

    def __init__(self, values, limited=True):
        # The distances from the mean, so that a constant series has exactly no variance.
        centre = mean(values)
        constant = max(values) - min(values) < 1e-9
        self.values = [0.0 if constant else value - centre for value in values]
        self.count, self.limited, self.stored = len(values), limited, {}
        self.correlated = min(CORRELATED_BLOCK, self.count // 8)
        self.freedom = min(MOST_FREEDOM, FREEDOM_PER_BLOCK * self.count / self.correlated)
        self.correlation = None

    def differences(self, m, g):
        """Of the means of m consecutive rounds and those that begin g rounds later."""
        means = running_means(self.values, m)
        return [abs(earlier - later) for earlier, later in zip(means, means[g:])]

    def block(self, m):
        """The measured variance of means of m rounds."""
        if m not in self.stored:
            g = max(2 * m, min(LONGEST_DISTANCE, self.count // 3))
            differences = self.differences(m, g)
            if self.limited:
                single = math.sqrt(mean([one * one for one in self.differences(1, g)]))
                s = max(median(differences) / NORMAL_MEDIAN, single / math.sqrt(m))
                squares = [min(one, LIMIT * s) ** 2 for one in differences]
                self.stored[m] = mean(squares) / 2 / LIMITED_VARIANCE
            else:
                self.stored[m] = mean([one * one for one in differences]) / 2
        return self.stored[m]

    def measured(self, n):
        m = min(n, LONGEST_BLOCK, self.count // 8)
        return self.block(m) * m / n

    def modelled(self, n):
        one = self.block(1)
        if one == 0:
            return 0.0
        if self.correlation is None:
            self.correlation = correlation_of(self.correlated, self.block(self.correlated) / one)
        return one * ar_share(n, self.correlation)

    def variance(self, n, least=0.0):
        """The larger of both estimates, and at least that of rounds with the least variance."""
        return max(self.measured(n), self.modelled(n), least / n)

    def long_run(self, least=0.0):
        """The variance of a round in the long run."""
        return 24 * self.variance(24, least)

    def estimate(self, n, least):
        return Estimate(self.variance(n, least), self.freedom)


def weekly_cycle(rounds, length):
    """a and b of the weekly cycle of rounds, given as their hour since the beginning of the month and their value, or None."""
    recent = [(t, value) for t, value in rounds if t >= MONTH_HOURS - SPECTRUM_HOURS]
    if len(recent) < 0.75 * SPECTRUM_HOURS / length:
        return None
    centre = mean([value for _, value in recent])

    def sums(f):
        angles = [(2 * math.pi * f * t / SPECTRUM_HOURS, value - centre) for t, value in recent]
        return sum(d * math.cos(angle) for angle, d in angles), sum(d * math.sin(angle) for angle, d in angles)

    powers = {f: sum(part * part for part in sums(f)) for f in range(1, 8)}
    others = sum(power for f, power in powers.items() if f != 4)
    if powers[4] == 0 or (others > 0 and (1 + powers[4] / others) ** -6 >= 0.001):
        return None
    c, s = sums(4)
    return 2 * c / len(recent), 2 * s / len(recent)


def cycle_at(t, a, b):
    return a * math.cos(2 * math.pi * t / WEEK_HOURS) + b * math.sin(2 * math.pi * t / WEEK_HOURS)


def noise_of(rounds, limited=True):
    """The noise of these rounds, or None if they are too few."""
    return Noise([one.value for one in rounds], limited) if len(rounds) >= LEAST_ROUNDS else None


def least_variance(kind):
    """That of a round which varies by 0.5 points in every suite."""
    return sum((LEAST_DEVIATION * weight) ** 2 for _, weight in kind.weights)


def shares_of_ones(model):
    """The share of ones in the last 30 days by suite, for the suites with 0/1 marks."""
    found = {}
    for suite in model.suites:
        marks = model.ones_between(suite, model.end - MONTH_HOURS, model.end)
        if marks and None not in marks:
            found[suite] = mean(marks)
    return found


class Noises:
    """The noise of every model and score, with that of peers for those with little history."""

    def __init__(self, models):
        self.models = models
        self.own, self.shares, self.peers, self.cycles, self.rests = {}, {}, {}, {}, {}
        for model in models:
            self.shares[model.id] = shares_of_ones(model)
            for kind in model.kinds.values():
                rounds = model.rounds_between(kind, model.end - MONTH_HOURS, model.end)
                self.own[model.id, kind.name] = noise_of(rounds, limited=not self.has_marks(model, kind))

    def has_marks(self, model, kind):
        return any(suite in self.shares[model.id] for suite, _ in kind.weights)

    def peer_variance(self, model, kind, n):
        """The variance for n rounds by the noise of the models whose rounds have the same length, or None."""
        key = model.length, kind.name
        if key not in self.peers:
            measured = [self.own[other.id, kind.name] for other in self.models if other.length == model.length]
            measured = [noise for noise in measured if noise is not None]
            least = least_variance(kind)
            self.peers[key] = None
            if len(measured) >= LEAST_PEERS:
                one = median([noise.variance(1, least) for noise in measured])
                long_run = median([noise.long_run(least) for noise in measured])
                correlation = (long_run - one) / (long_run + one)
                self.peers[key] = one, min(HIGHEST_CORRELATION, max(0.0, correlation))
        if self.peers[key] is None:
            return None
        one, correlation = self.peers[key]
        return one * ar_share(n, correlation)

    def own_variance(self, model, kind, n, of_interval):
        """The variance of a mean of n rounds by the own noise; for an interval, without a weekly cycle that cancels in it."""
        variance = self.own[model.id, kind.name].variance(n)
        if not of_interval or n * model.length < WEEK_HOURS:
            return variance
        key = model.id, kind.name
        if key not in self.cycles:
            start = model.end - MONTH_HOURS
            rounds = model.rounds_between(kind, start, model.end)
            self.cycles[key] = weekly_cycle([(one.begin - start, one.value) for one in rounds], model.length)
            if self.cycles[key]:
                a, b = self.cycles[key]
                rest = [one.value - cycle_at(one.begin - start, a, b) for one in rounds]
                self.rests[key] = Noise(rest, limited=not self.has_marks(model, kind))
        if self.cycles[key] is None:
            return variance
        a, b = self.cycles[key]
        share = math.sin(math.pi * n * model.length / WEEK_HOURS) / (n * math.sin(math.pi * model.length / WEEK_HOURS))
        return min(variance, self.rests[key].variance(n) + (a * a + b * b) / 2 * share**2)

    def with_peers(self, model, kind, n, least, of_interval=False):
        """The variance of a mean of n rounds, or None: of the own noise, that of peers, or both."""
        own = self.own[model.id, kind.name]
        peer = self.peer_variance(model, kind, n) if model.length else None
        if own is None:
            return None if peer is None else Estimate(max(peer, least), PEER_FREEDOM)
        estimate = Estimate(max(self.own_variance(model, kind, n, of_interval), least), own.freedom)
        if peer is None or own.freedom >= FREEDOM_WITHOUT_PEERS:
            return estimate
        weight = PEER_FREEDOM * (1 - own.freedom / FREEDOM_WITHOUT_PEERS)
        freedom = own.freedom + weight
        logarithm = own.freedom * math.log(estimate.variance) + weight * math.log(max(peer, least))
        return Estimate(math.exp(logarithm / freedom), freedom)

    def estimate(self, model, kind, score):
        """The estimate for a score (a `Mean`), or None."""
        if score is None:
            return None
        least, further = least_variance(kind) / score.rounds, {0.0: 0.0, 1.0: 0.0}
        of_marks = 0.0
        for suite, weight in kind.weights:
            share = self.shares[model.id].get(suite)
            if share is None:
                continue
            ones = model.ones_between(suite, score.start, score.end)
            count = len(ones)
            if share in further:
                further[share] += (100 * weight * (1 - beta_quantile(0.025, count + 0.5, 0.5))) ** 2
            else:
                q = (ones.count(1) + share) / (count + 1)
                of_marks += (100 * weight) ** 2 * q * (1 - q) / (count + 1)
        found = self.with_peers(model, kind, score.rounds, max(least, of_marks))
        if found is None:
            return None
        interval = self.with_peers(model, kind, score.rounds, max(least, of_marks), of_interval=True)
        return Estimate(found.variance, found.freedom, further[1.0], further[0.0], interval.variance)

    def own_long_run(self, model, kind):
        """V of the model itself: the variance of a round in the long run, or None."""
        own = self.own[model.id, kind.name]
        return own and own.long_run(least_variance(kind))


def bounds(score, estimate):
    """The 95 % interval of a score, not yet within the scale."""
    if score is None or estimate is None:
        return None, None
    variance = estimate.variance if estimate.of_interval is None else estimate.of_interval
    square = t_quantile_95(estimate.freedom) ** 2 * variance
    return score.value - math.sqrt(square + estimate.below), score.value + math.sqrt(square + estimate.above)
