"""Sections "Cycles" and "Levels": the effects of hours and weekdays, and the changes of level of a model's rounds."""

import math
from dataclasses import dataclass, replace

from .noise import (HIGHEST_CORRELATION, LEAST_DEVIATION, LEAST_VARIANCE, Estimate, Noise, ar_share,
                    long_run_correlation, residuals)
from .numbers import mean, median, sample_variance, t_two_sided
from .rounds import rounds_for

WEEK, DAY = 168, 24
LEAST_CYCLE_HOURS, SHOWN = 504, 4
ALLOWANCE, SIGNALS = 0.5, 3
MONTH_HOURS, CHANGE_P = 720, 0.001
LEAST_NEW = 4
LATELY = 24
FEW_ROUNDS = 192
ODD, CAUTION = 2.5, 2
BASELINE, LEAST_BASELINE = 168, 24
NEEDED, LEAST_NEEDED = 24, 16
DEEP_POINTS, REACH, LEAST_REACH = 5, 24, 4
LIMIT = 3
HELD_HOURS = 192


def deviations(rounds, length):
    """The rounds as hour and difference from the mean of the week around them, by place."""
    count = min(WEEK // length, len(rounds))
    sums = [0.0]
    for one in rounds:
        sums.append(sums[-1] + one.value)
    found = []
    for place, one in enumerate(rounds):
        first = min(max(0, place - count // 2), len(rounds) - count)
        found.append((one.begin, one.value - (sums[first + count] - sums[first]) / count))
    return found


def by_day(values):
    days = {}
    for hour, value in values:
        days.setdefault(hour // DAY, []).append(value)
    return [(day * DAY, mean(found)) for day, found in days.items()]


def effects(values, class_of):
    """The mean of each class less the mean of these means."""
    classes = {}
    for hour, value in values:
        classes.setdefault(class_of(hour), []).append(value)
    means = {key: mean(found) for key, found in classes.items()}
    centre = mean(list(means.values()))
    return {key: one - centre for key, one in means.items()}


def is_shown(values, class_of):
    found = effects(values, class_of)
    between = math.fsum(found[class_of(hour)] ** 2 for hour, _ in values) / max(1, len(found) - 1)
    within = math.fsum((value - found[class_of(hour)]) ** 2 for hour, value in values)
    return between * (len(values) - len(found)) > SHOWN * within


def weekday(hour):
    return hour // DAY % 7


class Cycle:
    """The effects of a series; `shape` has the kinds of effects: "hours", "weekdays"."""

    def __init__(self, rounds, length, shape):
        self.length, self.by_hour, self.by_weekday, self.fitted = length, {}, {}, 0
        if not shape or not rounds:
            return
        found = deviations(rounds, length)
        if "hours" in shape:
            self.by_hour = effects(found, lambda hour: hour % DAY // length)
            self.fitted += len(self.by_hour) - 1
        if "weekdays" in shape:
            self.by_weekday = effects(by_day(found), weekday)
            self.fitted += len(self.by_weekday) - 1

    def at(self, hour):
        return self.by_hour.get(hour % DAY // self.length, 0.0) + self.by_weekday.get(weekday(hour), 0.0)

    def mean(self, start, end):
        """Of the rounds that begin from start to before end, also of those without a value."""
        first = -(-start // self.length) * self.length
        found = [self.at(hour) for hour in range(first, end, self.length)]
        return mean(found) if found else 0.0


def shape_of(rounds, length):
    if len(rounds) * length < LEAST_CYCLE_HOURS:
        return frozenset()
    found, shape = deviations(rounds, length), set()
    if length < DAY and is_shown(found, lambda hour: hour % DAY // length):
        shape.add("hours")
    if is_shown(by_day(found), weekday):
        shape.add("weekdays")
    return frozenset(shape)


def without_outliers(rounds):
    """The rounds, with the median of the seven around it for each outlier."""
    values = [one.value for one in rounds]
    last = max(0, len(values) - 7)
    medians = [median(around) if len(around := values[min(max(0, at - 3), last):][:7]) == 7 else value
               for at, value in enumerate(values)]
    distances = [abs(value - middle) for value, middle in zip(values, medians)]
    limit = ODD * max([LEAST_DEVIATION, *sorted(distances)[len(values) * 9 // 10:][:1]])
    return [replace(one, value=middle) if distance > limit else one
            for one, middle, distance in zip(rounds, medians, distances)]


@dataclass(frozen=True)
class LevelNoise:
    """The variance of a round, that in the long run, and the degrees of freedom."""

    single: float
    long_run: float
    freedom: float

    def estimate(self, values, before=()):
        """The estimate of a mean, and of the rounds before it of which a day may vary more than usual, too."""
        correlation = long_run_correlation(self.single, self.long_run)
        ends = range(len(before), 0, -LATELY) if len(before) < LATELY else range(len(before), LATELY - 1, -LATELY)
        days = [before[max(0, end - LATELY):end] for end in ends]
        variances = [sample_variance(some) for some in (values, *days) if len(some) > 1]
        unusual = max([1.0, *(one / self.single for one in variances)])
        return Estimate(self.single * ar_share(len(values), correlation) * unusual, self.freedom)


@dataclass(frozen=True)
class Change:
    """A change of level: places of its first round and of that with which it was found."""

    at: int
    found: int
    direction: str
    noise: LevelNoise
    # The place of the round with which it is deep enough for an incident, and the level before.
    deep_at: int | None = None
    level: float | None = None


@dataclass(frozen=True)
class Compared:
    """The newest level against one before: means, estimates, and the hours."""

    before: float
    now: float
    before_estimate: Estimate
    now_estimate: Estimate
    start: int
    began: int
    since: int

    def t(self):
        variance = self.before_estimate.variance + self.now_estimate.variance
        return (self.now - self.before) / math.sqrt(variance), self.now_estimate.freedom


class Levels:
    """The levels of the complete rounds of the window."""

    def __init__(self, model, rounds):
        self.model, self.changes, self.noise = model, [], None
        length = model.length or 1
        usual = without_outliers(rounds)
        self.shape = shape_of(usual, length)
        cycle = Cycle(usual, length, self.shape)
        self.begins = [one.begin for one in rounds]
        self.with_outliers = [one.value - cycle.at(one.begin) for one in rounds]
        self.values = [one.value - cycle.at(one.begin) for one in usual]
        self.fitted = cycle.fitted
        if rounds:
            self.baseline_count = rounds_for(BASELINE, model, LEAST_BASELINE)
            self.search()

    def newest(self, start, end):
        """The rounds of a baseline: the newest from start to before end."""
        return self.values[max(start, end - self.baseline_count):end]

    def search(self):
        known, measured, sums, since = 0, 0, {"down": 0.0, "up": 0.0}, {"down": 0, "up": 0}
        reach = rounds_for(REACH, self.model, LEAST_REACH)
        for place, value in enumerate(self.values):
            start = self.changes[-1].at if self.changes else 0
            if self.noise is not None:
                single, long_run = math.sqrt(self.noise.single), math.sqrt(self.noise.long_run)
                deviation = value - mean(self.newest(start, known))
                z = min(LIMIT * single, max(-LIMIT * single, deviation)) / long_run
                for way, step in (("down", -z), ("up", z)):
                    sums[way] = max(0.0, sums[way] + step - ALLOWANCE)
                    if sums[way] == 0:
                        since[way] = place + 1
            self.deepen(place, reach)
            found = next((one for way in ("down", "up") if (one := self.tested(start, sums, since, place, way))), None)
            if found:
                self.changes.append(found)
                self.deepen(place, reach)
            is_old = place - min(place, *since.values()) >= self.baseline_count
            if found or is_old or sums["down"] + sums["up"] == 0 or self.noise is None:
                known = place + 1
                sums = {"down": 0.0, "up": 0.0}
                since = {"down": known, "up": known}
            if known >= rounds_for(NEEDED, self.model, LEAST_NEEDED) and 4 * known >= 5 * measured:
                measured = known
                self.noise = self.measure(known) or self.noise

    def measure(self, known, *further):
        """The noise of the first rounds about their levels; a further one begins at a place."""
        starts = [*(one.at for one in self.changes), *further]
        noise = Noise.of(residuals(self.values[:known], starts), len(starts) + 1, self.fitted)
        if noise is None:
            return None
        single, long_run = max(noise.variance(1), LEAST_VARIANCE), max(noise.long_run(), LEAST_VARIANCE)
        c = long_run_correlation(single, long_run)
        c = min(HIGHEST_CORRELATION, c + CAUTION * math.sqrt((1 - c * c) / known))
        return LevelNoise(single, single * (1 + c) / (1 - c), noise.freedom)

    def tested(self, start, sums, since, place, way):
        first, rounds = since[way], self.values[since[way]:place + 1]
        level = self.newest(start, first)
        if sums[way] < SIGNALS or len(rounds) < LEAST_NEW or not level:
            return None
        # The level begins after the first maximum of the cumulative sum from the middle towards the old level.
        middle, sign, total, largest, began = (mean(rounds) + mean(level)) / 2, 1 if way == "down" else -1, 0.0, 0.0, first
        for at in range(first, place + 1 - LEAST_NEW):
            total += sign * (self.values[at] - middle)
            if total > largest:
                largest, began = total, at + 1
        before, now = self.newest(start, began), self.values[began:place + 1]
        noise = self.measure(place + 1, began) if place + 1 < FEW_ROUNDS else self.noise
        if noise is None:
            return None
        estimates = noise.estimate(before), noise.estimate(now, before)
        change = mean(now) - mean(before)
        p = t_two_sided(change / math.sqrt(sum(one.variance for one in estimates)), noise.freedom)
        if (change < 0) != (way == "down") or p * (MONTH_HOURS / self.model.length) >= CHANGE_P:
            return None
        return Change(began, place, way, noise)

    def deepen(self, place, reach):
        if not self.changes:
            return
        one = self.changes[-1]
        if one.direction == "up" or one.deep_at is not None or place - one.found > reach:
            return
        reference = self.reference(one)
        if reference is not None and self.level(reference) - mean(self.values[one.at:place + 1]) >= DEEP_POINTS:
            self.changes[-1] = replace(one, deep_at=place, level=self.level(reference))

    def start_before(self, change):
        return max((one.at for one in self.changes if one.at < change.at), default=0)

    def reference(self, change):
        """The rounds that a change is judged against, as places: of the level before or of the held one."""
        begins = [0, *(one.at for one in self.changes if one.at <= change.at)]
        spans = list(zip(begins, begins[1:]))
        before, hours, is_fall = spans[-1], 0, change.direction == "down"
        since = self.begins[change.at] - HELD_HOURS
        for span in sorted(spans, key=self.level, reverse=is_fall):
            first, end = (max(self.begins[at], since) for at in span)
            hours += end - first
            if 2 * hours >= HELD_HOURS:
                return (min if is_fall else max)(span, before, key=self.level)
        return None if is_fall else before

    def level(self, span):
        return mean(self.slice(span))

    def slice(self, span):
        return self.newest(*span)

    def since(self, hour):
        """The newest level against the reference of the first change that was found at or after an hour, or None."""
        first = next((one for one in self.changes if self.begins[one.found] >= hour), None)
        reference = first and self.reference(first)
        if reference is None:
            return None
        before, newest = self.slice(reference), self.changes[-1].at
        now = self.values[newest:]
        return Compared(mean(before), mean(now), first.noise.estimate(before), first.noise.estimate(now),
                        self.begins[reference[1] - len(before)], self.begins[reference[1]], self.begins[newest])

    def newest_change(self):
        """The newest change with its p-value, or None: a return to a held level is none."""
        if not self.changes:
            return None
        one = self.changes[-1]
        compared = self.since(self.begins[one.found])
        if compared is None:
            return None
        t, freedom = compared.t()
        p = t_two_sided(t, freedom)
        is_return = (t < 0) != (one.direction == "down") or p * (MONTH_HOURS / self.model.length) >= CHANGE_P
        return None if is_return and self.reference(one)[1] != one.at else (one, p)

    def level_at(self, hour):
        """The level at an hour as known then, or None with too few rounds."""
        known = [one.at for one in self.changes if self.begins[one.found] < hour]
        end = sum(begin < hour for begin in self.begins)
        values = self.newest(known[-1] if known else 0, end)
        return mean(values) if len(values) >= rounds_for(NEEDED, self.model, LEAST_NEEDED) else None
