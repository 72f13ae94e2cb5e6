"""Checks of the program against known results: `scores.py --check`."""

import math
import sys

from .drift import drift_of
from .incidents import first_scan, incidents_of, later_scan
from .levels import Cycle, Levels, shape_of
from .noise import Noise, Noises, ar_share, bounds, correlation_of
from .numbers import (beta_quantile, beta_share, holm, median, published_lower, published_p, published_score,
                      published_upper, t_below, t_quantile_95, t_two_sided)
from .periods import availability
from .rounds import Model, Round
from .runs import AXES, DEFAULT_SUITES, HOUR, Export, Run, instant, kinds

# A multiple of 24 hours.
END = 24 * 20_000


def near(found, expected, within=1e-12):
    assert abs(found - expected) <= within, f"{found} is not {expected}"


def trial(score=None, reason=None):
    return {"reason": reason, "scores": None if score is None else dict.fromkeys(AXES, score),
            "latency": None, "cost": None}


def run(suite, hour, trials=(), failure=None):
    described = {"id": "m", "name": "M", "provider": "p"}
    return Run(f"{suite}-{hour}", described, suite, hour * 3600, tuple(trials), failure)


def wiggle(hour):
    """Small deviations without a trend, the same in every program."""
    return 0.01 * math.sin(hour * hour % 7919)


def model_of(level, hours, step=1, name="m"):
    """A model with a run of every suite at every step, at a level that depends on the hours before the end."""
    runs = [run(suite.name, END - age, [trial(level(age))]) for suite in DEFAULT_SUITES
            for age in range(1, hours + 1) if (END - age) % step == 0]
    made = Model(runs, END, DEFAULT_SUITES, kinds(DEFAULT_SUITES))
    made.id = name
    return levelled(made)


def levelled(made):
    made.levels = Levels(made, made.rounds(made.kinds["combined"]))
    return made


def distributions_have_their_known_values():
    near(beta_share(2, 3, 0.4), 0.5248, 1e-14)
    near(beta_share(0.5, 0.5, 0.3), 2 / math.pi * math.asin(math.sqrt(0.3)), 1e-14)
    near(t_two_sided(1.0, 1), 0.5, 1e-14)
    near(t_below(-math.sqrt(2), 2), 0.5 - math.sqrt(2) / (2 * math.sqrt(4)), 1e-14)
    near(t_quantile_95(1), 12.706204736174698, 1e-10)
    near(t_quantile_95(10), 2.2281388519862735, 1e-12)
    near(t_quantile_95(1e7), 1.959964, 1e-5)


def all_marks_have_the_jeffreys_bound():
    lower = 100 * beta_quantile(0.025, 24.5, 0.5)
    assert 90 <= lower < 91, lower


def corrections_and_roundings_follow_their_rules():
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": None})
    assert list(found) == ["a", "c", "b"]
    near(found["a"], 0.03)
    near(found["c"], 0.06)
    near(found["b"], 0.06)
    assert published_score(2.345) == 2.35 and published_p(0.0012345) == 0.00123
    assert published_lower(79.999) == 79.99 and published_upper(80.001) == 80.01
    assert published_lower(80.00000000000001) == published_upper(80.00000000000001) == 80.0
    assert median([4, 1, 2]) == 2 and median([4, 1, 2, 3]) == 2.5


def autoregression_is_the_sum_of_its_correlations():
    for n, c in ((6, 0.8), (24, 0.3), (1, 0.5), (720, 0.98)):
        direct = (1 + 2 * sum((1 - k / n) * c**k for k in range(1, n))) / n
        near(ar_share(n, c), direct)
        near(correlation_of(n, direct), 0 if n == 1 else c, 1e-9)


def noise_of_constant_and_alternating_series():
    assert Noise([0.0] * 100, 1, 0).variance(10) == 0
    # Two neighbours have the mean 0. Of 200 values one is lost to the level.
    noise = Noise([1.0, -1.0] * 100, 1, 0)
    near(noise.block(2), 0)
    near(noise.block(1), 200 / 199)
    near(Noise([1.0, -1.0], 1, 0).variance(1), 2)


def effects_are_those_of_hours_and_weekdays():
    hourly = [Round(END - age, 70 + wiggle(age) + (END - age) % 24 + 3 * ((END - age) // 24 % 7 == 2))
              for age in range(1440, 0, -1)]
    assert shape_of(hourly, 1) == {"hours", "weekdays"}
    cycle = Cycle(hourly, 1, shape_of(hourly, 1))
    near(cycle.at(END + 5) - cycle.at(END + 4), 1, 0.01)
    near(cycle.mean(END - 168, END), 0, 1e-9)
    assert shape_of([Round(one.begin, 70 + wiggle(one.begin)) for one in hourly], 1) == frozenset()


def failures_are_zero_missing_or_left_out():
    runs = [run("coding", 1, [trial(1), trial(reason="timeout")]), run("coding", 2, failure="throttled"),
            run("coding", 3, [trial(1)])]
    made = Model(runs, END, DEFAULT_SUITES, kinds(DEFAULT_SUITES))
    near(sum(one.value for one in made.scored("weighted", "coding")), 150)
    # The failed run counts as 1.5 trials.
    good, total = availability(made.runs)
    assert (good, total) == (2, 4.5)


def rounds_follow_the_schedule():
    assert model_of(lambda _: 0.8, 40 * 24).length == 1
    assert model_of(lambda _: 0.8, 40 * 24, step=6).length == 6
    assert model_of(lambda _: 0.8, 40 * 24, step=24).length == 24
    assert model_of(lambda _: 0.8, 40 * 24, step=5).length == 6


def constant_models_have_narrow_bounds_and_no_change():
    made = model_of(lambda _: 0.8, 40 * 24)
    noises, kind = Noises([made]), made.kinds["combined"]
    score = made.mean(kind, END - 24, END)
    near(score.value, 80, 1e-9)
    estimate = noises.estimate(made, kind, score)
    near(estimate.variance, 0.25 * (0.4**2 + 0.35**2 + 0.25**2) / 24)
    near(estimate.freedom, 100)
    lower, upper = bounds(score, estimate)
    near(upper - lower, 2 * t_quantile_95(100) * math.sqrt(estimate.variance), 1e-9)
    assert drift_of(made, kind).signal is None and first_scan(made) == []


def perfect_models_have_the_jeffreys_bound():
    made = model_of(lambda _: 1.0, 40 * 24)
    noises, kind = Noises([made]), made.kinds["suite coding"]
    score = made.mean(kind, END - 24, END)
    estimate = noises.estimate(made, kind, score)
    lower, upper = bounds(score, estimate)
    usual = t_quantile_95(100) * math.sqrt(0.25 / 24)
    near(upper - 100, usual, 1e-9)
    near(100 - lower, math.hypot(usual, 100 * (1 - beta_quantile(0.025, 24.5, 0.5))), 1e-9)


def a_drop_is_found_by_every_rule():
    made = model_of(lambda age: 0.8 + wiggle(age) - 0.08 * (age <= 48), 40 * 24)
    kind = made.kinds["combined"]
    (change,) = made.levels.changes
    assert made.levels.begins[change.at] == END - 48 and change.direction == "down"
    near(made.levels.since(END - 168).before - made.levels.since(END - 168).now, 8, 0.3)
    (found,) = first_scan(made)
    assert found.opened == END - 48 and found.resolved is None
    state = drift_of(made, kind)
    assert state.signal.direction == "down" and state.chance < 0.001


def a_dip_is_resolved_after_its_last_low_round():
    made = model_of(lambda age: 0.8 + wiggle(age) - 0.2 * (100 < age <= 130), 40 * 24)
    (found,) = first_scan(made)
    assert (found.opened, found.resolved) == (END - 130, END - 100)
    assert found.severity == "critical"
    lately = made.levels.since(END - 168)
    near(lately.before, lately.now, 0.3)


def a_new_level_is_normal_after_a_week():
    made = model_of(lambda age: 0.8 + wiggle(age) - 0.08 * (age <= 300), 40 * 24)
    (found,) = first_scan(made)
    assert found.resolved == END - 300 + 168


def a_later_scan_continues_the_first():
    made = model_of(lambda age: 0.8 + wiggle(age) - 0.2 * (100 < age <= 130), 40 * 24)
    for age in (200, 110, 90):
        early = Model([run for run in made.runs if run.hour < END - age], END - age, DEFAULT_SUITES, made.kinds)
        early.id = made.id
        levelled(early)
        newest = instant((END - age - 1) * HOUR)
        found = later_scan(made, first_scan(early), {"roundAt": newest, "hourAt": newest})
        assert [one.id for one in found] == [one.id for one in first_scan(made)], age
        assert found[0].resolved == END - 100, age


def nothing_begins_in_a_retracted_incident():
    made = model_of(lambda age: 0.8 + wiggle(age) - 0.2 * (100 < age <= 130), 40 * 24)
    (found,) = first_scan(made)
    lines = [{"id": found.id, "model": "m", "revision": 2, "kind": "degradation", "severity": "critical",
              "openedAt": instant(found.opened * HOUR), "resolvedAt": instant(found.resolved * HOUR),
              "recordedAt": instant(END * HOUR), "retractedBy": "cli:anna"}]
    position = {"roundAt": instant((END - 200) * HOUR), "hourAt": instant((END - 200) * HOUR)}
    assert incidents_of([made], Export([], lines, {"m": position})) == {"m": []}
    assert incidents_of([made], Export([], [], {"m": position})) == {"m": [found]}


def the_newest_round_of_combined_is_the_latest():
    made = model_of(lambda _: 0.8, 40 * 24)
    late = Model([*made.runs, run("coding", END, [trial(0.1)])], END + 1, DEFAULT_SUITES, made.kinds)
    assert late.latest().begin == END - 1 and late.before_latest().begin == END - 2
    assert Model(made.runs, END + 24, DEFAULT_SUITES, made.kinds).latest() is None


def peers_stand_in_for_missing_noise():
    models = [model_of(lambda age, place=place: 0.8 + wiggle(age + 50 * place), 40 * 24, name=f"m{place}")
              for place in range(3)]
    young = model_of(lambda age: 0.8, 3, name="young")
    kind = young.kinds["combined"]
    score = young.mean(kind, END - 24, END)
    near(Noises([young, *models[:2]]).estimate(young, kind, score).freedom, 2)
    near(Noises([young, *models]).estimate(young, kind, score).freedom, 2 + 2 * 0.9)


CHECKS = (distributions_have_their_known_values, all_marks_have_the_jeffreys_bound,
          corrections_and_roundings_follow_their_rules, autoregression_is_the_sum_of_its_correlations,
          noise_of_constant_and_alternating_series, failures_are_zero_missing_or_left_out, rounds_follow_the_schedule,
          constant_models_have_narrow_bounds_and_no_change, perfect_models_have_the_jeffreys_bound,
          a_drop_is_found_by_every_rule, a_dip_is_resolved_after_its_last_low_round, a_new_level_is_normal_after_a_week,
          a_later_scan_continues_the_first, nothing_begins_in_a_retracted_incident,
          effects_are_those_of_hours_and_weekdays, the_newest_round_of_combined_is_the_latest, peers_stand_in_for_missing_noise)


def check():
    """Runs all checks; 1 if one fails."""
    failed = 0
    for one in CHECKS:
        try:
            one()
        except AssertionError as error:
            failed += 1
            print(f"{one.__name__}: {error}", file=sys.stderr)
    print(f"{len(CHECKS) - failed} of {len(CHECKS)} checks passed")
    return 1 if failed else 0
