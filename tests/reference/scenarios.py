#!/usr/bin/env python3
"""Small archives of benchmark runs with the cases that are difficult for statistics, for comparing implementations.

    python3 tests/reference/scenarios.py tests/reference/scenarios      writes the directory
    python3 tests/reference/scenarios.py --check tests/reference/scenarios

Requires numpy, of tests/reference/requirements.txt. The runs are data only: nothing here depends on how scores are
computed. The check makes all runs again, and fails unless they are equal: numbers are rounded far above the difference
between processors.

`index.json` lists the scenarios: the file of the runs (lines of `scoregate scoring import`, compressed), the suite table
if it is not the default one, and the instant at which the scores are wanted, a bit after the last run.
"""

import gzip
import json
import math
import os
import sys

# The tree stays as it is: no compiled modules.
sys.dont_write_bytecode = True

import numpy as np

from edges import edges, pairs
from scenario import (AXES, DAY, END, HOUR, REASONS, SUITES, Scenario, heavy, model, persistent, table, white, written)


def hourly():
    """40 days of hourly runs with few trials: each kind of noise, change and failure. In the last hour a suite is missing."""
    made = Scenario("hourly", END + 34 * 60 + 56)
    hours = 40 * 24 + 1
    age = np.arange(hours - 1, -1, -1)
    weekly = 0.02 * np.sin(2 * math.pi * np.arange(hours) / (7 * 24))
    rows = [
        (model("white", "meridian", 5, 20), white, 0.82 - 0.06 * (age < 4 * 24)),
        (model("heavy", "meridian"), heavy, np.full(hours, 0.78)),
        (model("persistent", "boreal", 3, 15), persistent, np.full(hours, 0.75)),
        (model("weekly", "boreal", 1, 4), white, 0.72 + weekly),
        (model("dip", "cobalt", 2.5, 10), white, 0.85 - 0.12 * ((age < 15 * 24) & (age >= 15 * 24 - 30))),
        (model("ramp", "cobalt", 0.25), white, 0.8 - 0.05 * np.clip(1 - age / (14 * 24), 0, 1)),
        (model("constant", "delta", 0, 0), None, np.full(hours, 0.8)),
        (model("ragged", "delta"), white, np.full(hours, 0.7)),
    ]
    for described, noise, level in rows:
        for place, suite in enumerate(SUITES):
            drawn = 0.015 * noise(made.rng, hours) if noise else np.zeros(hours)
            for index in range(hours):
                hourly_runs(made, described, suite, int(age[index]), level[index] + drawn[index] + 0.02 * (place - 1))
    return made


def hourly_runs(made, described, suite, age, level):
    """The runs of a suite in the hour that began this many hours before the last one."""
    name = described["id"]
    minute = {"coding": 7, "reasoning": 23, "tooling": 41}[suite]
    at = END - age * HOUR + minute * 60
    if name == "constant":
        if at < made.now:
            exactly = {"scores": dict.fromkeys(AXES, 0.8), "latencyMs": 1500, "cost": 0.01}
            made.add(described, suite, at, [exactly])
        return
    if name == "ragged":
        return ragged_runs(made, suite, age, level)
    if at >= made.now or made.is_one_in(100):
        return
    if name == "dip" and 7 * 24 - 5 <= age < 7 * 24:
        return outage(made, described, suite, at)
    if name != "white" and made.is_one_in(120):
        return made.add(described, suite, at, failure=made.failure("benchmark aborted"))
    latency = None if name == "persistent" and suite == "reasoning" else 1800
    cost = None if name == "ramp" else 0.02
    count = 3 if made.is_one_in(25) else 1
    trials = [made.trial(level, spread=0.01, latency=latency, cost=cost) for _ in range(count)]
    if name != "white" and made.is_one_in(40):
        trials.insert(int(made.rng.integers(count + 1)), {"failure": made.failure()})
    made.add(described, suite, at, trials)


def outage(made, described, suite, at):
    """A run of an outage: failed as a whole, or with failed trials only."""
    if suite == "tooling":
        failed = ({"reason": "throttled"}, {"reason": "timeout"}, {"reason": "harness"})
        return made.add(described, suite, at, [{"failure": reason} for reason in failed])
    reason = "timeout" if suite == "coding" else "unreachable"
    made.add(described, suite, at, failure={"reason": reason, "detail": "no response"})


def ragged_runs(made, suite, age, level):
    """Missing hours, several runs in an hour, equal instants, missing measurements, changing names and prices."""
    # The name changes within an hour, in which coding is the last suite to run; the prices change twice.
    minute = {"tooling": 20, "reasoning": 35, "coding": 50}[suite]
    start = END - age * HOUR
    if age != 100 and made.is_one_in(3):
        return
    count = 1 + int(made.is_one_in(10)) + int(made.is_one_in(20))
    for number in range(count):
        # Half of the further runs have the instant of the first.
        at = start + minute * 60 + (number * 97 if number % 2 == 0 else 0)
        if at >= made.now:
            continue
        is_new = at >= END - 100 * HOUR + 40 * 60
        prices = (None, None) if age > 480 else (3, 15) if age > 50 else (2.5, None)
        described = model("ragged", "delta", *prices, title="Ragged 1.5" if is_new else "Ragged 1")
        if made.is_one_in(15):
            made.add(described, suite, at, failure=made.failure())
            continue
        trials = []
        for _ in range(int(made.rng.integers(1, 4))):
            if made.is_one_in(12):
                trials.append({"failure": made.failure()})
                continue
            missing = made.rng.random(2) < 0.2
            trials.append(made.trial(level, latency=None if missing[0] else 2600, cost=None if missing[1] else 0.03))
        made.add(described, suite, at, trials)


def daily():
    """One run a day for each suite, each at an hour of its own."""
    made, days = Scenario("daily", END - 2 * HOUR), 75
    rows = [
        (model("steady", "meridian", 5, 20), 0.8, days, 0),
        (model("skipping", "meridian", 5, 20), 0.77, days, 0),
        (model("seldom", "boreal", 3, 15), 0.74, days, 0),
        (model("recent", "boreal", 3, 15), 0.76, 3, 0),
        (model("stopped", "cobalt", 1, 4), 0.79, days, 20),
        (model("falling", "cobalt"), 0.83, days, 0),
        (model("constant", "delta", 2, 8), 0.65, days, 0),
        (model("failing", "delta", 2, 8), 0.7, days, 0),
    ]
    midnight = END - 12 * HOUR
    for described, level, first, last in rows:
        for suite, hour in (("coding", 2.25), ("reasoning", 9.67), ("tooling", 0.0)):
            for age in range(first - 1, last - 1, -1):
                # Some of the tooling runs begin before midnight, so a date has none of them, or two.
                jitter = int(made.rng.integers(-1500, 1501)) if suite == "tooling" else int(made.rng.integers(0, 400))
                at = midnight - age * DAY + int(hour * HOUR) + jitter
                if at < made.now:
                    daily_run(made, described, suite, age, at, level)
    return made


def daily_run(made, described, suite, age, at, level):
    name = described["id"]
    if name == "skipping" and suite == "reasoning" and made.is_one_in(4):
        return
    if name == "seldom" and suite == "tooling" and age % 7 != 2:
        return
    if name == "falling" and age < 10:
        level -= 0.08
    if name == "constant":
        exactly = {"scores": dict.fromkeys(AXES, 0.65), "latencyMs": 900, "cost": 0.005}
        return made.add(described, suite, at, [exactly] * 4)
    if name == "failing" and age in (30, 29, 12, 5, 0):
        if suite == "coding":
            return made.add(described, suite, at, failure={"reason": "harness", "detail": "disk full"})
        return made.add(described, suite, at, [{"failure": {"reason": "unusable"}}] * 3)
    # The noise of a run, which all its trials have, and that of a trial.
    level += 0.025 * made.rng.standard_normal()
    trials = [made.trial(level, spread=0.05) for _ in range(6)]
    if name == "failing" and made.is_one_in(3):
        trials[int(made.rng.integers(6))] = {"failure": made.failure()}
    made.add(described, suite, at, trials)


def marks():
    """Suites whose trials pass or fail, near and at the edges, and beside suites with grades."""
    axes = {"coding": ("correctness",), "reasoning": ("correctness", "spec"), "tooling": AXES}
    made = Scenario("marks", END + 25 * 60, table(
        ("coding", 0.4, axes["coding"], ("combined", "coding", "speed", "7axis", "price")),
        ("reasoning", 0.35, axes["reasoning"], ("combined", "reasoning", "speed", "7axis", "price")),
        ("tooling", 0.25, axes["tooling"], ("combined", "tooling", "speed", "7axis", "price")),
    ))
    rows = [
        (model("edge", "meridian", 5, 20), (0.98, 0.98, 0.98)),
        (model("perfect", "meridian", 5, 20), (1, 1, 1)),
        (model("zero", "boreal", 3, 15), (0, 0, 0)),
        (model("mixed", "boreal", 3, 15), (0.9, None, 0.02)),
        (model("partly", "cobalt", 1, 4), (1, None, 0)),
    ]
    for described, shares in rows:
        for suite, share in zip(SUITES, shares):
            for age in range(35 * 4 - 1, -1, -1):
                at = END - age * 6 * HOUR + 60 * (5 + 3 * SUITES.index(suite))
                made.add(described, suite, at, marked_trials(made, described["id"], axes[suite], share))
    return made


def marked_trials(made, name, axes, share):
    """24 trials that pass with this probability on each axis, or have grades if there is none."""
    trials = []
    for _ in range(24 if share is not None else 3):
        if share is None:
            trials.append(made.trial(0.7, axes, 0.1, latency=None, cost=None))
        elif name == "edge" and made.is_one_in(400):
            trials.append({"failure": made.failure()})
        else:
            passed = made.rng.random() < share
            # A few of the passed trials fail on one axis.
            scores = dict.fromkeys(axes, int(passed))
            if passed and share not in (0, 1) and len(axes) > 1 and made.is_one_in(30):
                scores[axes[-1]] = 0
            trials.append({"scores": scores})
    if made.is_one_in(6) and "scores" in trials[0]:
        trials[0]["latencyMs"] = 1000 + 10 * int(made.rng.integers(50))
    return trials


def suites():
    """A table of four suites with axes and cadences of their own, of which two are not part of the combined score."""
    rows = (
        ("coding", 3, ("correctness", "spec", "codeQuality"), ("combined", "coding", "7axis")),
        ("reasoning-deep", 2, ("correctness", "stability"), ("combined", "reasoning", "7axis")),
        ("throughput", 1, ("efficiency",), ("speed", "price")),
        ("safety", 1.5, ("refusal", "recovery"), ("tooling", "7axis")),
    )
    made = Scenario("suites", END + 50 * 60, table(*rows))
    hours = {"coding": 1, "reasoning-deep": 6, "throughput": 24, "safety": 24}
    models = [
        (model("level", "meridian", 5, 20), white, 0.8),
        (model("drifting", "meridian", 5, 20), persistent, 0.75),
        (model("dropping", "boreal", 3, 15), white, 0.82),
        (model("unsafe", "cobalt"), heavy, 0.7),
        (model("unmeasured", "cobalt", 1, 4), white, 0.78),
    ]
    for described, noise, level in models:
        for suite, _, axes, _ in rows:
            count = 35 * 24 // hours[suite]
            drawn = 0.015 * noise(made.rng, count)
            for index, age in enumerate(range(count - 1, -1, -1)):
                at = END - age * hours[suite] * HOUR + 60 * (11 + 7 * len(axes))
                if made.is_one_in(60) or (described["id"] == "unsafe" and suite == "safety" and age % 3):
                    continue
                lowered = 0.07 * (described["id"] == "dropping" and age * hours[suite] < 5 * 24)
                is_measured = described["id"] != "unmeasured" and suite != "reasoning-deep"
                measured = (1200, 0.015) if is_measured else (None, None)
                trials = [made.trial(level + drawn[index] - lowered, axes, 0.02, *measured) for _ in range(2)]
                if made.is_one_in(30):
                    trials.append({"failure": made.failure()})
                made.add(described, suite, at, trials)
    return made


def young():
    """Models with few rounds, or none, beside models with a whole month."""
    made = Scenario("young", END + 59 * 60 + 30)
    rounds = {"five": 5, "seven": 7, "eight": 8, "day": 24, "days": 60, "single": 1, "failed": 30,
              "meridian-1": 31 * 24, "boreal-1": 31 * 24, "boreal-2": 31 * 24}
    for place, (name, count) in enumerate(rounds.items()):
        described = model(name, name.split("-")[0] if "-" in name else "cobalt", 2, 8)
        for suite in SUITES:
            drawn = 0.02 * (persistent if name == "boreal-2" else white)(made.rng, count)
            for index, age in enumerate(range(count - 1, -1, -1)):
                at = END - age * HOUR + 60 * (4 + 17 * SUITES.index(suite))
                if name == "failed":
                    made.add(described, suite, at, failure={"reason": REASONS[index % 5]})
                else:
                    level = 0.7 + 0.02 * place + drawn[index]
                    made.add(described, suite, at, [made.trial(level)])
    return made


def files():
    """The content of every file, as text, by name."""
    contents, index = {}, []
    for scenario in (hourly(), daily(), marks(), suites(), young(), edges(), pairs()):
        name = f"{scenario.name}.jsonl.gz"
        lines = (json.dumps(run, separators=(",", ":")) + "\n" for run in scenario.lines)
        contents[name] = "".join(lines)
        table_name = f"{scenario.name}.toml" if scenario.suites else None
        if table_name:
            contents[table_name] = scenario.suites
        index.append({"name": scenario.name, "file": name, "suites": table_name, "now": written(scenario.now)})
    contents["index.json"] = json.dumps(index, indent=1) + "\n"
    return contents


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return file.read()


def differences(directory, contents):
    """Names the files that differ, with the first line that does."""
    found = [f"{name} is not a scenario" for name in sorted(os.listdir(directory)) if name not in contents]
    for name, text in contents.items():
        path = os.path.join(directory, name)
        if not os.path.exists(path):
            found.append(f"{name} is missing")
            continue
        new, old = text.splitlines(), read(path).splitlines()
        unequal = (at for at, pair in enumerate(zip(new, old), 1) if pair[0] != pair[1])
        if text != read(path):
            found.append(f"{name} differs in line {next(unequal, min(len(new), len(old)) + 1)}")
    return found


def write(directory, contents):
    os.makedirs(directory, exist_ok=True)
    for name, text in contents.items():
        data = text.encode()
        # Without a time, so that the same runs are the same bytes.
        data = gzip.compress(data, 9, mtime=0) if name.endswith(".gz") else data
        with open(os.path.join(directory, name), "wb") as file:
            file.write(data)


def main():
    *flags, directory = sys.argv[1:]
    contents = files()
    if flags != ["--check"]:
        write(directory, contents)
        return 0
    # A text is printed as the error.
    return "\n".join(differences(directory, contents)) or 0


if __name__ == "__main__":
    sys.exit(main())
