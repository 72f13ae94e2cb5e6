#!/usr/bin/env python3
"""Reference values for the statistics of crates/scoring/src: seeded inputs, and the results of independent implementations.

    python3 tests/reference/scoring.py tests/reference/scoring.json      writes the file
    python3 tests/reference/scoring.py --check tests/reference/scoring.json

Requires the packages of tests/reference/requirements.txt: numpy 2.4.6, scipy 1.17.1, river 0.26.1. The check computes all
values again. It fails unless the inputs are equal and the values agree to a relative error of 1e-11, which is more than the
difference between processors.
"""

import json
import math
import sys

import numpy as np
from river.drift import PageHinkley
from scipy import stats

SEED = 20261122
TOLERANCE = 1e-11


def drawn(rng, mean, deviation, count):
    """Normal samples, rounded so that they are equal on every machine."""
    return [round(float(x), 6) for x in rng.normal(mean, deviation, count)]


def moments(rng):
    cases = []
    for count in (1, 2, 3, 5, 24, 168, 720):
        for mean, deviation in ((0.7, 0.02), (0.95, 0.005), (70.0, 1.5)):
            samples = drawn(rng, mean, deviation, count)
            case = {"samples": samples, "mean": float(np.mean(samples))}
            if count > 1:
                case["variance"] = float(np.var(samples, ddof=1))
                error = stats.sem(samples)
                bounds = stats.t.interval(0.95, count - 1, loc=np.mean(samples), scale=error)
                case["interval"] = [float(bound) for bound in bounds]
            cases.append(case)
    return cases


FREEDOM = [1, 1.3, 1.7, 2, 2.5, 3, 4, 4.2, 5, 7.7, 10, 23, 30.5, 66.6, 100, 190, 500.25, 1000, 2159, 5000, 12345.6, 1e5]


def tails():
    """Tail probabilities, as far out as a double can represent them."""
    cases = []
    for df in FREEDOM:
        for t in (-40.0, -5.0, -1.0, -0.01, 0.0, 1e-6, 0.1, 0.7, 1.0, 1.6, 1.7, 1.8, 2.5, 4.0, 6.0, 9.0, 15.0, 25.0, 40.0):
            tail = float(stats.t.sf(t, df))
            if tail > 1e-290:
                cases.append([t, df, tail])
    return cases


def quantiles():
    tails = (0.4, 0.25, 0.1, 0.05, 0.025, 0.005, 1e-4, 1e-6)
    return [[tail, df, float(stats.t.isf(tail, df))] for df in FREEDOM for tail in tails]


def welch_and_pooled(rng):
    cases = []
    for sizes in ((2, 2), (3, 9), (6, 24), (6, 168), (24, 168), (72, 504)):
        for shift in (0.0, 0.5, 3.0, -2.0, 12.0):
            before = drawn(rng, 70.0, 1.5, sizes[1])
            now = drawn(rng, 70.0 - shift, 2.1, sizes[0])
            case = {"before": before, "now": now}
            for name, equal in (("welch", False), ("pooled", True)):
                fall = stats.ttest_ind(before, now, equal_var=equal, alternative="greater")
                change = stats.ttest_ind(before, now, equal_var=equal)
                case[name] = {"df": float(fall.df), "fall": float(fall.pvalue), "change": float(change.pvalue)}
            cases.append(case)
    return cases


def weighted(rng):
    """A weighted sum of means, with the degrees of freedom of Welch and Satterthwaite, by the textbook's formula."""
    cases = []
    for sizes in ((24, 24, 24), (2, 7, 30), (168, 160, 150), (5, 2, 2)):
        weights = [0.40, 0.35, 0.25]
        parts = [drawn(rng, 0.6 + 0.1 * index, 0.01 * (index + 1), size) for index, size in enumerate(sizes)]
        means = np.array([np.mean(part) for part in parts])
        errors = np.array([w * w * np.var(p, ddof=1) / len(p) for w, p in zip(weights, parts)])
        df = errors.sum() ** 2 / np.sum(errors**2 / (np.array(sizes) - 1))
        cases.append({"weights": weights, "parts": parts, "mean": float(np.dot(weights, means)),
                      "variance": float(errors.sum()), "df": float(df)})
    return cases


def holm(rng):
    """By the definition: the k-th smallest of n is multiplied by n - k + 1, and none is below the previous one."""
    cases = []
    for count in (1, 2, 5, 14, 150):
        chances = [float(f"{x:.6g}") for x in rng.random(count) ** rng.integers(1, 9)]
        if count > 2:
            chances[1] = chances[2]
        corrected = [0.0] * count
        least = 0.0
        for rank, index in enumerate(sorted(range(count), key=lambda index: chances[index])):
            least = max(least, min(1.0, (count - rank) * chances[index]))
            corrected[index] = least
        cases.append({"chances": chances, "corrected": corrected})
    return cases


def lines(rng):
    cases = []
    for count in (3, 5, 24, 100, 168):
        for slope in (0.0, -0.3, 2.0, -15.0):
            xs = sorted(round(float(x), 6) for x in rng.uniform(-7, 0, count))
            ys = [round(70 + slope * x + float(e), 6) for x, e in zip(xs, rng.normal(0, 1.5, count))]
            found = stats.linregress(xs, ys)
            cases.append({"xs": xs, "ys": ys, "slope": float(found.slope), "p": float(found.pvalue)})
    return cases


def medians(rng):
    samples = [drawn(rng, 900, 200, count) for count in (1, 2, 3, 10, 101)]
    return [{"values": values, "median": float(np.median(values))} for values in samples]


def page_hinkley(rng):
    """For each sample: both sums, relative to their extremes, and whether there is a signal. A signal resets the test."""
    planted = [
        [(0.0, 150)],
        [(0.0, 100), (-2.0, 60), (0.0, 80)],
        [(0.0, 60), (3.0, 40), (-1.0, 90), (0.5, 60)],
        [(0.0, 10), (-4.0, 40), (4.0, 60)],
    ]
    cases = []
    for minimum, delta, threshold in ((30, 0.25, 20.0), (5, 0.5, 8.0), (48, 0.1, 12.0)):
        for levels in planted:
            samples = [x for level, count in levels for x in drawn(rng, level, 1.0, count)]
            test = PageHinkley(min_instances=minimum, delta=delta, threshold=threshold, alpha=1, mode="both")
            rises, falls, signals = [], [], []
            for sample in samples:
                test.update(sample)
                rises.append(test._sum_increase - test._min_increase)
                falls.append(test._max_decrease - test._sum_decrease)
                signals.append(bool(test.drift_detected))
            rises, falls = ([float(f"{x:.12g}") for x in found] for found in (rises, falls))
            cases.append({"minimum": minimum, "delta": delta, "threshold": threshold, "samples": samples,
                          "rises": rises, "falls": falls, "signals": [i for i, s in enumerate(signals) if s]})
    return cases


def reference_values():
    rng = np.random.default_rng(SEED)
    return {
        "moments": moments(rng),
        "tails": tails(),
        "quantiles": quantiles(),
        "comparisons": welch_and_pooled(rng),
        "weighted": weighted(rng),
        "holm": holm(rng),
        "lines": lines(rng),
        "medians": medians(rng),
        "page_hinkley": page_hinkley(rng),
    }


def differences(new, old, path):
    """Returns the differences between two trees of values."""
    if isinstance(new, dict) and isinstance(old, dict) and new.keys() == old.keys():
        return [d for key in new for d in differences(new[key], old[key], f"{path}.{key}")]
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [d for at, pair in enumerate(zip(new, old)) for d in differences(*pair, f"{path}[{at}]")]
    if isinstance(new, float) and isinstance(old, float):
        # A sum equal to its extreme may differ from it by a rounding error.
        least = TOLERANCE if ".page_hinkley" in path else 0.0
        near = math.isclose(new, old, rel_tol=TOLERANCE, abs_tol=least)
        return [] if near else [f"{path}: {old}, now {new}"]
    return [] if new == old else [f"{path}: {old}, now {new}"]


def main():
    *flags, path = sys.argv[1:]
    # Converted to text and back, like the values of the file.
    values = json.loads(json.dumps(reference_values()))
    if flags != ["--check"]:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(values, file, separators=(",", ":"))
            file.write("\n")
        return 0
    with open(path, encoding="utf-8") as file:
        found = differences(values, json.load(file), "reference")
    for difference in found[:20]:
        print(difference, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
