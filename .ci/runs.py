#!/usr/bin/env python3
"""Prints benchmark runs of the last 30 hours, one per line, as data for a backend."""
import datetime
import json
import random

AXES = ["correctness", "spec", "codeQuality", "efficiency", "stability", "refusal", "recovery"]
random.seed(20261121)
top = datetime.datetime.now(datetime.timezone.utc).replace(minute=0, second=0, microsecond=0)
for index, model in enumerate(["atlas-2", "kestrel-70b", "basalt-3", "estuary-1"]):
    level = 0.85 - 0.07 * index
    described = {"id": model, "name": model.title(), "provider": "meridian", "priceInput": 1.0, "priceOutput": 4.0}
    for hours in range(30, 0, -1):
        for minute, suite in enumerate(["coding", "reasoning", "tooling"]):
            at = top - datetime.timedelta(hours=hours) + datetime.timedelta(minutes=10 + minute)
            trials = [
                {"scores": {axis: min(1.0, max(0.0, random.gauss(level, 0.05))) for axis in AXES},
                 "latencyMs": random.randint(500, 2000), "cost": 0.01}
                for _ in range(4)
            ]
            print(json.dumps({"id": f"{model}-{hours}-{suite}", "model": described, "suite": suite,
                              "time": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "trials": trials}))
