"""What the scenarios of scenarios.py and edges.py are made of: runs, models, suite tables and kinds of noise."""

import json
import math
from datetime import datetime, timezone

import numpy as np

SEED = 20261120
AXES = ("correctness", "spec", "codeQuality", "efficiency", "stability", "refusal", "recovery")
SUITES = ("coding", "reasoning", "tooling")
REASONS = ("timeout", "unusable", "throttled", "unreachable", "harness")
HOUR = 3600
DAY = 24 * HOUR
# All scenarios end within hours of this instant.
END = int(datetime(2026, 11, 20, 12, tzinfo=timezone.utc).timestamp())


class Scenario:
    """The runs of an archive, in the order in which they are written."""

    def __init__(self, name, now, suites=None):
        self.name, self.now, self.suites = name, now, suites
        self.rng = np.random.default_rng([SEED, *name.encode()])
        self.lines, self.numbers = [], {}

    def add(self, model, suite, at, trials=None, failure=None):
        """Adds a run with these trials, or one that failed as a whole. Instants are in seconds."""
        key = f"{self.name}-{model['id']}-{suite}"
        self.numbers[key] = self.numbers.get(key, 0) + 1
        run = {"id": f"{key}-{self.numbers[key]}", "model": model, "suite": suite, "time": written(at)}
        run.update({"trials": trials} if failure is None else {"failure": failure})
        self.lines.append(run)

    def is_one_in(self, count):
        return self.rng.random() * count < 1

    def failure(self, detail=None):
        reason = {"reason": REASONS[self.rng.integers(len(REASONS))]}
        return {**reason, "detail": detail} if detail else reason

    def trial(self, level, axes=AXES, spread=0.02, latency=2000, cost=0.02):
        """A trial with scores around a level from 0 to 1. The first axis has four digits, the others have two."""
        digits = (4, *[2] * (len(axes) - 1))
        drawn = level + spread * self.rng.standard_normal(len(axes))
        trial = {"scores": {axis: short(min(max(x, 0), 1), n) for axis, x, n in zip(axes, drawn, digits)}}
        if latency is not None:
            trial["latencyMs"] = short(latency * math.exp(0.2 * self.rng.standard_normal()), -2)
        if cost is not None:
            trial["cost"] = short(cost * (1 + 0.1 * self.rng.standard_normal()), 3)
        return trial


def written(at):
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def short(number, digits):
    """Rounded; whole numbers without a point."""
    rounded = round(float(number), digits)
    return int(rounded) if rounded == int(rounded) else rounded


def model(name, provider, price_input=None, price_output=None, title=None):
    fields = {"id": name, "name": title or name.capitalize(), "provider": provider,
              "priceInput": price_input, "priceOutput": price_output}
    return {field: value for field, value in fields.items() if value is not None}


def table(*suites):
    """A suite table as TOML, of (name, weight, axes, feeds)."""
    parts = [f'[[suite]]\nname = "{name}"\nweight = {weight}\n'
             f"axes = {json.dumps(axes)}\nfeeds = {json.dumps(feeds)}\n"
             for name, weight, axes, feeds in suites]
    return "\n".join(parts)


def white(rng, count):
    return rng.standard_normal(count)


def heavy(rng, count):
    return rng.standard_t(3, count) / math.sqrt(3)


def persistent(rng, count):
    """A first-order autoregression with the correlation 0.8 and variance 1."""
    noise = rng.standard_normal(count)
    for index in range(1, count):
        noise[index] = 0.8 * noise[index - 1] + 0.6 * noise[index]
    return noise
