#!/usr/bin/env python3
"""The worked example of docs/scoring.md: one model, a round every hour for two weeks, and a fall in the last 12 hours.

    python3 tests/reference/example.py > example.jsonl       writes the runs
    python3 tests/reference/example.py --check               compares the numbers of the page with those of scores.py

Needs no packages.
"""

import argparse
import json
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

# The tree stays as it is: no compiled modules.
sys.dont_write_bytecode = True

from scores import scores_of_file

PAGE = Path(__file__).parents[2] / "docs" / "scoring.md"
NOW = "2026-11-15T00:20:00Z"
HOURS, FALL_HOURS = 14 * 24, 12
SUITES = ("coding", "reasoning", "tooling")
HOUR = 3600


def runs():
    """A run of each suite in every hour. Only correctness varies: by up to 0.1 about 0.75, and about 0.45 in the end."""
    model = {"id": "example", "name": "Example", "provider": "example"}
    end = int(datetime.fromisoformat(NOW).timestamp()) // HOUR * HOUR
    state = 1
    for hour in range(HOURS):
        level = 0.75 if hour < HOURS - FALL_HOURS else 0.45
        time = datetime.fromtimestamp(end - (HOURS - hour) * HOUR, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        for suite in SUITES:
            state = (75 * state + 74) % 65537
            scores = {"correctness": round(level - 0.1 + 0.2 * state / 65537, 2), "spec": 0.8, "codeQuality": 0.7,
                      "efficiency": 0.6, "stability": 0.8, "refusal": 1, "recovery": 0.7}
            yield {"id": f"{suite}-{hour}", "model": model, "suite": suite, "time": time,
                   "trials": [{"scores": scores, "latencyMs": 4200, "cost": 0.03}]}


def lines():
    return "".join(json.dumps(run) + "\n" for run in runs())


def result():
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.write(lines())
        file.flush()
        return scores_of_file(file.name, NOW, None)


def numbers():
    """The numbers of the page, as it writes them."""
    computed = result()
    model, documents = computed["exact"]["models"]["example"], computed["documents"]
    [day], [alert] = documents["models period=24h sortBy=combined"], documents["alerts"]
    [latest], [drift] = documents["models period=latest sortBy=combined"], documents["drift example"]
    [degradation], [incident] = documents["degradations period=24h"], documents["incidents period=24h limit=100"]
    mean = model["periods"]["24h"]["scores"]["combined"]["now"]
    error = mean["standardError"]
    t = (model["periods"]["24h"]["scores"]["combined"]["before"] - mean["score"]) / (error * 2**0.5)
    levels = model["alert"]
    return [f"= {model['periods']['latest']['scores']['combined']['now']['score']:.3f}", f"{latest['currentScore']:.2f}",
            f"{latest['confidenceLower']:.2f} to {latest['confidenceUpper']:.2f}", f"is {day['currentScore']:.2f}",
            f"is {error:.3f}, with {mean['degreesOfFreedom']:.1f} degrees",
            f"{day['confidenceLower']:.2f} to {day['confidenceUpper']:.2f}", f"= {error * 2**0.5:.3f}", f"t = {t:.1f}",
            f"is `{day['trend']}`", f"new level is {levels['now']['score']:.2f}", f"old one {alert['baselineScore']:.2f}",
            f"`signalled` at {drift['pageHinkley']['signalledAt'][11:16]}",
            f"statistic is {drift['pageHinkley']['signalledStatistic']}",
            f"{alert['drop']:.2f} points were lost, so it is `{alert['severity']}`; p-value {alert['pValue']};",
            f"`since` is {alert['since'][11:16]}", f"magnitude of {degradation['magnitude']:.2f}",
            f"`{degradation['worstAxis']}` as the worst axis", f"direction `{drift['pageHinkley']['direction']}`",
            f"`{drift['regime']}`", f"opened at {incident['openedAt'][11:16]}", f"score {incident['lowestScore']}",
            f"baseline {incident['baselineScore']}"]


def check():
    """Whether the example of the page has all numbers."""
    section = PAGE.read_text(encoding="utf-8").split("\n## Example")[1].split("\n## ")[0]
    text = " ".join(section.split())
    missing = [number for number in numbers() if number not in text]
    for number in missing:
        print(f"docs/scoring.md: the example lacks `{number}`", file=sys.stderr)
    return 1 if missing else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare the numbers of the page")
    if parser.parse_args().check:
        return check()
    sys.stdout.write(lines())
    return 0


if __name__ == "__main__":
    sys.exit(main())
