"""Section "Differences between models": ranks, comparisons, and the noise that models share."""

import math
from copy import copy

from .noise import (BLOCKS, CORRELATED_BLOCK, LATELY, LEAST_FREEDOM, LEAST_PEERS, LEAST_ROUNDS, LONGEST_BLOCK, MONTH_HOURS, MOST_FREEDOM,
                    ar_share, changed, correlation_of)
from .numbers import increasing_root, mean, median, published_score, rounded, sample_variance, t_below, t_quantile
from .runs import SORT_SCORES

NEGLIGIBLE = 1e-18
EXPECTED_MISSES, TREND_P, LEAST_CHANGE = 0.2, 0.01, 0.5


class Residuals:
    """The residuals of a score of a model by round; None where it has no value."""

    def __init__(self, model, own):
        self.length = model.length or 1
        self.first = (model.end - MONTH_HOURS) // self.length
        self.rounds = [None] * (-(-model.end // self.length) - self.first)
        self.levels, self.fitted = own.level_count, own.cycle.fitted
        for begin, value in zip(own.begins, own.residuals):
            self.rounds[begin // self.length - self.first] = value
        self.block = max(1, min(CORRELATED_BLOCK, len(self.rounds) // BLOCKS))


class PairedNoise:
    """The noise of the difference of two scores; `is_known` is false with too few rounds in common."""

    def __init__(self, one, other):
        self.first, self.length = one.first, one.length
        self.values = [None if None in pair else pair[0] - pair[1] for pair in zip(one.rounds, other.rounds)]
        centre = mean([value for value in self.values if value is not None] or [0.0])
        self.values = [None if value is None else value - centre for value in self.values]
        known = [value for value in self.values if value is not None]
        self.levels, self.fitted = max(one.levels, other.levels), max(one.fitted, other.fitted)
        self.count = len(known)
        short = self.measured(one.block)
        free = self.count - self.levels - self.fitted
        self.is_known = one.length == other.length and self.count >= LEAST_ROUNDS and free > 0 and short is not None
        if not self.is_known:
            return
        self.mean_square = mean([value * value for value in known])
        self.single = self.measured(1)
        self.correlation = correlation_of(one.block, short / self.single if self.single > NEGLIGIBLE else 0.0)
        freedom = free * (1 - self.correlation) / (1 + self.correlation)
        self.freedom = min(MOST_FREEDOM, max(LEAST_FREEDOM, freedom))

    def measured(self, m):
        """The variance of means of m values, by the sums of blocks of m rounds; None without values."""
        blocks = [[value for value in self.values[at:at + m] if value is not None]
                  for at in range(0, len(self.values) - m + 1, m)]
        count = sum(len(each) for each in blocks)
        if not count:
            return None
        filled = sum(len(each) ** 2 for each in blocks) / count
        lost = min(filled * self.levels + self.fitted, self.count * 3 // 4)
        return math.fsum(math.fsum(each) ** 2 for each in blocks) / count / m * self.count / (self.count - lost)

    def variance(self, n, end):
        """The variance for n rounds before an hour, and its degrees of freedom."""
        m = max(1, min(n, LONGEST_BLOCK, len(self.values) // BLOCKS))
        usual = max((self.measured(m) or 0.0) * m / n, self.single * ar_share(n, self.correlation))
        last = min(len(self.values), -(-(end - self.first * self.length) // self.length))
        newest = [value for value in self.values[max(0, last - max(n, LATELY)):last] if value is not None]
        if not newest or not self.mean_square:
            return usual, self.freedom
        return changed(usual, self.freedom, mean([value * value for value in newest]) / self.mean_square, len(newest))


class Difference:
    """The score of one model less that of another, with its variance."""

    def __init__(self, paired, residuals, scores):
        (a, b), (ea, eb) = [one.now for one in scores], [one.now_estimate for one in scores]
        self.plain = a.value - b.value
        self.least, self.effects = max(ea.least, eb.least), (ea.effect - eb.effect) ** 2
        self.lowest = min(ea.freedom, eb.freedom)
        self.opposed = (math.sqrt(ea.variance) + math.sqrt(eb.variance)) ** 2
        gain, self.noise, self.freedom, self.rounds = 0.0, ea.variance + eb.variance, self.lowest, 0
        if (a.start, a.end, residuals[0].length) == (b.start, b.end, residuals[1].length):
            moved, n = shared_rounds(residuals, (a, b))
            if n and paired.is_known:
                gain, self.rounds = moved, n
                self.noise, self.freedom = paired.variance(n, a.end)
        self.noise = max(self.noise, self.least)
        self.value, self.error = self.plain + gain, self.error_of(self.noise)
        self.below, self.above = ea.below + eb.above, ea.above + eb.below

    def error_of(self, variance):
        return math.sqrt(max(variance, self.least) + self.effects)

    def combined(self, usual):
        """The same with the usual noise of the ranking."""
        if usual is None or not self.rounds:
            return self
        found, (variance, freedom) = copy(self), usual
        found.freedom = freedom + self.freedom
        found.error = self.error_of((freedom * variance / self.rounds + self.freedom * self.noise) / found.freedom)
        return found

    def bounds(self, tail):
        square = (t_quantile(self.freedom, tail) * self.error) ** 2
        return self.value - math.sqrt(square + self.below), self.value + math.sqrt(square + self.above)

    def is_beyond(self, value, error, freedom, tail):
        return value > 0 and value**2 - self.below > (t_quantile(math.floor(freedom), tail) * error) ** 2

    def is_positive(self, tail):
        return self.is_beyond(self.value, self.error, self.freedom, tail)

    def is_sure(self, tail):
        """Also if it is whatever the correlation of the noise of both is."""
        return self.is_beyond(self.plain, self.error_of(self.opposed), self.lowest, tail) or self.is_positive(tail)

    def probability(self):
        return t_below(self.value / self.error, self.freedom)


def shared_rounds(residuals, scores):
    """The difference in the rounds of both less that of the scores, and the number of these rounds."""
    length = residuals[0].length
    span = range(scores[0].start // length, -(-scores[0].end // length))
    found = [[one.rounds[at - one.first] if 0 <= at - one.first < len(one.rounds) else None for at in span]
             for one in residuals]
    both = [pair for pair in zip(*found) if None not in pair]
    if not both:
        return 0.0, 0
    moved = []
    for score, own, shared in zip(scores, found, zip(*both)):
        known = [value for value in own if value is not None]
        moved.append(mean(shared) - mean(known) if score.rounds > len(both) else 0.0)
    return moved[0] - moved[1], min(len(both), *(score.rounds for score in scores))


def usual_noise(differences):
    """The variance of a round of the usual difference, and its degrees of freedom; None with too few."""
    known = [one for one in differences if one is not None and one.rounds]
    if len(known) < LEAST_PEERS:
        return None
    variances = [one.noise * one.rounds for one in known]
    excess = sample_variance([math.log(one) for one in variances]) - mean([2 / one.freedom for one in known])
    return median(variances), 2 / max(excess, 2 / MOST_FREEDOM)


def below(z):
    """The standard normal distribution."""
    return math.erfc(-z / math.sqrt(2)) / 2


def joint_tail(earlier):
    """The probability beyond each bound, for which all comparisons hold with 95 %: each model with so many before it."""
    models = [0] * (max(earlier, default=0) + 1)
    for count in earlier:
        models[count] += 1
    width = 16 / 160
    largest = [width * node - 8 for node in range(161)]
    density = [math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * width for z in largest]

    def held(q):
        """The logarithm of the probability that no two compared normal variables are further apart than q."""
        within, shares, total, before = [below(z) - below(z - q) for z in largest], list(density), 0.0, 0.0
        for count, number in enumerate(models[1:], 2):
            shares = [share * one for share, one in zip(shares, within)]
            now = math.log(count * math.fsum(shares))
            total, before = total + number * (now - before), now
        return total

    return below(-increasing_root(lambda q: held(q) - math.log(0.95), 1.0, 11.0) / math.sqrt(2))


class Ranks:
    """The rankings of a snapshot by a score."""

    def __init__(self, snapshot):
        self.snapshot, self.stored = snapshot, {}

    def residuals(self, model, name):
        key = model.id, name
        if key not in self.stored:
            self.stored[key] = Residuals(model, self.snapshot.noises.own[key])
        return self.stored[key]

    def paired(self, one, other, name):
        key = one.id, other.id, name
        if key not in self.stored:
            self.stored[key] = PairedNoise(self.residuals(one, name), self.residuals(other, name))
        return self.stored[key]

    def difference(self, one, other, period, name):
        """None if a variance is unknown."""
        scores = [self.snapshot.scores[period][model.id][name].compared for model in (one, other)]
        if any(score.now is None or score.now_estimate is None for score in scores):
            return None
        return Difference(self.paired(one, other, name), [self.residuals(model, name) for model in (one, other)], scores)

    def is_known(self, model, period, name):
        """Whether it can be compared, with a noise of its own."""
        rounds = self.residuals(model, name).rounds
        return (len(rounds) - rounds.count(None) >= LEAST_ROUNDS
                and self.snapshot.scores[period][model.id][name].compared.now_estimate is not None)

    def ordered(self, period, name):
        """The models with a score, the best first."""
        scores = self.snapshot.scores[period]
        found = [(-scores[model.id][name].published, model.id) for model in self.snapshot.models
                 if scores[model.id][name].published is not None]
        return [self.snapshot.by_id[key] for _, key in sorted(found)]

    def of(self, period, sort_by):
        """The fields of the ranks by model."""
        if sort_by not in SORT_SCORES:
            return {}
        listed, found = self.ordered(period, sort_by), {}
        models = [model for model in listed if self.is_known(model, period, sort_by)]
        pairs = {(a, b): self.difference(models[a], models[b], period, sort_by)
                 for b in range(len(models)) for a in range(b)}
        usual = usual_noise([pairs[at, at + 1] for at in range(len(models) - 1)])
        pairs = {pair: one.combined(usual) for pair, one in pairs.items()}
        better, worse, tail = [0] * len(models), [0] * len(models), joint_tail(range(len(models)))
        sure = [pair for pair, one in pairs.items() if one.is_sure(tail)]
        while sure:
            for a, b in sure:
                del pairs[a, b]
                worse[a] += 1
                better[b] += 1
            tail = joint_tail([place - count for place, count in enumerate(better)])
            sure = [pair for pair, one in pairs.items() if one.is_positive(tail)]
        for place, model in enumerate(models):
            found[model.id] = {"rankLower": min(better[place:]) + 1, "rankUpper": len(listed) - min(worse[:place + 1])}
        for model, following in zip(listed, listed[1:]):
            if model.id in found:
                difference = self.difference(model, following, period, sort_by)
                found[model.id]["tiedWithNext"] = difference is None or not difference.combined(usual).is_positive(0.025)
        return found

    def comparisons(self, model):
        models = self.ordered("24h", "combined")
        if model not in models:
            return []
        place, found = models.index(model), []
        for other in models[max(0, place - 1):place] + models[place + 1:place + 2]:
            scores = [self.snapshot.scores["24h"][one.id]["combined"].published for one in (model, other)]
            item = {"modelId": other.id, "difference": published_score(scores[0] - scores[1])}
            difference = self.difference(model, other, "24h", "combined")
            if difference is not None:
                lower, upper = difference.bounds(0.025)
                item["differenceLower"] = rounded(lower, 2, upwards=False)
                item["differenceUpper"] = rounded(upper, 2, upwards=True)
                item["probabilityBetter"] = rounded(difference.probability(), 4)
            found.append(item)
        return found

    def tied(self, period, task, keys):
        """Those of the others that are not worse than the first for sure."""
        first, *others = [self.snapshot.by_id[key] for key in keys]
        differences = {other.id: self.difference(first, other, period, task) for other in others}
        return [key for key, one in differences.items() if one is None or not one.is_positive(0.025)]

    def pooled(self, models, estimates):
        """The variance of the mean of independent noise and of that which is shared, with degrees of freedom."""
        parts = []
        for model, estimate in zip(models, estimates):
            factor = self.factor(tuple(other for other in models if other.length == model.length))
            parts.append((factor * estimate.variance, max(LEAST_FREEDOM, estimate.freedom / factor)))
        total = math.fsum(variance for variance, _ in parts)
        return total / len(models) ** 2, total**2 / math.fsum(variance**2 / freedom for variance, freedom in parts)

    def factor(self, models):
        """How much larger the variance of the mean of these models is than that of independent ones."""
        key = tuple(model.id for model in models)
        if key not in self.stored:
            found, most = [self.residuals(model, "combined") for model in models], 1.0
            for block in (1, found[0].block):
                sums = [[math.fsum(value or 0.0 for value in one.rounds[at:at + block])
                         for at in range(0, len(one.rounds), block)] for one in found]
                squares = math.fsum(value * value for one in sums for value in one)
                if squares > NEGLIGIBLE:
                    most = max(most, math.fsum(math.fsum(column) ** 2 for column in zip(*sums)) / squares)
            self.stored[key] = most
        return self.stored[key]

    def index_bounds(self, index):
        """The bounds of the index, not yet published, or None."""
        models = self.ordered("24h", "combined")
        estimates = [self.snapshot.scores["24h"][model.id]["combined"].compared.now_estimate for model in models]
        if not models or None in estimates:
            return None, None
        variance, freedom = self.pooled(models, estimates)
        effect = math.fsum(one.effect for one in estimates) / len(estimates)
        reach = t_quantile(freedom, 0.025) * math.sqrt(variance + effect**2)
        return index - reach, index + reach


def detectable(compared):
    """The minimum detectable effect of a score, or None."""
    if not compared.is_testable:
        return None
    variance = compared.now_estimate.variance + compared.before_estimate.variance
    freedom = min(compared.now_estimate.freedom, compared.before_estimate.freedom)
    quantiles = t_quantile(freedom, TREND_P / 2) + t_quantile(freedom, EXPECTED_MISSES)
    return max(LEAST_CHANGE, quantiles * math.sqrt(variance))
