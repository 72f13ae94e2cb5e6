"""Section "Uncertainty": the variance of a score over n rounds, and its degrees of freedom."""

import math
from bisect import bisect_left
from dataclasses import dataclass

from .numbers import beta_quantile, increasing_root, mean, median, t_quantile_95

MONTH_HOURS = 30 * 24
# Fewer rounds are no peers.
LEAST_ROUNDS = 8
LONGEST_BLOCK, BLOCKS = 24, 8
CORRELATED_BLOCK = 6
LEAST_DEVIATION = 0.5
LEAST_VARIANCE = LEAST_DEVIATION**2
LEAST_FREEDOM, MOST_FREEDOM = 1, 100
PEER_FREEDOM = 2
FREEDOM_WITHOUT_PEERS = 20
LEAST_PEERS = 3
LATELY = 24
HIGHEST_CORRELATION = 0.98


@dataclass(frozen=True)
class Estimate:
    """The variance of a mean, and its degrees of freedom; how much further the interval extends below and above."""

    variance: float
    freedom: float
    below: float = 0.0
    above: float = 0.0
    # The mean effect of the hours and weekdays of the score.
    effect: float = 0.0
    # The minimum of the variance.
    least: float = 0.0

    @property
    def error(self):
        """The standard error about the level, from which the score differs by the effect."""
        return math.sqrt(self.variance + self.effect**2)

    @property
    def published_error(self):
        """With the part of constant marks: the wider side of the interval divided by the quantile."""
        return math.sqrt(self.error**2 + max(self.below, self.above) / t_quantile_95(self.freedom) ** 2)


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


def long_run_correlation(one, long_run):
    return min(HIGHEST_CORRELATION, max(0.0, (long_run - one) / (long_run + one)))


def residuals(values, starts):
    """The values less the means of their levels, which begin at these places."""
    found = []
    for first, last in zip([0, *starts], [*starts, len(values)]):
        level = mean(values[first:last]) if first < last else 0.0
        # A constant level has exactly no noise.
        constant = first < last and max(values[first:last]) - min(values[first:last]) < 1e-9
        found += [0.0 if constant else value - level for value in values[first:last]]
    return found


class Noise:
    """The noise of deviations from so many levels and fitted effects."""

    def __init__(self, values, levels, fitted):
        self.values, self.levels, self.fitted = values, levels, fitted
        self.count, self.stored = len(values), {}
        self.sums = [0.0]
        for value in values:
            self.sums.append(self.sums[-1] + value)
        self.correlated = max(1, min(CORRELATED_BLOCK, self.count // BLOCKS))
        one = self.block(1)
        self.correlation = correlation_of(self.correlated, self.block(self.correlated) / one) if one else 0.0
        free = (self.count - levels - fitted) * (1 - self.correlation) / (1 + self.correlation)
        self.freedom = min(MOST_FREEDOM, max(LEAST_FREEDOM, free))

    @classmethod
    def of(cls, values, levels, fitted):
        """None with too few values."""
        return cls(values, levels, fitted) if len(values) > levels + fitted else None

    def block(self, m):
        """The measured variance of means of m rounds."""
        if m not in self.stored:
            squares = mean([((self.sums[at + m] - self.sums[at]) / m) ** 2 for at in range(self.count - m + 1)])
            lost = min(m * self.levels + self.fitted, self.count * 3 // 4)
            self.stored[m] = squares * self.count / (self.count - lost)
        return self.stored[m]

    def variance(self, n):
        """The larger of the measured and the modelled variance."""
        m = max(1, min(n, LONGEST_BLOCK, self.count // BLOCKS))
        return max(self.block(m) * m / n, self.block(1) * ar_share(n, self.correlation))

    def long_run(self):
        """The variance of a round in the long run."""
        return 24 * self.variance(24)


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


def changed(variance, freedom, quotient, count):
    """A variance and its degrees of freedom, if that of the newest rounds is a multiple of it: rule "Changing noise"."""
    if quotient <= 1:
        return variance, freedom
    excess = math.log(quotient) ** 2 * count / 4
    weight = excess / (1 + excess)
    return variance * quotient**weight, freedom + weight * (min(count, freedom) - freedom)


class KindNoise:
    """The noise of a score of a model in the last 30 days."""

    def __init__(self, model, kind):
        from .levels import Cycle

        rounds = model.rounds_between(kind, model.end - MONTH_HOURS, model.end)
        self.begins = [one.begin for one in rounds]
        self.cycle = Cycle(rounds, model.length or 1, model.levels.shape)
        values = [one.value - self.cycle.at(one.begin) for one in rounds]
        begun = [bisect_left(self.begins, model.levels.begins[one.at]) for one in model.levels.changes]
        starts = sorted({place for place in begun if 0 < place < len(rounds)})
        self.residuals = residuals(values, starts)
        self.level_count = len(starts) + 1
        self.noise = Noise.of(self.residuals, self.level_count, self.cycle.fitted)

    def estimate(self, n, end):
        """The variance of a mean of n rounds before an hour, and its degrees of freedom: rule "Changing noise"."""
        variance, freedom = self.noise.variance(n), self.noise.freedom
        last = bisect_left(self.begins, end)
        count = min(max(n, LATELY), last)
        whole = mean([one * one for one in self.residuals])
        if count == 0 or whole == 0:
            return variance, freedom
        quotient = mean([one * one for one in self.residuals[last - count:last]]) / whole
        return changed(variance, freedom, quotient, count)


class Noises:
    """The noise of every model and score, with that of peers for those with little history."""

    def __init__(self, models):
        self.models = models
        self.own, self.shares, self.peers = {}, {}, {}
        for model in models:
            self.shares[model.id] = shares_of_ones(model)
            for kind in model.kinds.values():
                self.own[model.id, kind.name] = KindNoise(model, kind)

    def peer_noise(self, model, kind):
        """The noise of a model that counts as a peer, or None."""
        own = self.own[model.id, kind.name]
        return own.noise if own.noise is not None and own.noise.count >= LEAST_ROUNDS else None

    def peer_variance(self, model, kind, n):
        """The variance for n rounds by the noise of the models whose rounds have the same length, or None."""
        key = model.length, kind.name
        if key not in self.peers:
            measured = [self.peer_noise(other, kind) for other in self.models if other.length == model.length]
            measured = [noise for noise in measured if noise is not None]
            least = least_variance(kind)
            self.peers[key] = None
            if len(measured) >= LEAST_PEERS:
                one = median([max(noise.variance(1), least) for noise in measured])
                long_run = median([max(noise.long_run(), least) for noise in measured])
                self.peers[key] = one, long_run_correlation(one, long_run)
        if self.peers[key] is None:
            return None
        one, correlation = self.peers[key]
        return one * ar_share(n, correlation)

    def with_peers(self, model, kind, score, least):
        """The variance of a score, or None: of the own noise, that of peers, or both."""
        own = self.own[model.id, kind.name]
        peer = self.peer_variance(model, kind, score.rounds) if model.length else None
        if own.noise is None:
            return None if peer is None else Estimate(max(peer, least), PEER_FREEDOM, effect=0.0)
        variance, freedom = own.estimate(score.rounds, score.end)
        variance = max(variance, least) if peer is not None else variance
        if peer is not None and freedom < FREEDOM_WITHOUT_PEERS:
            weight = PEER_FREEDOM * (1 - freedom / FREEDOM_WITHOUT_PEERS)
            variance = (freedom * variance + weight * max(peer, least)) / (freedom + weight)
            freedom += weight
        return Estimate(max(variance, least), freedom)

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
        least = max(least, of_marks)
        found = self.with_peers(model, kind, score, least)
        effect = self.own[model.id, kind.name].cycle.mean(score.start, score.end)
        return found and Estimate(found.variance, found.freedom, further[1.0], further[0.0], effect, least)

    def own_long_run(self, model, kind):
        """V of the model itself: the variance of a round in the long run, or None."""
        own = self.peer_noise(model, kind)
        return own and max(own.long_run(), least_variance(kind))


def bounds(score, estimate):
    """The 95 % interval of a score, not yet within the scale."""
    if score is None or estimate is None:
        return None, None
    square = (t_quantile_95(estimate.freedom) * estimate.error) ** 2
    return score.value - math.sqrt(square + estimate.below), score.value + math.sqrt(square + estimate.above)
