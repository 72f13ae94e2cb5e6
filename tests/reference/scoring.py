#!/usr/bin/env python3
"""Tails and quantiles of Student's t by scipy, far beyond those of published numbers, for the tests of crates/scoring/src.

    python3 tests/reference/scoring.py tests/reference/scoring.json      writes the file
    python3 tests/reference/scoring.py --check tests/reference/scoring.json

Requires scipy as in tests/reference/requirements.txt. The check computes all values again. It fails unless they agree to a
relative error of 1e-11, which is more than the difference between processors.
"""

import json
import math
import sys

from scipy import stats

TOLERANCE = 1e-11
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


def agree(new, old):
    """Whether two lists of cases have the same numbers."""
    return len(new) == len(old) and all(
        math.isclose(one, other, rel_tol=TOLERANCE) for pair in zip(new, old) for one, other in zip(*pair)
    )


def main():
    *flags, path = sys.argv[1:]
    values = {"tails": tails(), "quantiles": quantiles()}
    if flags != ["--check"]:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(values, file, separators=(",", ":"))
            file.write("\n")
        return 0
    with open(path, encoding="utf-8") as file:
        known = json.load(file)
    stale = [name for name, cases in values.items() if not agree(cases, known.get(name, []))]
    print(*(f"{name} differ" for name in stale), sep="\n", end="", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
