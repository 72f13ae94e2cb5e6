"""Sections "Suites" and "Failed trials": the table of suites, the runs of an export, and the marks of their trials."""

import gzip
import json
import tomllib
from dataclasses import dataclass, field
from datetime import datetime, timezone

HOUR = 3600
# "A model is listed while it has runs in the last 60 days."
WINDOW_HOURS = 60 * 24
AXES = ("correctness", "spec", "codeQuality", "efficiency", "stability", "refusal", "recovery")
AXIS_WEIGHTS = dict(zip(AXES, (0.3, 0.15, 0.15, 0.1, 0.1, 0.1, 0.1)))
SORT_SCORES = ("combined", "coding", "reasoning", "tooling", "7axis")
ZERO_REASONS = ("timeout", "unusable")
PROVIDER_REASONS = ("throttled", "unreachable")
BENCHMARK_REASON = "harness"


@dataclass(frozen=True)
class Suite:
    name: str
    weight: float
    axes: tuple
    feeds: tuple


DEFAULT_SUITES = tuple(Suite(name, weight, AXES, ("combined", "7axis", "speed", "price", name))
                       for name, weight in (("coding", 0.4), ("reasoning", 0.35), ("tooling", 0.25)))


def read_suites(text):
    """The suites of a table. The weights are divided by their sum."""
    rows = tomllib.loads(text)["suite"]
    total = sum(row["weight"] for row in rows)
    return tuple(Suite(row["name"], row["weight"] / total, tuple(row["axes"]), tuple(row["feeds"])) for row in rows)


@dataclass(frozen=True)
class Kind:
    """A score: the suites that are part of it with weights that add up to 1, and the mark of a trial."""

    name: str
    weights: tuple
    # "weighted", "plain", or the name of an axis.
    mark: str


def kind_of(name, suites, mark):
    """A score of these suites, or None without any."""
    total = sum(suite.weight for suite in suites)
    return Kind(name, tuple((suite.name, suite.weight / total) for suite in suites), mark) if suites else None


def kinds(suites):
    """Every score of a table, by name: the `sortBy` scores, axes and suites."""
    found = {}
    for name in SORT_SCORES:
        feeding = [suite for suite in suites if name in suite.feeds]
        found[name] = kind_of(name, feeding, "plain" if name == "7axis" else "weighted")
    for axis in AXES:
        # "The mean of the suites that declare it": by their weights, like the other scores.
        found[f"axis {axis}"] = kind_of(f"axis {axis}", [suite for suite in suites if axis in suite.axes], axis)
    for suite in suites:
        found[f"suite {suite.name}"] = kind_of(f"suite {suite.name}", [suite], "weighted")
    return {name: kind for name, kind in found.items() if kind is not None}


@dataclass(frozen=True)
class Run:
    """A run. Its trials have `scores` or a `reason`; failures of the harness are left out."""

    id: str
    model: dict
    suite: str
    time: int
    trials: tuple
    # The reason, if the run failed as a whole.
    failure: str | None

    @property
    def hour(self):
        return self.time // HOUR

    @property
    def failed(self):
        return self.failure is not None or all(trial["reason"] for trial in self.trials)

    @property
    def is_counted(self):
        """Whether it is a run at all: not one with failures of the harness only."""
        return self.failure != BENCHMARK_REASON and (self.failure is not None or bool(self.trials))


def marks_of(run, mark, suite):
    """The marks of the trials with a score, in points. A timeout or unusable response is zero on every axis."""
    marks = [0.0] * (run.failure in ZERO_REASONS)
    for trial in run.trials:
        scores = trial["scores"]
        if trial["reason"] is not None:
            if trial["reason"] in ZERO_REASONS:
                marks.append(0.0)
        elif mark == "weighted":
            total = sum(AXIS_WEIGHTS[axis] for axis in suite.axes)
            marks.append(100 * sum(AXIS_WEIGHTS[axis] * scores[axis] for axis in suite.axes) / total)
        elif mark == "plain":
            marks.append(100 * sum(scores[axis] for axis in suite.axes) / len(suite.axes))
        else:
            marks.append(100.0 * scores[mark])
    return marks


def ones_of(run, suite):
    """Of the trials with a score: 1 if all axes are 1, 0 if all are 0 or the trial is a zero, else None."""
    found = [0] * (run.failure in ZERO_REASONS)
    for trial in run.trials:
        if trial["reason"] in ZERO_REASONS:
            found.append(0)
        elif trial["reason"] is None:
            values = {trial["scores"][axis] for axis in suite.axes}
            found.append(int(values.pop()) if values in ({0}, {1}) else None)
    return found


def seconds(text):
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return int(moment.astimezone(timezone.utc).timestamp())


def instant(at):
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def trial_of(line):
    failure = line.get("failure")
    return {"reason": failure["reason"] if failure else None, "scores": line.get("scores"),
            "latency": line.get("latencyMs"), "cost": line.get("cost")}


def run_of(line):
    failure = line.get("failure")
    trials = tuple(trial for trial in map(trial_of, line.get("trials", ())) if trial["reason"] != BENCHMARK_REASON)
    return Run(line["id"], line["model"], line["suite"], seconds(line["time"]), trials,
               failure["reason"] if failure else None)


@dataclass
class Export:
    """The content of an export: runs, recorded incidents, and positions of scans by model."""

    runs: list = field(default_factory=list)
    incidents: list = field(default_factory=list)
    scans: dict = field(default_factory=dict)


def read_export(path):
    """Reads lines of runs, incidents and positions of scans."""
    export, found = Export(), {}
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rt", encoding="utf-8") as lines:
        for line in map(json.loads, filter(str.strip, lines)):
            if "suites" in line:
                continue
            if "incident" in line:
                export.incidents.append(line["incident"])
            elif "incidentScan" in line:
                position = line["incidentScan"]
                # "The later round and the later hour count."
                newest = export.scans.setdefault(position["model"], {})
                for name in ("roundAt", "hourAt"):
                    if name in position:
                        newest[name] = max(position[name], newest.get(name, ""))
            else:
                run = run_of(line)
                found.setdefault(run.id, run)
    export.runs = list(found.values())
    return export


def counted_runs(runs, suites):
    """The runs of suites of the table that have every declared axis, without those of harness failures only."""
    by_name = {suite.name: suite for suite in suites}

    def counts(run):
        suite = by_name.get(run.suite)
        if suite is None or not run.is_counted:
            return False
        scored = (trial["scores"] for trial in run.trials if trial["reason"] is None)
        return all(axis in scores for scores in scored for axis in suite.axes)

    return [run for run in runs if counts(run)]
